"""Pairs of threads that race, counted once each however often and wherever they do.

So many of one hazard are counted, the smallest: which these are depends on no order in which they
are found, and those of other threads need not be looked for once there are enough.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.geometry import WARP, Flat
from ...memory.storage.word_ops import unique

MAX_PAIRS = 4096
"""Pairs of one hazard that are counted."""
_TOGETHER = 1 << 16
"""New pairs that are sorted in together."""


DISTANCES = ("lane", "warp", "block")


def distances(one: Flat, other: Flat, threads: int) -> Iterator[tuple[str, Flat]]:
    """How far threads (global numbers) of pairs are apart; and which pairs are so far.

    ``threads``: of a block.
    """
    far = one // threads != other // threads
    near = ~far & (one % threads // WARP == other % threads // WARP)
    for distance, those in zip(DISTANCES, (near, ~far & ~near, far), strict=True):
        if those.any():
            yield distance, np.flatnonzero(those)


class Pairs:
    """Unordered pairs of threads (global numbers): the ``max_pairs`` smallest, and one more."""

    def __init__(self, max_pairs: int = MAX_PAIRS) -> None:
        self.max_pairs = max_pairs
        self.keys = np.zeros(0, np.int64)
        self._new: list[Flat] = []
        self._waiting = 0

    @property
    def full(self) -> bool:
        """Whether there are more than are kept."""
        if len(self.keys) + self._waiting <= self.max_pairs:
            return False
        self._gather()
        return len(self.keys) > self.max_pairs

    @property
    def last(self) -> int:
        """Where it is full: the first thread of its last pair; pairs of later ones do not count."""
        return int(self.keys[-1] >> 32)

    @property
    def behind(self) -> int | None:
        """The first pair that is not counted any more, if there is one."""
        self._gather()
        return int(self.keys[MAX_PAIRS]) if len(self.keys) > MAX_PAIRS else None

    def add(self, one: Flat, other: Flat) -> None:
        """Pairs, an element each."""
        self._add(np.minimum(one, other) << 32 | np.maximum(one, other))

    def update(self, other: Pairs) -> None:
        """Take over another set."""
        other._gather()
        self._add(other.keys)
        self._gather()

    def spread(self, threads: Flat) -> None:
        """Of each pair make those of threads so many later, too."""
        self._gather()
        one, enough = self.keys, -(-(self.max_pairs + 1) // max(len(self.keys), 1))
        for later in threads[:enough].tolist():  # ascending: the smallest are among these
            self._add(one + (later << 32 | later))

    def _add(self, keys: Flat) -> None:
        if len(self.keys) > self.max_pairs:
            keys = keys[keys < self.keys[-1]]
        if len(keys):
            self._new.append(keys)
            self._waiting += len(keys)
        if self._waiting > _TOGETHER:
            self._gather()

    def blocks(self, threads: int) -> set[int]:
        """Blocks that a thread of a pair is in."""
        self._gather()
        both = np.concatenate([self.keys >> 32, self.keys & 0xFFFFFFFF])
        return set(unique(both // threads).tolist())

    def threads(self) -> Flat:
        """The threads of the pairs, ``(2, pairs)``."""
        self._gather()
        return np.stack([self.keys >> 32, self.keys & 0xFFFFFFFF])

    def __len__(self) -> int:
        self._gather()
        return min(len(self.keys), MAX_PAIRS)

    def _gather(self) -> None:
        if self._new:
            self.keys = unique(np.concatenate([self.keys, *self._new]))[: self.max_pairs + 1]
            self._new = []
            self._waiting = 0
