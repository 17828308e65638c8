"""Threads of a launch, as a report tells of them."""

from __future__ import annotations

import numpy as np

from ..geometry import EVERY_LANE, Flat, Geometry, Mask
from .parts import Triple
from .text import triple


class Who:
    """Threads of a launch: how many, and those of the lowest block among them."""

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
        """The lowest thread of the lowest block, and that block."""
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
