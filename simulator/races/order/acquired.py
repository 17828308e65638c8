"""Acquired clocks of threads, by the instruction that read, and their propagation in a block."""

import bisect
from collections.abc import Callable, Iterator, Mapping, Set

import numpy as np

from ...core.geometry import WARP
from .thread_clock import ThreadClock
from .vector_clock import BOTTOM, VectorClock


class AcquiredClock:
    """Acquired vector clocks, by the acquiring instruction: see ``ForwardSlices.guards``."""

    __slots__ = ("_through", "by_site")

    def __init__(self, by_site: Mapping[int, VectorClock]) -> None:
        self.by_site = by_site
        self._through: dict[Set[int], VectorClock] = {}

    def merge(self, other: "AcquiredClock") -> "AcquiredClock":
        """Return the join of two; one of them if it covers the other."""
        if other is self or not other.by_site:
            return self
        if not self.by_site:
            return other
        made = dict(self.by_site)
        for site, clock in other.by_site.items():
            made[site] = made.get(site, BOTTOM).merge(clock)
        for one in (self, other):
            if len(made) == len(one.by_site) and all(
                one.by_site.get(site) is clock for site, clock in made.items()
            ):
                return one
        return AcquiredClock(made)

    def without_writes(self, is_covered: Callable[[int, int], bool]) -> "AcquiredClock":
        """Return the clocks without the strong writes (``VectorClock.without_writes``)."""
        made = {site: clock.without_writes(is_covered) for site, clock in self.by_site.items()}
        made = {site: clock for site, clock in made.items() if clock is not BOTTOM}
        return AcquiredClock(made) if made else NONE

    def through(self, sites: Set[int]) -> VectorClock:
        """Return the join of what the reads of some instructions acquired."""
        found = self._through.get(sites)
        if found is None:
            found = BOTTOM
            for site, clock in self.by_site.items():
                if site in sites:
                    found = found.merge(clock)
            self._through[sites] = found
        return found


NONE = AcquiredClock({})


class _Since:
    """Acquires of a block's threads since its last barrier: cumulative clocks with their times."""

    def __init__(self, threads: int) -> None:
        self.by_lane: dict[int, list[tuple[int, AcquiredClock]]] = {}
        self._first = np.full(threads, 1 << 62)

    def add(self, lane: int, now: int, acquired: AcquiredClock, heard: int) -> None:
        """Record an acquire; the block's other threads know of the lane up to ``heard``."""
        mine = self.by_lane.setdefault(lane, [])
        if not mine:
            self._first[lane] = now
        else:
            acquired = mine[-1][1].merge(acquired)
            if acquired is mine[-1][1]:
                return
            if mine[-1][0] > heard:
                mine.pop()
        mine.append((now, acquired))

    def clocks_at(self, lane: int, clock: ThreadClock) -> Iterator[AcquiredClock]:
        """Yield what other threads had acquired by the times in a thread's clock."""
        row = clock.row(len(self._first))
        for other in np.flatnonzero(row >= self._first).tolist():
            times = self.by_lane[other]
            at = bisect.bisect_right(times, row[other], key=lambda entry: entry[0])
            if other != lane and at:
                yield times[at - 1][1]


class AcquireLog:
    """Acquired clocks of all threads (global numbers) of a launch.

    Args:
        threads: Threads of a block.

    Attributes:
        since: For each block, acquires since its last barrier.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.since: dict[int, _Since] = {}
        self._together: dict[int, AcquiredClock] = {}

    def add(self, thread: int, now: int, acquired: AcquiredClock, heard: int) -> None:
        """Record an acquire of a thread with which its block has synchronised up to ``heard``."""
        block, lane = divmod(thread, self.threads)
        if block not in self.since:
            self.since[block] = _Since(self.threads)
        self.since[block].add(lane, now, acquired, heard)

    def all_of(self, block: int) -> AcquiredClock:
        """Return the join of everything that a block's threads have acquired."""
        found = self.together(block)
        for acquired in self.since[block].by_lane.values() if block in self.since else ():
            found = found.merge(acquired[-1][1])
        return found

    def meet(self, block: int, is_covered: Callable[[int, int], bool]) -> None:
        """Handle a full barrier of a block: every thread acquires what any of them had.

        ``is_covered``: the strong writes that the barrier itself orders.
        """
        if block in self.since:
            found = self.all_of(block).without_writes(is_covered)
            del self.since[block]
            if found is not NONE:
                self._together[block] = found
            else:
                self._together.pop(block, None)

    def together(self, block: int) -> AcquiredClock:
        """Return what all threads of a block had acquired at its last full barrier."""
        return self._together.get(block, NONE)

    def of(self, thread: int, met: int, warp: int, clock: ThreadClock | None) -> AcquiredClock:
        """Return what a thread has acquired, itself and through its block.

        ``met``, ``warp``, ``clock``: as ``ReleaseAcquireTracker.fence`` takes them.
        """
        block, lane = divmod(thread, self.threads)
        found, since = self.together(block), self.since.get(block)
        if since is None:
            return found
        if lane in since.by_lane:
            found = found.merge(since.by_lane[lane][-1][1])
        if clock is None and warp > met:
            clock = ThreadClock(lane // WARP, warp, met, None, None, None)
        if clock is not None:
            for acquired in since.clocks_at(lane, clock):
                found = found.merge(acquired)
        return found

    def blocks(self) -> set[int]:
        """Return the blocks with any acquires."""
        return self._together.keys() | self.since.keys()
