"""What threads have acquired, by the instruction that read it, and what of it their block knows."""

import bisect
from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np

from ...core.geometry import WARP
from .thread_clock import ThreadClock
from .vector_clock import BOTTOM, VectorClock


class AcquiredClock:
    """What has been acquired, by the instruction that read it: see ``ForwardSlices.guards``."""

    __slots__ = ("_through", "by_site")

    def __init__(self, by_site: Mapping[int, VectorClock]) -> None:
        self.by_site = by_site
        self._through: dict[Set[int], VectorClock] = {}

    def merge(self, other: "AcquiredClock") -> "AcquiredClock":
        """What either has; one of the two, if it has all."""
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

    def through(self, sites: Set[int]) -> VectorClock:
        """What some instructions' reads have brought."""
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
    """What threads of a block have acquired since it met: all that each has, and by when."""

    def __init__(self, threads: int) -> None:
        self.by_lane: dict[int, list[tuple[int, AcquiredClock]]] = {}
        self._first = np.full(threads, 1 << 62)

    def add(self, lane: int, now: int, acquired: AcquiredClock, heard: int) -> None:
        """Others of the block have heard of a thread up to ``heard`` at most."""
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
        """What others have acquired up to when a thread has seen them."""
        row = clock.row(len(self._first))
        for other in np.flatnonzero(row >= self._first).tolist():
            times = self.by_lane[other]
            at = bisect.bisect_right(times, row[other], key=lambda entry: entry[0])
            if other != lane and at:
                yield times[at - 1][1]


class AcquireLog:
    """What threads (global numbers) of a launch have acquired.

    Args:
        threads: Of a block.

    Attributes:
        since: By block, what its threads have acquired since it met last.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.since: dict[int, _Since] = {}
        self._together: dict[int, AcquiredClock] = {}

    def add(self, thread: int, now: int, acquired: AcquiredClock, heard: int) -> None:
        """A thread of which others of its block have heard up to ``heard`` acquires something."""
        block, lane = divmod(thread, self.threads)
        if block not in self.since:
            self.since[block] = _Since(self.threads)
        self.since[block].add(lane, now, acquired, heard)

    def all_of(self, block: int) -> AcquiredClock:
        """What threads of a block have acquired, all together."""
        found = self.together(block)
        for acquired in self.since[block].by_lane.values() if block in self.since else ():
            found = found.merge(acquired[-1][1])
        return found

    def meet(self, blocks: Sequence[int]) -> None:
        """Whole blocks know now what each of their threads did."""
        for block in blocks:
            if block in self.since:
                self._together[block] = self.all_of(block)
                del self.since[block]

    def together(self, block: int) -> AcquiredClock:
        """What all threads of a block had acquired when it met last."""
        return self._together.get(block, NONE)

    def of(self, thread: int, met: int, warp: int, clock: ThreadClock | None) -> AcquiredClock:
        """What a thread has acquired, and its block's others up to when it has seen them.

        ``met``, ``warp``, ``seen``: as ``ReleaseAcquireTracker.fence`` takes them.
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
        """The blocks in which something has been acquired."""
        return self._together.keys() | self.since.keys()
