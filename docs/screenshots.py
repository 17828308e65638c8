"""Draws docs/*.png from real runs; needs the extra ``test`` and a Chromium.

python docs/screenshots.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).parent
TILED = DOCS.parent / "kernels" / "matmul" / "tiled.cu"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def arrays(page: Page) -> None:
    """Naive beside tiled, and what one thread read."""
    page.evaluate("tilescopePage.views.matrices.pick(tilescopePage.runs[0],"
                  " tilescopePage.runs[0].arrays[2], 6 * 16 + 9)")  # fmt: skip


def steps(page: Page) -> None:
    """The third product of a partial sum."""
    page.evaluate("tilescopePage.state.update({ view: 'steps', block: 4, thread: 1 })")
    for _ in range(22):
        page.keyboard.press("ArrowRight")


def hazard(page: Page) -> None:
    """The moment of a race."""
    page.locator(".finding", has_text="Missing barrier").locator(".jump").first.click()


def barriers(page: Page) -> None:
    """Some warps wait, others have yet to come."""
    page.evaluate("tilescopePage.state.update({ view: 'barriers', step: 330 })")


def memory(page: Page) -> None:
    """A column of a tile in shared memory: eight words in each of two banks."""
    page.keyboard.press("4")
    option = page.locator("#access-line option", has_text="ld.shared").first
    page.select_option("#access-line", value=option.get_attribute("value"))


PICTURES = {
    "page-arrays": (
        ["matmul_naive", "--size", "16", "--tile", "8", "--compare", "matmul_tiled"], arrays, 1400,
    ),
    "page-steps": (
        [str(TILED), "tiled<2>", "--grid", "3,3", "--block", "2,2", "f32[6,6]=arange",
         "f32[6,6]=arange", "f32[6,6]", "6", "6", "6"], steps, 860,
    ),
    "page-hazard": (["matmul_missing_first_barrier", "--size", "32"], hazard, 820),
    "page-barriers": (["matmul_missing_first_barrier", "--size", "32"], barriers, 820),
    "page-memory": (
        ["matmul_transposed", "--size", "64", "--tile", "16"], memory, 1600,
    ),
}  # fmt: skip


def main(names: Sequence[str]) -> None:
    """Draw the pictures named, or all."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root = os.geteuid() == 0  # whom Chromium gives no sandbox
        chromium = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox"] if root else []
        )
        for name in names or PICTURES:
            words, act, height = PICTURES[name]
            file = Path(folder) / f"{name}.html"
            command = [sys.executable, "-m", "tilescope", "view", *words, "-q", "-o", str(file)]
            subprocess.run(command, check=True)
            page = chromium.new_page(
                viewport={"width": 1280, "height": height}, reduced_motion="reduce"
            )
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready]")
            act(page)
            page.wait_for_timeout(100)
            page.screenshot(path=DOCS / f"{name}.png")
            page.close()
        chromium.close()


if __name__ == "__main__":
    main(sys.argv[1:])
