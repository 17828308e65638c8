"""Reads of shared memory that nothing had written yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..memory.site import Site
from .happens_before import Order
from .lanes import Lanes
from .shadow import Shadow

Report = Callable[[Site, Any, Any, Any], None]
"""Takes the instruction; addresses, threads of the block, and columns, one a read."""


class Unwritten:
    """Such reads since the block last met: told when it is clear that they are no race.

    Where another thread writes the location with nothing between the two, which of them
    comes first is a matter of the schedule: that is the race, and reported as one.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self._reads: list[tuple[Site, Any, Any, int, Any, Any, Any]] = []

    def add(self, site: Site, lanes: Lanes, at: Any, place: Any, thread: Any, now: int) -> None:
        """Some lanes (numbers: ``at``) read locations, global threads given."""
        where = lanes.address[at], lanes.thread[at], lanes.column[at]
        self._reads.append((site, place, thread, now, *where))

    def tell(self, shadow: Shadow, order: Order) -> None:
        """Report them; before ``shadow`` is cleared."""
        for site, place, thread, now, address, number, column in self._reads:
            left = np.ones(len(place), bool)
            if not order.partly:  # else a barrier of a part may have ordered them
                for history in shadow.histories.values():
                    if history.site.kind != "load":
                        left &= ~shadow.others_since(history, place, thread, now)
            if left.any():
                self.report(site, address[left], number[left], column[left])
        self._reads = []
