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
    ("reduction_shared",),
    ("softmax_rows",),
)
MAX_BYTES, MAX_READY, MAX_STEP = 2_000_000, 1.5, 50.0
"""What is aimed at: bytes, seconds until a page can be used, milliseconds a step."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STEPS = """async () => {
  const took = [];
  for (let i = 0; i < 60; i++) {
    const key = new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true });
    const start = performance.now();
    document.body.dispatchEvent(key);
    took.push(performance.now() - start);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  return took;
}"""


def measured(browser: Browser, file: Path) -> tuple[float, list[float]]:
    """Seconds until a page is ready, and of each view with steps the median of their times, ms."""
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    start = time.perf_counter()
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-ready]")
    ready = time.perf_counter() - start
    steps = []
    for view in "234":
        tab.keyboard.press(view)
        steps.append(median(tab.evaluate(STEPS)))
    tab.close()
    return ready, steps


def main() -> int:
    """Print a line a page; 1 if one misses what is aimed at."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # whom Chromium gives no sandbox
    missed = False
    print(f"{'page':46} {'MB':>5} {'ready, s':>9}  step, ms: steps, barriers, memory")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"] if root else []
        )
        for words in PAGES:
            file = Path(folder) / "page.html"
            command = [sys.executable, "-m", "tilescope", "view", *words, "-q", "-o", str(file)]
            subprocess.run(command, check=True)
            size = file.stat().st_size
            ready, steps = measured(browser, file)
            over = size > MAX_BYTES or ready > MAX_READY or max(steps) > MAX_STEP
            missed |= over
            shown = "  ".join(f"{step:5.1f}" for step in steps)
            print(
                f"{' '.join(words):46} {size / 1e6:5.2f} {ready:9.2f}  {shown}"
                f"{'  more than aimed at' if over else ''}"
            )
        browser.close()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
