"""Who touched each location: the table behind race detection.

Exact: for every instruction, location and thread the latest access is kept (an earlier one
by the same thread and instruction is ordered before whatever the latest is ordered before).
Instructions that cannot race with the present one are not looked at: reads with reads,
strong accesses with strong ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .site import Site

Ordered = Callable[[Any, Any, Any], Any]
"""(times, threads of the remembered accesses, lane positions) to whether each comes before."""


@dataclass
class Conflict:
    """Pairs of accesses that race, one element a pair.

    Attributes:
        kind: ``raw``, ``war`` or ``waw``.
        place: Location (granule number).
        earlier: The thread remembered; ``later``: the thread now (global numbers).
        earlier_site: Number of the remembered access's instruction.
        lane: Index into the present access's lanes.
        same_instruction: Both belong to one execution of one instruction.
    """

    kind: str
    place: Any
    earlier: Any
    later: Any
    earlier_site: int
    lane: Any
    same_instruction: bool = False


class _History:
    """The accesses of one instruction: keys (location and thread), ascending, and times."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.keys = np.zeros(0, np.int64)
        self.times = np.zeros(0, np.int64)

    def add(self, keys: Any, now: int) -> None:
        fresh = np.unique(keys)
        if len(self.keys) == len(fresh) and np.array_equal(self.keys, fresh):
            self.times[:] = now
            return
        if not len(self.keys) or self.keys[-1] < fresh[0]:
            self.keys = np.concatenate([self.keys, fresh])
            self.times = np.concatenate([self.times, np.full(len(fresh), now)])
            return
        old = ~np.isin(self.keys, fresh, assume_unique=True)
        keys = np.concatenate([self.keys[old], fresh])
        times = np.concatenate([self.times[old], np.full(len(fresh), now)])
        order = np.argsort(keys, kind="stable")
        self.keys, self.times = keys[order], times[order]


class Shadow:
    """The table for one array, or for shared memory.

    Args:
        threads: Upper bound of the thread numbers.
    """

    def __init__(self, threads: int) -> None:
        self.threads = np.int64(threads)
        self.histories: dict[int, _History] = {}

    def clear(self) -> None:
        """Everything so far is ordered before everything to come."""
        self.histories = {}

    def access(
        self, site: Site, place: Any, thread: Any, now: int, ordered: Ordered
    ) -> list[Conflict]:
        """One access of many lanes, one location each.

        Args:
            site: The instruction.
            place: Locations, 1-D.
            thread: Who, as numbers below ``threads``.
            now: The time.
            ordered: Tells whether a remembered access comes before a lane's.
        """
        if not len(place):
            return []
        write = site.kind != "load"
        found: list[Conflict] = []
        for history in self.histories.values():
            other = history.site
            if (not write and other.kind == "load") or (site.strong and other.strong):
                continue
            kind = ("waw" if other.kind != "load" else "war") if write else "raw"
            found += self._against(history, kind, place, thread, ordered)
        if write and not site.strong:
            found += self._within(site, place, thread)
        history = self.histories.setdefault(site.number, _History(site))
        history.add(place * self.threads + thread, now)
        return found

    def _against(
        self, history: _History, kind: str, place: Any, thread: Any, ordered: Ordered
    ) -> list[Conflict]:
        low = np.searchsorted(history.keys, place * self.threads)
        high = np.searchsorted(history.keys, (place + 1) * self.threads)
        counts = high - low
        if not counts.any():
            return []
        lane = np.repeat(np.arange(len(place)), counts)
        first = np.cumsum(counts) - counts
        at = np.arange(len(lane)) - first[lane] + low[lane]
        earlier = history.keys[at] % self.threads
        other = earlier != thread[lane]
        lane, at, earlier = lane[other], at[other], earlier[other]
        if not lane.size:
            return []
        clash = ~ordered(history.times[at], earlier, lane)
        if not clash.any():
            return []
        lane, earlier = lane[clash], earlier[clash]
        return [Conflict(kind, place[lane], earlier, thread[lane], history.site.number, lane)]

    def _within(self, site: Site, place: Any, thread: Any) -> list[Conflict]:
        """Lanes of one instruction that write one location."""
        order = np.lexsort((thread, place))
        sorted_place = place[order]
        start = np.searchsorted(sorted_place, sorted_place)
        first, lane = order[start], order
        pair = (first != lane) & (thread[first] != thread[lane])
        if not pair.any():
            return []
        first, lane = first[pair], lane[pair]
        return [Conflict("waw", place[lane], thread[first], thread[lane], site.number, lane, True)]
