"""Draws docs/*.png from real runs; needs the extra ``test`` and a Chromium.

python docs/screenshots.py
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
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


def both(page: Page) -> Iterator[None]:
    """The moment of a race, and the same place with the barrier."""
    yield
    page.get_by_role("button", name="with the barrier", exact=True).click()
    yield


def access(page: Page) -> None:
    """A column of a tile in shared memory: many words in each bank."""
    page.keyboard.press("3")
    page.locator(".accesses button", has_text="\u25b2").first.click()


PICTURES = {
    "race": (["matmul_missing_first_barrier", "--size", "32"], both, 580),
    "page-arrays": (
        ["matmul_naive", "--size", "64", "--compare", "matmul_tiled"], compare, 900,
    ),
    "page-steps": (["matmul_tiled", "--size", "6"], steps, 780),
    "page-hazard": (["matmul_missing_first_barrier", "--size", "64"], hazard, 860),
    "page-memory": (["matmul_transposed", "--size", "64", "--tile", "16"], access, 760),
}  # fmt: skip


def animated(frames: Sequence[bytes], seconds: int = 3) -> bytes:
    """Return an animated PNG of PNGs of one size (PNG 3, section 11.3.7); shown without end."""
    chunks = [list(_chunks(frame)) for frame in frames]
    (_, header), number = chunks[0][0], 0
    control = struct.pack(">II", len(frames), 0)
    parts = [_chunk(b"IHDR", header), _chunk(b"acTL", control)]
    for index, frame in enumerate(chunks):
        shape = header[:8] + struct.pack(">IIHHBB", 0, 0, seconds, 1, 0, 0)
        parts.append(_chunk(b"fcTL", struct.pack(">I", number) + shape))
        number += 1
        for kind, data in frame:
            if kind == b"IDAT" and index:
                parts.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
                number += 1
            elif kind == b"IDAT":
                parts.append(_chunk(kind, data))
    return frames[0][:8] + b"".join([*parts, _chunk(b"IEND", b"")])


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += 12 + size


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


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
            width = 1000 if act is both else 1400
            page = chromium.new_page(
                viewport={"width": width, "height": height}, reduced_motion="reduce"
            )
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready]")
            frames = []
            for _ in act(page) or [None]:
                page.wait_for_timeout(300)
                frames.append(page.screenshot())
            content = frames[0] if len(frames) == 1 else animated(frames)
            (DOCS / f"{name}.png").write_bytes(content)
            page.close()
        chromium.close()


if __name__ == "__main__":
    main(sys.argv[1:])
