"""Reads of shared memory that nothing had written yet."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..geometry import Flat
from ..memory.site import Site
from .accesses import Accesses
from .shadow import Ordered, pieces

Report = Callable[[Site, Flat, Flat, Flat, Flat], None]
"""Takes the instruction; addresses, threads of the block, columns, and those of the memory's block,
one a read."""


@dataclass
class _Reads:
    """Reads by one access: the location, thread and lane of each, ascending by location."""

    site: Site
    now: int
    place: Flat
    thread: Flat
    lanes: Accesses
    at: Flat

    def keep(self, which: Flat) -> None:
        """Forget the others."""
        self.place, self.thread, self.at = self.place[which], self.thread[which], self.at[which]


class Unwritten:
    """Such reads since the block last met: told when it is clear that they are no race.

    Where another thread writes the location with nothing between the two, which of them
    comes first is a matter of the schedule: that is the race, and reported as one.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self._reads: list[_Reads] = []

    def add(
        self, site: Site, lanes: Accesses, at: Flat, place: Flat, thread: Flat, now: int
    ) -> None:
        """Some lanes (numbers: ``at``) read locations, global threads given."""
        reads = _Reads(site, now, place, thread, lanes, at)
        reads.keep(np.argsort(place, kind="stable"))
        self._reads.append(reads)

    def overtake(self, site: Site, place: Flat, thread: Flat, ordered: Ordered) -> None:
        """Lanes write locations: reads that no barrier puts before them might have come later.

        Nor does a lock: who takes it first is a matter of the schedule, too. Two atomics are no
        race, and the second sets no more than the first did.
        """
        left = []
        for reads in self._reads:
            if site.access == reads.site.access == "atomic":
                left.append(reads)
                continue
            begin = np.searchsorted(reads.place, place)
            end = np.searchsorted(reads.place, place, "right")
            stays = np.ones(len(reads.place), bool)
            for lane, read in pieces(begin, end):
                other = reads.thread[read] != thread[lane]
                lane, read = lane[other], read[other]
                time = np.full(len(lane), reads.now)
                stays[read[~ordered(time, reads.thread[read], lane)]] = False
            if not stays.all():
                reads.keep(np.flatnonzero(stays))
            if len(reads.place):
                left.append(reads)
        self._reads = left

    def tell(self) -> None:
        """Report those that are left."""
        for reads in self._reads:
            lanes, at = reads.lanes, np.sort(reads.at)
            read = lanes.some(at)
            self.report(reads.site, read.address, read.thread, read.column, read.home)
        self._reads = []
