"""Output of ``printf``."""

from __future__ import annotations

from collections.abc import Iterator

from ...compile.program import CompiledBlock
from ...events import Observer
from ...isa.memory.address_windows import WINDOWS
from ...memory.storage.spaces import Allocation

MAX_OUTPUT = 1 << 20
"""Characters that are kept, as many as a GPU's buffer has by default (CUDA C++ Programming Guide,
"Formatted Output": 1 MB)."""
_LITERALS = ("$str", "__unnamed")
"""What NVRTC calls them."""


class PrintCollector(Observer):
    """Collects the output of ``printf``.

    Attributes:
        parts: Block, thread and text of each call, in order of execution.
        lost: Number of calls beyond ``MAX_OUTPUT`` characters.
        read: For strings read by ``%s``: the printing block, and the string's space.
    """

    def __init__(self) -> None:
        self.parts: list[tuple[int, int, str]] = []
        self.room = MAX_OUTPUT
        self.lost = 0
        self.read = set[tuple[int, str]]()

    def string_read(
        self, block: CompiledBlock, lane: tuple[int, ...], address: int, nbytes: int,
        home: Allocation | None,
    ) -> None:  # fmt: skip
        """See ``Observer``; literals need no check."""
        if home is None:
            self.read.add((block.number, "local" if address >= WINDOWS["local"] else "shared"))
        elif home.space == "global" and not home.name.startswith(_LITERALS):
            self.read.add((block.number, "global"))

    def printed(self, count: int, texts: Iterator[tuple[int, int, str]]) -> None:
        """See ``Observer``."""
        while self.room > 0 and count:
            part = next(texts)
            self.parts.append(part)
            self.room -= len(part[2])
            count -= 1
        self.lost += count

    def merge(self, other: PrintCollector) -> None:
        """See ``Observer``."""
        self.printed(len(other.parts), iter(other.parts))
        self.lost += other.lost
        self.read |= other.read

    def notes(self) -> tuple[str, ...]:
        """Return a sentence on calls that ``text`` omits, if any."""
        what = (
            f"{self.lost:,} more calls of printf, beyond {MAX_OUTPUT:,} characters, are not shown"
        )
        return (what,) if self.lost else ()

    def text(self) -> str:
        """Return the output ordered by block and thread, independent of the schedule."""
        return "".join(text for _, _, text in sorted(self.parts, key=lambda part: part[:2]))
