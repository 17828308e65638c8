"""How large pages are, how soon they can be used, and how long a step takes, in a real Chromium.

python -m benchmarks.pages          # needs the extra test and a Chromium
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

PAGES = (
    ("matmul_tiled", "--size", "64"),
    ("matmul_naive", "--size", "64", "--compare", "matmul_tiled"),
    ("matmul_tiled", "--size", "512"),
    ("matmul_missing_first_barrier", "--size", "64"),
    ("stencil_line",),
    ("scan_hillis_steele",),
    ("sort_bitonic",),
    ("attention",),
    ("histogram_shared",),
    ("softmax_rows",),
)
MAX_BYTES, MAX_READY, MAX_STEP = 2_000_000, 1.0, 16.0
"""What is aimed at: bytes, seconds until a page can be used, milliseconds a step."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STEPS = """async () => {
  const took = [];
  for (let i = 0; i < 60; i++) {
    const name = i < 40 ? "ArrowRight" : "ArrowLeft";
    const key = new KeyboardEvent("keydown", { key: name, bubbles: true });
    const start = performance.now();
    document.body.dispatchEvent(key);
    took.push(performance.now() - start);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  return took;
}"""


def measured(browser: Browser, file: Path) -> tuple[float, float, float]:
    """Seconds until a page is ready; milliseconds of script a beat: the median, and of 20 one."""
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    start = time.perf_counter()
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-ready]")
    ready = time.perf_counter() - start
    tab.keyboard.press("Home")
    steps = sorted(tab.evaluate(STEPS))
    tab.close()
    return ready, median(steps), steps[57]


def main() -> int:
    """Print a line a page; 1 if one misses what is aimed at."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # whom Chromium gives no sandbox
    missed = False
    print(f"{'page':46} {'MB':>5} {'ready, s':>9}  beat, ms  1 of 20")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"] if root else []
        )
        for words in PAGES:
            file = Path(folder) / "page.html"
            command = [sys.executable, "-m", "tilescope", "view", *words, "-q", "-o", str(file)]
            subprocess.run(command, check=True)
            size = file.stat().st_size
            ready, beat, slow = measured(browser, file)
            over = size > MAX_BYTES or ready > MAX_READY or beat > MAX_STEP
            missed |= over
            print(
                f"{' '.join(words):46} {size / 1e6:5.2f} {ready:9.2f} {beat:9.1f} {slow:8.1f}"
                f"{'  more than aimed at' if over else ''}"
            )
        browser.close()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
