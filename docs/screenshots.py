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


def compare(page: Page) -> None:
    """Naive beside tiled, in the middle of a block."""
    page.locator("#share").fill("45")


def steps(page: Page) -> None:
    """As it opens: the first use of a tile."""


def hazard(page: Page) -> None:
    """The moment of a race, as it opens."""


def access(page: Page) -> None:
    """A column of a tile in shared memory: many words in each bank."""
    page.keyboard.press("3")
    page.locator(".accesses button", has_text="\u25b2").first.click()


PICTURES = {
    "page-arrays": (
        ["matmul_naive", "--size", "64", "--compare", "matmul_tiled"], compare, 900,
    ),
    "page-steps": (["matmul_tiled", "--size", "6"], steps, 780),
    "page-hazard": (["matmul_missing_first_barrier", "--size", "64"], hazard, 860),
    "page-memory": (["matmul_transposed", "--size", "64", "--tile", "16"], access, 760),
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
                viewport={"width": 1400, "height": height}, reduced_motion="reduce"
            )
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready]")
            act(page)
            page.wait_for_timeout(300)
            page.screenshot(path=DOCS / f"{name}.png")
            page.close()
        chromium.close()


if __name__ == "__main__":
    main(sys.argv[1:])
