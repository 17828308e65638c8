"""Reads of shared memory that nothing had written yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..geometry import Flat
from ..memory.site import Site
from .accesses import Accesses
from .happens_before import HappensBefore
from .shadow import Shadow

Report = Callable[[Site, Flat, Flat, Flat], None]
"""Takes the instruction; addresses, threads of the block, and columns, one a read."""


class Unwritten:
    """Such reads since the block last met: told when it is clear that they are no race.

    Where another thread writes the location with nothing between the two, which of them
    comes first is a matter of the schedule: that is the race, and reported as one.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self._reads: list[tuple[Site, Flat, Flat, int, Flat, Flat, Flat]] = []

    def add(
        self, site: Site, lanes: Accesses, at: Flat, place: Flat, thread: Flat, now: int
    ) -> None:
        """Some lanes (numbers: ``at``) read locations, global threads given."""
        where = lanes.address[at], lanes.thread[at], lanes.column[at]
        self._reads.append((site, place, thread, now, *where))

    def tell(self, shadow: Shadow, happens_before: HappensBefore) -> None:
        """Report them; before ``shadow`` is cleared."""
        for site, place, thread, now, address, number, column in self._reads:
            left = np.ones(len(place), bool)
            if not happens_before.partly:  # else a barrier of a part may have ordered them
                for history in shadow.histories.values():
                    if history.site.access != "load":
                        left &= ~shadow.others_since(history, place, thread, now)
            if left.any():
                self.report(site, address[left], number[left], column[left])
        self._reads = []
