"""What threads know of each other's work: vector clocks, a row of times for each block.

A clock is never changed once it is made, so that clocks share the rows in which they agree;
bringing two together costs what differs.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from ...core.geometry import Flat, Rows

_Key = TypeVar("_Key")
LockEpoch = tuple[int, int, bool]
"""A block; the lock that one of its threads let go of; whether it was taken within the block."""


@dataclass(frozen=True, eq=False, slots=True)
class VectorClock:
    """Work that has been handed on.

    Attributes:
        work: By block, up to when each of its threads' accesses are known, int64.
        held: The same, where it came with a lock: but for what its holders did without a fence.
        ends: By block, and location and instruction: the last strong write there by each thread.
            It is known alone, whatever the thread did before it.
    """

    work: Mapping[int, Flat] = field(default_factory=dict)
    lock_clocks: Mapping[LockEpoch, Flat] = field(default_factory=dict)
    last_releases: Mapping[tuple[int, int], Flat] = field(default_factory=dict)

    def merge(self, other: "VectorClock") -> "VectorClock":
        """What either knows; one of the two, if it knows all."""
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

    def happens_after(self, time: Flat, thread: Flat, threads: int, strong: bool = True) -> Flat:
        """Whether accesses at ``time`` by ``thread`` (global numbers) are known, bools.

        ``threads``: of a block; ``strong``: whether some may be strong writes, of which the ends
        are known. What came with a lock is not asked here.
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
    """What a clock has by one lock, taken over within a block (``near``) or not.

    Attributes:
        blocks: Whose threads let go of it, ascending; ``turns``: which of the clock's ``held``
            each is; ``rows``: up to when each of their threads' accesses are known.
    """

    place: int
    near: bool
    blocks: Flat
    turns: Flat
    rows: Rows


@functools.lru_cache(_STACKED)
def by_lock(clock: VectorClock) -> list[HeldRows]:
    """What a clock has with locks, for each lock together."""
    found: dict[tuple[int, bool], list[tuple[int, int, Flat]]] = {}
    for turn, ((block, place, near), row) in enumerate(clock.lock_clocks.items()):
        found.setdefault((place, near), []).append((block, turn, row))
    out = []
    for (place, near), those in found.items():
        blocks, turns, rows = zip(*sorted(those, key=lambda one: one[0]), strict=True)
        out.append(HeldRows(place, near, np.array(blocks), np.array(turns), np.stack(rows)))
    return out


class Blocks:
    """Where in an array of block numbers each stands."""

    def __init__(self, block: Flat) -> None:
        self._turn = np.argsort(block, kind="stable")
        self._block = block[self._turn]

    def of(self, number: int) -> Flat:
        """The places of a block."""
        low, high = np.searchsorted(self._block, [number, number + 1])
        return self._turn[low:high]

    def among(self, numbers: Flat) -> tuple[Flat, Flat]:
        """The places of some blocks (ascending); and of each, which of these it is."""
        if len(numbers) == 1:
            at = self.of(numbers[0])
            return at, np.zeros(len(at), np.int64)
        which = np.searchsorted(numbers, self._block)
        known = numbers[np.minimum(which, len(numbers) - 1)] == self._block
        return self._turn[known], which[known]


def _looked_up(rows: Mapping[int, Flat], block: Flat, lane: Flat, threads: int) -> Flat:
    """For each thread what its block's row says; -1: nothing."""
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
    """``latest``, in the order of whichever has more: the time is that of the shorter one."""
    return join(one, other) if len(one) >= len(other) else join(other, one)


def join(one: Mapping[_Key, Flat], other: Mapping[_Key, Flat]) -> Mapping[_Key, Flat]:
    """The later time of each; one of the two, if it has them all."""
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
