"""Recording of a page as an animated GIF. Needs the extra ``record`` and a Chromium."""

import io
import os
import shutil
import tempfile
from pathlib import Path

from simulator import SimulatorError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_WIDTH, _HEIGHT = 1280, 760
_MAX_BEATS = 24
_FRAMES = (60, 200, 260)
"""Milliseconds between the screenshots after each step."""
_HOLD = 500
_COLOURS = 96


class NoRecorder(SimulatorError):
    """Playwright, Pillow or a Chromium is not installed."""


def record(content: str, path: Path, beats: int = _MAX_BEATS) -> int:
    """Step through a page from its start, write the frames as a GIF, and return their number.

    Raises:
        NoRecorder: Playwright, Pillow or a Chromium is missing.
    """
    try:
        from PIL import Image
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise NoRecorder(f"--record needs tilescope[record]: {error}") from None
    shots: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(content, encoding="utf-8")
        found = next(filter(None, map(shutil.which, NAMES)), None)
        root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium has no sandbox for root
        try:
            browser = playwright.chromium.launch(
                executable_path=found, args=["--no-sandbox"] if root else []
            )
        except Error as error:
            message = str(error).splitlines()[0]
            raise NoRecorder(f"--record needs a Chromium: {message}") from None
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light")
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.keyboard.press("Home")
        shots.append(page.screenshot())
        for _ in range(beats):
            page.keyboard.press("ArrowRight")
            for wait in _FRAMES:
                page.wait_for_timeout(wait)
                shots.append(page.screenshot())
            if page.evaluate("tilescopePage.state.pos >= tilescopePage.state.story.count"):
                break
        browser.close()
    frames = [
        Image.open(io.BytesIO(shot)).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        for shot in shots
    ]
    times = [_HOLD * 2, *((140, 140, _HOLD) * len(frames))][: len(frames)]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True
    )
    return len(frames)
