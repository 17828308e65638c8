"""Pairs of threads that race, each counted once however often and wherever it races.

Of one hazard the smallest ``MAX_PAIRS`` are counted. This set does not depend on the order of
discovery, and larger pairs need not be searched once it is full.
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
    """Group pairs of threads (global numbers) by distance: lane, warp or block.

    ``threads``: threads of a block.
    """
    far = one // threads != other // threads
    near = ~far & (one % threads // WARP == other % threads // WARP)
    for distance, those in zip(DISTANCES, (near, ~far & ~near, far), strict=True):
        if those.any():
            yield distance, np.flatnonzero(those)


class Pairs:
    """Set of unordered pairs of threads (global numbers).

    The ``max_pairs`` smallest, and one more.
    """

    def __init__(self, max_pairs: int = MAX_PAIRS) -> None:
        self.max_pairs = max_pairs
        self.keys = np.zeros(0, np.int64)
        self._new: list[Flat] = []
        self._waiting = 0

    @property
    def full(self) -> bool:
        """Whether there are more pairs than are counted."""
        if len(self.keys) + self._waiting <= self.max_pairs:
            return False
        self._gather()
        return len(self.keys) > self.max_pairs

    @property
    def last(self) -> int:
        """First thread of a full set's last pair; pairs of later threads do not count."""
        return int(self.keys[-1] >> 32)

    @property
    def behind(self) -> int | None:
        """Return the first pair that no longer counts, if there is one."""
        self._gather()
        return int(self.keys[MAX_PAIRS]) if len(self.keys) > MAX_PAIRS else None

    def add(self, one: Flat, other: Flat) -> None:
        """Add pairs, one for each element."""
        self._add(np.minimum(one, other) << 32 | np.maximum(one, other))

    def update(self, other: Pairs) -> None:
        """Add another set."""
        other._gather()
        self._add(other.keys)
        self._gather()

    def spread(self, threads: Flat) -> None:
        """Replicate each pair at thread offsets, for blocks that behave identically."""
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
        """Return the blocks of the pairs' threads."""
        self._gather()
        both = np.concatenate([self.keys >> 32, self.keys & 0xFFFFFFFF])
        return set(unique(both // threads).tolist())

    def threads(self) -> Flat:
        """Return the threads of the pairs, ``(2, pairs)``."""
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
