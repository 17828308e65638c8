"""Racing elements, each with its smallest pair of threads."""

from __future__ import annotations

import numpy as np

from ...core.geometry import Flat

LOCATIONS = 100_000
"""Maximum number of elements of a variable that are distinguished."""
_TOGETHER = 1 << 16
"""So many new ones are sorted in together."""


class RacedElements:
    """Set of elements by number, of at most ``LOCATIONS``."""

    def __init__(self) -> None:
        self._places, self._pairs = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._new: list[tuple[Flat, Flat]] = []
        self._waiting = 0

    def add(self, places: Flat, pairs: Flat) -> None:
        """Add elements with the index of a racing pair for each."""
        if len(self._places) < LOCATIONS:
            self._new.append(_least(places, pairs))
            self._waiting += len(self._new[-1][0])
            if self._waiting > _TOGETHER:
                self._gather()

    def update(self, other: RacedElements) -> None:
        """Add another set."""
        other._gather()
        self.add(other._places, other._pairs)

    def spread(self, blocks: Flat, threads: Flat) -> None:
        """Replicate each element, and its pair, for blocks at some distances."""
        self._gather()
        one, pairs = self._places, self._pairs
        enough = -(-LOCATIONS // max(len(one), 1))
        for block, thread in zip(blocks[:enough].tolist(), threads[:enough].tolist(), strict=True):
            self.add(one + (block << 32), pairs + (thread << 32 | thread))

    def count(self, last: int | None) -> int:
        """Return the number of elements; with ``last``, of those with an earlier pair."""
        self._gather()
        return len(self._places) if last is None else int((self._pairs < last).sum())

    def all(self) -> set[int]:
        """Return the numbers of the elements."""
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
    """Return each element once, ascending, with its smallest pair."""
    turn = np.lexsort((pairs, places))
    first = np.flatnonzero(np.diff(places[turn], prepend=-1))
    return places[turn[first]], pairs[turn[first]]
