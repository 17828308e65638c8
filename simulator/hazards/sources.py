"""Source lines and instructions as reports tell them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from kernels.ptx.module import Instruction, Location
from kernels.reading import plain
from kernels.toolkit import short_path

from .parts import Involved, Source, Triple

_LONGEST = 1000
"""Characters of a line at most."""


class Sources:
    """The source text behind a kernel's ``.loc`` lines.

    Args:
        text: Gives a file's text (``Kernel.source_text``).
    """

    def __init__(self, text: Callable[[str], str | None]) -> None:
        self.text = text

    @functools.lru_cache(maxsize=64)  # noqa: B019 - lives as long as one launch
    def _lines(self, file: str) -> list[str]:
        return (self.text(file) or "").splitlines()

    def code(self, location: Location | None, count: int = 1) -> str:
        """The line's text without indentation, and that of lines after it; empty if not at hand."""
        if location is None:
            return ""
        lines = self._lines(location.file)[location.line - 1 :] if location.line > 0 else []
        return plain(" ".join(line.strip() for line in lines[:count])[:_LONGEST])

    def of(self, ins: Instruction) -> Source:
        """The user's line of an instruction; without line information, its PTX line."""
        if ins.location is None:
            return Source(f"PTX line {ins.line}", 0, ins.name)
        return self._source(ins.location.user)

    def calls(self, ins: Instruction) -> tuple[Source, ...]:
        """The calls that led to the instruction's line, innermost first."""
        if ins.location is None:
            return ()
        return tuple(self._source(at) for at in ins.location.user.chain[1:])

    def inside(self, ins: Instruction) -> Source | None:
        """Where in a toolkit's header the instruction stands, if it does."""
        at = ins.location
        return self._source(at) if at and at is not at.user else None

    def part(
        self,
        role: str,
        copies: Sequence[Instruction],
        thread: Triple | None = None,
        block: Triple | None = None,
    ) -> Involved:
        """An instruction's part in a hazard, with its copies that unrolling or calls made."""
        ins = copies[0]
        item = Involved(
            role, self.of(ins), ins.name, ins.line, thread, block,
            self.calls(ins), (), self.inside(ins),
        )  # fmt: skip
        for other in copies[1:]:
            item = self.also(item, other)
        return item

    def also(self, item: Involved, ins: Instruction) -> Involved:
        """The part that another copy of an instruction has too: perhaps called from elsewhere."""
        return item.called(*self.calls(ins)[:1]) if ins.location else item

    def _source(self, at: Location) -> Source:
        return Source(short_path(at.file), at.line, self.code(at))
