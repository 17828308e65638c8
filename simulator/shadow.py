"""Who touched each location last: the table behind race detection.

Exact for detection: of reads and writes that are not ordered with what follows, one of
each is remembered, and whether there was a second one by somebody else (as FastTrack
does for vector clocks: Flanagan and Freund, PLDI 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Ordered = Callable[[Any, Any, Any], Any]
"""(time, thread of the remembered access, lane positions) to whether it comes before."""


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
    earlier_site: Any
    lane: Any
    same_instruction: bool = False


class _Record:
    """The last access of one kind at each location, and whether others are concurrent with it."""

    def __init__(self, size: int) -> None:
        self.thread = np.full(size, -1, np.int64)
        self.time = np.zeros(size, np.int64)
        self.site = np.zeros(size, np.int32)
        self.strong = np.zeros(size, bool)
        self.many = np.zeros(size, bool)
        self.other = np.full(size, -1, np.int64)
        self.other_site = np.zeros(size, np.int32)
        self.other_time = np.zeros(size, np.int64)
        self.all_strong = np.ones(size, bool)


class Shadow:
    """The table for one array, or for shared memory.

    Args:
        size: Number of locations.
    """

    def __init__(self, size: int) -> None:
        self.writes = _Record(size)
        self.reads = _Record(size)

    def access(
        self,
        place: Any,
        thread: Any,
        write: bool,
        strong: bool,
        site: int,
        now: int,
        ordered: Ordered,
    ) -> list[Conflict]:
        """One access of many lanes, one location each.

        Args:
            place: Locations, 1-D.
            thread: Who, as global numbers.
            write: Whether it writes (an atomic does).
            strong: Atomic or volatile: no race with another such access.
            site: The instruction's number.
            now: The time.
            ordered: Tells whether a remembered access comes before a lane's.
        """
        found: list[Conflict] = []
        kind = "waw" if write else "raw"
        found += self._against(self.writes, kind, place, thread, strong, ordered)
        if write:
            found += self._against(self.reads, "war", place, thread, strong, ordered)
            found += self._remember(self.writes, "waw", place, thread, strong, site, now, ordered)
            self.reads.thread[place] = -1
            self.reads.many[place] = False
        else:
            self._remember(self.reads, "", place, thread, strong, site, now, ordered)
        return found

    def _against(
        self, record: _Record, kind: str, place: Any, thread: Any, strong: bool, ordered: Ordered
    ) -> list[Conflict]:
        who = record.thread[place]
        suspect = np.flatnonzero((who >= 0) & ((who != thread) | record.many[place]))
        if not suspect.size:
            return []
        at, me = place[suspect], thread[suspect]
        own = record.thread[at] == me
        earlier = np.where(own, record.other[at], record.thread[at])
        site = np.where(own, record.other_site[at], record.site[at])
        time = np.where(own, record.other_time[at], record.time[at])
        clash = (earlier >= 0) & (earlier != me)
        if strong:
            # Strong accesses do not race with each other; a plain one among them does.
            clash &= ~record.all_strong[at]
        clash[clash] = ~ordered(time[clash], earlier[clash], suspect[clash])
        if not clash.any():
            return []
        lanes = suspect[clash]
        return [Conflict(kind, at[clash], earlier[clash], me[clash], site[clash], lanes)]

    def _remember(
        self, record: _Record, kind: str, place: Any, thread: Any, strong: bool,
        site: int, now: int, ordered: Ordered,
    ) -> list[Conflict]:  # fmt: skip
        who = record.thread[place]
        before = np.flatnonzero((who >= 0) & (who != thread))
        concurrent = np.zeros(len(place), bool)
        if before.size:
            at = place[before]
            concurrent[before] = ~ordered(record.time[at], who[before], before)
        # A thread's own earlier access hides nothing: who was concurrent with it still counts.
        own = np.flatnonzero((who == thread) & record.many[place])
        kept = np.zeros(len(place), bool)
        if own.size:
            at = place[own]
            kept[own] = ~ordered(record.other_time[at], record.other[at], own)
        fresh = ~concurrent & ~kept
        record.many[place] = concurrent | kept
        moved = concurrent
        record.other[place[moved]] = who[moved]
        record.other_site[place[moved]] = record.site[place[moved]]
        record.other_time[place[moved]] = record.time[place[moved]]
        record.all_strong[place[fresh]] = True
        record.all_strong[place] &= strong
        record.thread[place] = thread
        record.time[place] = now
        record.site[place] = site
        record.strong[place] = strong
        # Lanes of this very access at one place: the last one stands in the table.
        last = record.thread[place]
        shared = np.flatnonzero(last != thread)
        if not shared.size:
            return []
        at = place[shared]
        record.many[at] = True
        record.other[at] = thread[shared]
        record.other_site[at] = site
        record.other_time[at] = now
        if strong or not kind:
            return []
        sites = np.full(len(shared), site, np.int32)
        return [Conflict(kind, at, last[shared], thread[shared], sites, shared, True)]
