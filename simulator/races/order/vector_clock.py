"""Vector clocks of released work: one row of epochs for each block.

Clocks are immutable, so that they share equal rows. A join costs only the rows that differ.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from ...core.geometry import Flat, Mask, Rows

_Key = TypeVar("_Key")
LockEpoch = tuple[int, int, bool]
"""A block; the lock that one of its threads let go of; whether it was taken within the block."""
Ordered = Callable[[Flat, Flat, Flat], Mask]
"""(times, threads of the remembered accesses, lane positions) to whether each comes before."""
KnownEpoch = Callable[[Flat, Flat, Flat], Flat]
"""(others, threads, columns) to the epochs of the others that the threads have acquired."""


@dataclass(frozen=True, eq=False, slots=True)
class VectorClock:
    """Released work.

    Attributes:
        work: For each block the epochs of its threads' accesses, int64.
        lock_clocks: The same as far as it came through a lock, without accesses that the lock's
            holders have not fenced.
        last_releases: For each block, location and instruction, the last strong write of each
            thread. The write alone is covered, not what its thread did before.
    """

    work: Mapping[int, Flat] = field(default_factory=dict)
    lock_clocks: Mapping[LockEpoch, Flat] = field(default_factory=dict)
    last_releases: Mapping[tuple[int, int], Flat] = field(default_factory=dict)

    def merge(self, other: "VectorClock") -> "VectorClock":
        """Return the join of two clocks; one of them if it covers the other."""
        if other is self or other is BOTTOM:
            return self
        if self is BOTTOM:
            return other
        return _merged(self, other)

    def _with(self, other: "VectorClock") -> "VectorClock":
        work, lock_clocks = (
            _either(self.work, other.work),
            join(self.lock_clocks, other.lock_clocks),
        )
        last_releases = _either(self.last_releases, other.last_releases)
        for one in (self, other):
            if (
                work is one.work
                and lock_clocks is one.lock_clocks
                and last_releases is one.last_releases
            ):
                return one
        return VectorClock(work, lock_clocks, last_releases)

    def without_writes(self, is_covered: Callable[[int, int], bool]) -> "VectorClock":
        """Return the clock without the strong writes, by block and number, that are covered."""
        remaining = {at: row for at, row in self.last_releases.items() if not is_covered(*at)}
        if len(remaining) == len(self.last_releases):
            return self
        if not (remaining or self.work or self.lock_clocks):
            return BOTTOM
        return VectorClock(self.work, self.lock_clocks, remaining)

    def happens_after(self, time: Flat, thread: Flat, threads: int, strong: bool = True) -> Flat:
        """Return whether accesses at ``time`` by ``thread`` happen before the clock.

        ``thread``: global numbers. ``threads``: threads of a block. ``strong``: whether some may be
        strong writes of ``last_releases``. Clocks that came through locks are not considered.
        """
        block, lane = np.divmod(thread, threads)
        known: Flat = time <= _looked_up(self.work, block, lane, threads)
        if strong and self.last_releases and not known.all():
            unknown = np.flatnonzero(~known)
            by_block = Blocks(block[unknown])
            for (number, _), row in self.last_releases.items():
                at = unknown[by_block.of(number)]
                known[at] |= row[lane[at]] == time[at]
        return known


BOTTOM = VectorClock()
_STACKED = 32
"""Clocks of which ``by_lock`` is kept: an access asks for one or a few of them, many times."""
_TOGETHER = 1024
"""Pairs of clocks of which is kept what both know: threads that spin side by side find the same."""


@functools.lru_cache(_TOGETHER)
def _merged(one: VectorClock, other: VectorClock) -> VectorClock:
    return one._with(other)


class HeldRows(NamedTuple):
    """Part of a clock that came through one lock, of block scope (``near``) or wider.

    Attributes:
        blocks: Blocks of the releasing threads, ascending.
        turns: Index of each in the clock's ``lock_clocks``.
        rows: Epochs of their threads' accesses.
    """

    place: int
    near: bool
    blocks: Flat
    turns: Flat
    rows: Rows


@functools.lru_cache(_STACKED)
def by_lock(clock: VectorClock) -> list[HeldRows]:
    """Group the ``lock_clocks`` of a clock by lock."""
    found: dict[tuple[int, bool], list[tuple[int, int, Flat]]] = {}
    for turn, ((block, place, near), row) in enumerate(clock.lock_clocks.items()):
        found.setdefault((place, near), []).append((block, turn, row))
    out = []
    for (place, near), those in found.items():
        blocks, turns, rows = zip(*sorted(those, key=lambda one: one[0]), strict=True)
        out.append(HeldRows(place, near, np.array(blocks), np.array(turns), np.stack(rows)))
    return out


class Blocks:
    """Positions of each block in an array of block numbers."""

    def __init__(self, block: Flat) -> None:
        self._turn = np.argsort(block, kind="stable")
        self._block = block[self._turn]

    def of(self, number: int) -> Flat:
        """Return the positions of a block."""
        low, high = np.searchsorted(self._block, [number, number + 1])
        return self._turn[low:high]

    def among(self, numbers: Flat) -> tuple[Flat, Flat]:
        """Return the positions of some blocks (ascending), and the index of the block of each."""
        if len(numbers) == 1:
            at = self.of(numbers[0])
            return at, np.zeros(len(at), np.int64)
        which = np.searchsorted(numbers, self._block)
        known = numbers[np.minimum(which, len(numbers) - 1)] == self._block
        return self._turn[known], which[known]


def _looked_up(rows: Mapping[int, Flat], block: Flat, lane: Flat, threads: int) -> Flat:
    """Return the epoch in its block's row for each thread; -1: no row."""
    first, last = int(block.min()), int(block.max())
    if (last - first) * threads > 4 * len(block) + 4096:
        out = np.full(len(block), -1, np.int64)
        by_block = Blocks(block)
        for number, row in rows.items():
            at = by_block.of(number)
            out[at] = row[lane[at]]
        return out
    table = np.full((last - first + 1, threads), -1, np.int64)
    for number, row in rows.items():
        if first <= number <= last:
            table[number - first] = row
    found: Flat = table[block - first, lane]
    return found


def _either(one: Mapping[_Key, Flat], other: Mapping[_Key, Flat]) -> Mapping[_Key, Flat]:
    """``join``, in the order of the larger mapping; its time is that of the smaller one."""
    return join(one, other) if len(one) >= len(other) else join(other, one)


def join(one: Mapping[_Key, Flat], other: Mapping[_Key, Flat]) -> Mapping[_Key, Flat]:
    """Return the element-wise maximum of two mappings of rows.

    If one covers the other, that object is returned.
    """
    made: dict[_Key, Flat] | None = None
    theirs = True
    for key, row in other.items():
        mine = one.get(key)
        if mine is row:
            continue
        if mine is None:
            new = row
        else:
            new = np.maximum(mine, row)
            if (new == mine).all():
                theirs = False
                continue
            if (new == row).all():
                new = row
            else:
                theirs = False
        made = dict(one) if made is None else made
        made[key] = new
    if made is None:
        return one
    return other if theirs and len(made) == len(other) else made
