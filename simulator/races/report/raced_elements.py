"""The elements that threads race for, each with the smallest pair of threads that does."""

from __future__ import annotations

import numpy as np

from ...core.geometry import Flat

LOCATIONS = 100_000
"""Elements of one variable that are told apart."""
_TOGETHER = 1 << 16
"""So many new ones are sorted in together."""


class RacedElements:
    """Elements by number; once there are ``LOCATIONS``, no more are added."""

    def __init__(self) -> None:
        self._places, self._pairs = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._new: list[tuple[Flat, Flat]] = []
        self._waiting = 0

    def add(self, places: Flat, pairs: Flat) -> None:
        """Elements for which pairs race, which are numbered."""
        if len(self._places) < LOCATIONS:
            self._new.append(_least(places, pairs))
            self._waiting += len(self._new[-1][0])
            if self._waiting > _TOGETHER:
                self._gather()

    def update(self, other: RacedElements) -> None:
        """Take over another set."""
        other._gather()
        self.add(other._places, other._pairs)

    def spread(self, blocks: Flat, threads: Flat) -> None:
        """Of each element of a block make that of blocks so many later, and so their threads."""
        self._gather()
        one, pairs = self._places, self._pairs
        enough = -(-LOCATIONS // max(len(one), 1))
        for block, thread in zip(blocks[:enough].tolist(), threads[:enough].tolist(), strict=True):
            self.add(one + (block << 32), pairs + (thread << 32 | thread))

    def count(self, last: int | None) -> int:
        """How many there are; of those whose pairs come before ``last`` alone, if that is given."""
        self._gather()
        return len(self._places) if last is None else int((self._pairs < last).sum())

    def all(self) -> set[int]:
        """Their numbers."""
        self._gather()
        return set(self._places.tolist())

    def __len__(self) -> int:
        return self.count(None)

    def _gather(self) -> None:
        if self._new:
            columns = zip((self._places, self._pairs), *self._new, strict=True)
            self._places, self._pairs = _least(*map(np.concatenate, columns))
            self._new, self._waiting = [], 0


def _least(places: Flat, pairs: Flat) -> tuple[Flat, Flat]:
    """Each element once, ascending, with the smallest of its pairs."""
    turn = np.lexsort((pairs, places))
    first = np.flatnonzero(np.diff(places[turn], prepend=-1))
    return places[turn[first]], pairs[turn[first]]
