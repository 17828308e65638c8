"""Source lines, instructions and threads as reports print them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from kernels.compiler.toolkit import short_path
from kernels.ptx.module import Instruction, Location
from kernels.source_access import plain

from ..core.geometry import EVERY_LANE, Flat, Geometry, Mask
from .participants import Participant, Source, Triple
from .wording.text import triple

_WRAPPERS = re.compile(r"_(?:intrinsics|functions)\.hp?p?$")
"""Names of the toolkit's headers such as ``sm_30_intrinsics.hpp``."""
_LONGEST = 1000
"""Characters of a line at most."""


class Sources:
    """Source text of a kernel's ``.loc`` lines; ``text`` returns a file's content."""

    def __init__(self, text: Callable[[str], str | None]) -> None:
        self.text = text
        self._known: dict[str, list[str]] = {}

    def _lines(self, file: str) -> list[str]:
        if file not in self._known:
            self._known[file] = (self.text(file) or "").splitlines()
        return self._known[file]

    def code(self, location: Location | None, count: int = 1) -> str:
        """Return the text of a line and the following ones, without indentation.

        Empty if unknown.
        """
        if location is None:
            return ""
        lines = self._lines(location.file)[location.line - 1 :] if location.line > 0 else []
        return plain(" ".join(line.strip() for line in lines[:count])[:_LONGEST])

    def of(self, ins: Instruction) -> Source:
        """Return the user's source line of an instruction.

        Its PTX line without line information.
        """
        if ins.location is None:
            return Source(f"PTX line {ins.line}", 0, ins.name)
        return self._source(ins.location.user)

    def calls(self, ins: Instruction) -> tuple[Source, ...]:
        """Return the call sites of the instruction's line, innermost first."""
        if ins.location is None:
            return ()
        return tuple(self._source(at) for at in ins.location.user.chain[1:])

    def inside(self, ins: Instruction) -> Source | None:
        """Return the toolkit-header line of an instruction, if it is in one.

        Headers that only wrap single instructions tell nothing.
        """
        at = ins.location
        is_inside = at and at is not at.user and not _WRAPPERS.search(at.file)
        return self._source(at) if at and is_inside else None

    def part(
        self,
        role: str,
        copies: Sequence[Instruction],
        thread: Triple | None = None,
        block: Triple | None = None,
    ) -> Participant:
        """Return the participant for an instruction and its copies by unrolling or calls."""
        ins = copies[0]
        item = Participant(
            role, self.of(ins), ins.name, ins.line, thread, block,
            self.calls(ins), (), self.inside(ins),
        )  # fmt: skip
        for other in copies[1:]:
            item = self.also(item, other)
        return item

    def also(self, item: Participant, ins: Instruction) -> Participant:
        """Add the call sites of another copy of the instruction to a participant."""
        return item.called(*self.calls(ins)[:1]) if ins.location else item

    def _source(self, at: Location) -> Source:
        return Source(short_path(at.file), at.line, self.code(at))


class Who:
    """Threads of a launch: their number, and those of the lowest block."""

    def __init__(self) -> None:
        self.count = 0
        self.blocks: set[int] = set()
        self.threads: Flat = np.zeros(0, bool)
        self.lowest = -1

    def add(self, g: Geometry, lanes: Mask | None) -> Who:
        """Add lanes of a batch."""
        full = g.full(EVERY_LANE if lanes is None else lanes)
        columns = np.flatnonzero(full.any(axis=0))
        if columns.size:
            self.count += int(np.count_nonzero(full))
            self.blocks.update(g.blocks[columns].tolist())
            column = columns[0]
            number = int(g.blocks[column])
            if self.lowest < 0 or number < self.lowest:
                self.lowest, self.threads = number, np.zeros(g.threads, bool)
            if number == self.lowest:
                self.threads |= full[:, column]
            self.where = g.place
        return self

    def merge(self, other: Who) -> None:
        """Add threads of other blocks."""
        self.count += other.count
        self.blocks |= other.blocks
        if other.lowest >= 0 and (self.lowest < 0 or other.lowest < self.lowest):
            self.lowest, self.threads, self.where = other.lowest, other.threads, other.where

    @property
    def example(self) -> tuple[Triple | None, Triple | None]:
        """Return the lowest thread of the lowest block, and that block."""
        if self.lowest < 0:
            return None, None
        return self.where(int(np.argmax(self.threads)), self.lowest)

    def __str__(self) -> str:
        numbers = np.flatnonzero(self.threads)
        if self.where(1, 0)[0] == (1, 0, 0) and len(self.threads) > 1 and self._flat:
            runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
            spans = [f"{r[0]}" if len(r) == 1 else f"{r[0]}..{r[-1]}" for r in runs[:3]]
            word = "thread" if len(numbers) == 1 else "threads"
            text = f"{word} {', '.join(spans)}{' ...' if len(runs) > 3 else ''}"
        elif len(numbers) == 1:
            text = f"thread {triple(self.example[0])}"
        else:
            text = f"{len(numbers):,} threads"
        text += f" of block {triple(self.example[1])}"
        more = len(self.blocks) - 1
        return text + (f" and of {more:,} more block{'s' if more > 1 else ''}" if more else "")

    @property
    def _flat(self) -> bool:
        """Whether a thread's number is its x coordinate."""
        last = len(self.threads) - 1
        return self.where(last, 0)[0] == (last, 0, 0)
