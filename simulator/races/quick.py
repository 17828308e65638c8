"""The quick look at global arrays: most are used in one way only, and cannot race."""

from __future__ import annotations

import numpy as np

from ..geometry import Flat, Geometry
from ..memory.event import Event
from .accesses import LookCloser, flatten
from .owners import all_different


class QuickLook:
    """Only read, only written with one thread an element, or only strong: no race.

    Args:
        granule: Bytes of a location.
    """

    def __init__(self, granule: int) -> None:
        self.granule = granule
        self._touched: dict[int, Flat] = {}
        self._uses: dict[int, str] = {}

    def look(self, event: Event, g: Geometry) -> None:
        """An access of global memory.

        Raises:
            LookCloser: It may race.
        """
        number, site = event.home.number, event.site
        use = "read" if site.access == "load" else "written"
        if site.strong and not site.narrow and not site.volatile:
            use = f"strong {site.size}"
        self._use(number, use)
        if use == "written":
            self._first_touch(event, g)

    def _use(self, number: int, use: str) -> None:
        if self._uses.setdefault(number, use) != use:
            raise LookCloser(number)

    def merge(self, other: QuickLook) -> None:
        """Take over the uses by other threads.

        Raises:
            LookCloser: The two together may race.
        """
        for number, use in other._uses.items():
            self._use(number, use)
        for number, touched in other._touched.items():
            mine = self._touched.setdefault(number, touched)
            if mine is not touched:
                if (mine & touched).any():
                    raise LookCloser(number)
                mine |= touched

    def _first_touch(self, event: Event, g: Geometry) -> None:
        """A write to an array that is only written: is each location written once?"""
        site, home = event.site, event.home
        if event.repeated:
            raise LookCloser(home.number)
        lanes = flatten(g, site, event.address, event.mask, g.columns)
        touched = self._touched.get(home.number)
        if touched is None:
            touched = self._touched[home.number] = np.zeros(len(home.buffer) // self.granule, bool)
        places = (lanes.address - home.base) // self.granule
        if not all_different(places, len(touched)):
            raise LookCloser(home.number)
        for part in range(max(1, site.nbytes // self.granule)):
            where = places + part
            if touched[where].any():
                raise LookCloser(home.number)
            touched[where] = True
