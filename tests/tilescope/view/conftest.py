"""A real Chromium, and pages of real runs."""

import functools
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from tilescope.view import Story, page

HOW = (
    "no Chromium found; install one: apt-get install -y chromium (or: playwright install chromium)"
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def chromium():
    """The browser; without one the tests are skipped, or fail where one was promised."""
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_api.sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        if found is None and not Path(own).exists():
            (pytest.fail if os.environ.get("TILESCOPE_BROWSER") else pytest.skip)(HOW)
        root = hasattr(os, "geteuid") and os.geteuid() == 0  # whom Chromium gives no sandbox
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"] if root else []
        )
        yield browser
        browser.close()


class Opened:
    """A page in the browser, and what tests ask of it."""

    def __init__(self, page, story):
        self.page, self.story = page, story
        self.run = story.run
        self.trace = story.run.trace

    def text(self, selector):
        return self.page.locator(selector).inner_text().replace("\u2212", "-")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, condition, seconds=8):
        """Wait for a condition; the page's policy lets no string be evaluated inside it."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(20)

    def state(self, what):
        """A field of what the page looks at: ``pos``, ``block``, ``thread`` ..."""
        return self.page.evaluate(f"tilescopePage.state.{what}")

    def look(self, **change):
        """Look at a block, a thread, or after so many steps."""
        self.page.evaluate("change => tilescopePage.state.update(change)", change)

    def terms(self):
        """Running values of the thread panel's rows, as far as they are done."""
        rows = self.page.locator(".thread:not([hidden]) .terms li.done .sum").all_inner_texts()
        return [float(row.replace("\u2212", "-")) for row in rows]

    def click_spot(self, name, x, y):
        """Click a part of the picture, as a person would: pixels from its top left corner."""
        at = self.page.evaluate(
            """([name, x, y]) => {
              const { lens } = tilescopePage.stage.layout;
              const spot = lens.spots.find((one) => one.grid?.name === name);
              return [(spot.x + x) * lens.scale, (spot.y + y) * lens.scale];
            }""",
            [name, x, y],
        )
        self.page.locator(".lens canvas").click(position={"x": at[0], "y": at[1]}, force=True)


@pytest.fixture
def open_page(chromium, tmp_path):
    """Open a story's page from disk; in the end nothing may have gone wrong or out."""
    problems, contexts = [], []

    def opened(*stories, width=1280, height=900, theme="light", phone=False):
        file = tmp_path / "run.html"
        file.write_text(html(*stories), encoding="utf-8")
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme,
            has_touch=phone, is_mobile=phone,
        )  # fmt: skip
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        asked = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-ready]")
        contexts.append(lambda: problems.extend(url for url in asked if url != file.as_uri()))
        return Opened(tab, stories[0])

    yield opened
    for item in contexts:
        item() if callable(item) else item.close()
    assert problems == []


@functools.cache
def _html(*stories):
    return page(stories)


def html(*stories):
    """A story's page, made once."""
    return _html(*stories)


@functools.cache
def matmul(size, tile, file="tiled.cu", entry="tiled<{tile}>", schedule="warps"):
    """A square product of small whole numbers, whose sums are exact."""
    path = library.get("matmul_tiled").path.parent / file
    kernel = Kernel.from_cuda(path, entry.format(tile=tile))
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-9, 10, (size, size)).astype(np.float32) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    grid = -(-size // tile)
    args = [a, b, c, size, size, size]
    run = simulator.launch(kernel, (grid, grid), (tile, tile), args, schedule=schedule, trace=True)
    story = Story(run, entry.format(tile=tile))
    story.inputs = (a, b)
    return story


@functools.cache
def of_library(name, size=None, schedule="warps"):
    """A run of a library kernel."""
    entry = library.get(name)
    launch = entry.launch(entry.parse_size(size) if size else None)
    kept = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in launch.args]
    run = simulator.launch(
        entry.kernel(), launch.grid, launch.block, launch.args,
        shared_bytes=launch.shared_bytes, schedule=schedule, trace=True,
    )  # fmt: skip
    story = Story(run, name)
    story.inputs = kept
    return story
