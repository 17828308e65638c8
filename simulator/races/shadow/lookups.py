"""Lookups in shadow memory: lanes, and groups of lanes with equal clocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.geometry import WARP, Flat, Mask
from ..order.vector_clock import BOTTOM, VectorClock
from .pair_limit import pieces


class Asked:
    """Lanes of a lookup, each with a location and a thread.

    Attributes:
        low: Lower bound of the keys of their locations.
        high: Upper bound, exclusive.
    """

    def __init__(self, place: Flat, thread: Flat, threads: np.int64, block: np.int64) -> None:
        self.place, self.thread, self.threads, self.block = place, thread, threads, block
        self.start = place * threads
        self.low = self.start.min() if len(place) else 0
        self.high = self.start.max() + threads if len(place) else 0
        self._ranges: dict[str, list[tuple[Flat, Flat]]] = {}

    def ranges(self, distance: str) -> list[tuple[Flat, Flat]]:
        """Return the key ranges of threads at a distance: see ``ShadowMemory.races``."""
        if distance not in self._ranges:
            start = self.start
            block, number = np.divmod(self.thread, self.block)
            first = start + block * self.block
            end = first + self.block
            warp = first + number // WARP * WARP
            last = np.minimum(warp + WARP, end)
            self._ranges |= {
                "lane": [(warp, last)], "near": [(first, end)],
                "warp": [(first, warp), (last, end)],
                "any": [(start, start + self.threads)],
                "block": [(start, first), (end, start + self.threads)],
            }  # fmt: skip
        return self._ranges[distance]


class EqualRows:
    """Groups of lanes that are ordered after the same accesses of other blocks.

    Args:
        keys: The common key of each lane.

    Attributes:
        first: One lane of each group.
        group: Group of each lane.
    """

    def __init__(self, *keys: Flat) -> None:
        self._turn = np.lexsort(keys)
        new = np.logical_or.reduce([np.diff(key[self._turn], prepend=-1) != 0 for key in keys])
        self._start = np.flatnonzero(new)
        self._end = np.append(self._start[1:], len(new))
        self.first = self._turn[self._start]
        self.group = np.empty(len(new), np.int64)
        self.group[self._turn] = np.cumsum(new) - 1

    def least(self, thread: Flat) -> Flat:
        """Return the lowest thread of each group."""
        found: Flat = np.minimum.reduceat(thread[self._turn], self._start)
        return found

    def of_any(self, lanes: Mask) -> Mask:
        """Return the groups of some lanes."""
        found: Mask = np.logical_or.reduceat(lanes[self._turn], self._start)
        return found

    def members(self, groups: Flat) -> Iterator[tuple[Flat, Flat]]:
        """Yield every position in ``groups`` with each lane of that group, in pieces."""
        for place, at in pieces(self._start[groups], self._end[groups]):
            yield place, self._turn[at]


class Clocks:
    """Acquired clocks of the threads that access now, by lane.

    They are looked up for each earlier instruction, so that each distinct clock has a number.

    Attributes:
        of: Clock of each thread (global number).
    """

    def __init__(self) -> None:
        self.of: dict[int, VectorClock] = {}
        self._all: list[VectorClock] = []
        self._numbers: dict[int, int] = {}  # by identity
        self._which = np.zeros(0, np.int64)

    def missing(self, lanes: Flat, count: int) -> Flat:
        """Return the lanes whose clocks have not been added, out of ``count``."""
        if not len(self._which):
            self._which = np.full(count, -1)
        found: Flat = lanes[self._which[lanes] < 0]
        return found

    def add(self, lane: int, thread: int, clock: VectorClock) -> None:
        """Add the clock of a lane's thread."""
        self.of[thread] = clock
        number = self._numbers.setdefault(id(clock), len(self._all))
        if number == len(self._all):
            self._all.append(clock)
        self._which[lane] = number

    def groups(self, lanes: Flat) -> Iterator[tuple[VectorClock, Mask]]:
        """Yield the distinct clocks of some lanes, with the lanes of each."""
        which = self._which[lanes]
        for number in dict.fromkeys(which.tolist()):  # in the order of the lanes
            if self._all[number] is not BOTTOM:
                yield self._all[number], which == number
