"""Pairs of threads that race, counted once each however often and wherever they do.

Few pairs are kept and counted. Where they are too many to keep (all threads of a launch on
one word), and nothing put any accesses of the launch in order, they are worked out from who
accessed each location; otherwise the count is "at least" what was kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..geometry import WARP, Flat
from ..memory.words import distinct

MOST = 1 << 20
"""Pairs of one hazard that are kept."""
_PLACES = 4096
"""Locations whose threads are compared with each other's."""


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
    """A set of unordered pairs of threads (global numbers); it stops growing at ``MOST``."""

    def __init__(self) -> None:
        self.keys = np.zeros(0, np.int64)
        self._new: list[Flat] = []
        self._waiting = 0

    @property
    def full(self) -> bool:
        """Whether there are more than can be kept."""
        if len(self.keys) + self._waiting <= MOST:
            return False
        self._gather()
        return len(self.keys) > MOST

    def add(self, one: Flat, other: Flat) -> None:
        """Pairs, an element each."""
        self._new.append(np.minimum(one, other) << 32 | np.maximum(one, other))
        self._waiting += len(one)
        if self._waiting > MOST:
            self._gather()

    def update(self, other: Pairs) -> None:
        """Take over another set."""
        other._gather()
        self._new.append(other.keys)
        self._gather()

    def blocks(self, threads: int) -> set[int]:
        """Blocks that a thread of a pair is in."""
        self._gather()
        both = np.concatenate([self.keys >> 32, self.keys & 0xFFFFFFFF])
        return set(distinct(both // threads).tolist())

    def threads(self) -> Flat:
        """The threads of the pairs, ``(2, pairs)``."""
        self._gather()
        return np.stack([self.keys >> 32, self.keys & 0xFFFFFFFF])

    def __len__(self) -> int:
        self._gather()
        return min(len(self.keys), MOST)

    def _gather(self) -> None:
        if self._new:
            if len(self.keys) <= MOST:
                self.keys = distinct(np.concatenate([self.keys, *self._new]))[: MOST + 1]
            self._new = []
            self._waiting = 0


def count_all(ones: Sequence[Flat], others: Sequence[Flat], threads: int) -> dict[str, int | None]:
    """Pairs where everyone of one side races with everyone of the other, by their distance.

    Args:
        ones: For each location, the threads on one side, ascending (global numbers).
        others: Those on the other side; a thread may be on both.
        threads: Threads of a block.

    Returns:
        Pairs between lanes of a warp, warps of a block, and blocks; ``None`` where locations
        share some threads and not all, so that the sum would count pairs twice.
    """
    different: dict[bytes, tuple[Flat, Flat]] = {}
    if len(ones) > _PLACES:
        return dict.fromkeys(("lane", "warp", "block"))
    for one, other in zip(ones, others, strict=True):
        key = one.tobytes() + b"|" + other.tobytes()
        different.setdefault(key, (one, other))
    sets = [np.union1d(one, other) for one, other in different.values()]
    if len(sets) > 1 and len(distinct(np.concatenate(sets))) < sum(map(len, sets)):
        return dict.fromkeys(("lane", "warp", "block"))
    total: dict[str, int | None] = {"lane": 0, "warp": 0, "block": 0}
    for one, other in different.values():
        everybody = _product(one, other, np.zeros_like)
        in_blocks = _product(one, other, lambda t: t // threads)
        in_warps = _product(one, other, lambda t: (t // threads << 8) + t % threads // WARP)
        for distance, pairs in (
            ("lane", in_warps),
            ("warp", in_blocks - in_warps),
            ("block", everybody - in_blocks),
        ):
            total[distance] = (total[distance] or 0) + pairs
    return total


def _product(one: Flat, other: Flat, unit: Callable[[Flat], Flat]) -> int:
    """Unordered pairs of different threads, one of each side, within the same unit."""
    both = np.intersect1d(one, other, assume_unique=True)
    units = distinct(np.concatenate([unit(one), unit(other)]))
    n, m, shared = (
        np.bincount(np.searchsorted(units, unit(side)), minlength=len(units)).astype(object)
        for side in (one, other, both)
    )
    return int((n * m - shared - shared * (shared - 1) // 2).sum())


def by_place(keys: Flat, places: Flat, threads: int) -> Iterator[Flat]:
    """The threads at each of some locations; ``keys``: location and thread, ascending."""
    low = np.searchsorted(keys, places * threads)
    high = np.searchsorted(keys, (places + 1) * threads)
    for begin, end in zip(low.tolist(), high.tolist(), strict=True):
        yield keys[begin:end] % threads
