"""Source lines for reports: their text, and paths a person can read."""

from __future__ import annotations

import functools
import os

from kernels import Kernel
from kernels.reading import plain

from .hazard import Source
from .module import Instruction, Location

_LONGEST = 1000
"""Characters of a line at most."""


class Sources:
    """The source text behind a kernel's ``.loc`` lines."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @functools.lru_cache(maxsize=64)  # noqa: B019 - lives as long as one launch
    def _lines(self, file: str) -> list[str]:
        return (self.kernel.source_text(file) or "").splitlines()

    def code(self, location: Location | None) -> str:
        """The line's text without indentation; empty if it is not at hand."""
        if location is None:
            return ""
        lines = self._lines(location.file)
        text = lines[location.line - 1] if 0 < location.line <= len(lines) else ""
        return plain(text.strip()[:_LONGEST])

    def of(self, ins: Instruction) -> Source:
        """The source line of an instruction; without line information, its PTX line."""
        if ins.location is None:
            return Source(f"PTX line {ins.line}", 0, ins.name)
        return Source(short_path(ins.location.file), ins.location.line, self.code(ins.location))


def short_path(file: str) -> str:
    """A path below the working folder, from there; others as they are."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else relative
