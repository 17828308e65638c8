"""Race checks of one block that only have to say whether there is anything to report.

So most of what copies in bulk write, and what a ``wgmma`` reads, need not be looked at location by
location: pages tell that it is in order (``pages.py``), and it is only put down. It goes into the
table when something comes for which pages are not enough. What threads do to an ``mbarrier`` does
not race with what others do to it: it is enough that nothing else touches its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..geometry import Flat, Geometry, Mask, as_mask
from ..memory.event import Event, Spread
from ..memory.site import Site
from .accesses import Accesses, dense
from .detector import RaceCheck
from .shadow import clash

_MOST = 1024
"""So many accesses are put down before they go into the table."""
_TILES = 64
"""Accesses whose lanes are kept, to be known when they come again."""
_Reach = tuple[Site, int, int]
"""An instruction, and between which bytes it has accessed some."""


@dataclass
class _Tile:
    """An access to many locations, taken apart once for all times that it comes.

    Attributes:
        where: Its addresses; ``lanes``: with the mask.
        some: Of each page and thread, or warpgroup, one; ``page``: its page.
        places: The locations.
    """

    where: Spread
    lanes: Accesses
    some: Accesses
    page: Flat
    places: Flat | slice
    low: int
    high: int
    threads: Flat

    def of(self, where: Spread, on: Mask | None) -> bool:
        """Whether it is the same access, ``on``: of the lanes that are in a mask."""
        return self.where is where and (on is None or bool(on[self.threads].all()))


class Suspicion(RaceCheck):
    """``RaceCheck`` of one block; ``uninitialised`` is called where there may be anything."""

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        super().start(geometry)
        self._late: dict[object, tuple[Event, _Tile, int]] = {}  # in the order of their times
        self._late_reach: dict[int, _Reach] = {}
        self._phased: dict[int, _Reach] = {}
        self._tiles: dict[int, _Tile] = {}
        self._clashes: dict[tuple[int, int], bool] = {}

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``; where the whole block meets, nothing counts that was before."""
        super().barrier(lanes, number, warps)
        if self.happens_before.block_time[0] == self.now:
            for kept in (self._late, self._late_reach, self._phased):
                kept.clear()

    def _shared(self, event: Event) -> None:
        site = event.site
        low, high = self.reaches.of(event)
        if site.strong and site.order and site.size == 8 and not site.in_bulk:
            if self._phase_only(site, low, high):
                return
        elif any(self._touch(site, low, high, one) for one in self._phased.values()):
            self._suspect()
            return
        elif self.pages is not None and isinstance(event.address, Spread):
            tile = self._tile(event, low, high)
            if self._reads(event, tile) if site.access == "load" else self._fills(event, tile):
                return
        self._catch_up()
        super()._shared(event)

    def _suspect(self) -> None:
        nothing = np.zeros(0, np.int64)
        self.uninitialised(self.steering.program.sites[0], *[nothing] * 4)

    # -- mbarriers -----------------------------------------------------------------------

    def _phase_only(self, site: Site, low: int, high: int) -> bool:
        """Whether nothing but what belongs to mbarriers has touched these bytes."""
        if any(self._touch(site, low, high, one) for one in self._late_reach.values()):
            return False
        assert self.shared_shadow is not None
        granule, threads = self.granules.shared, int(self.shared_shadow.threads)
        first, last = low // granule * threads, -(-high // granule) * threads
        for history in self.shared_shadow.histories.values():
            if history.low < last and first <= history.high and self._clash(site, history.site):
                return False
        if self.initialised and not self.written[low // granule : -(-high // granule)].all():
            return False
        _widen(self._phased, site, low, high)
        return True

    def _touch(self, site: Site, low: int, high: int, reach: _Reach) -> bool:
        other, first, last = reach
        return low < last and first < high and self._clash(site, other)

    def _clash(self, site: Site, other: Site) -> bool:
        key = site.number, other.number
        if key not in self._clashes:
            self._clashes[key] = clash(site, other) not in ("", "scope")
        return self._clashes[key]

    # -- tiles ---------------------------------------------------------------------------

    def _tile(self, event: Event, low: int, high: int) -> _Tile:
        where, g, site = event.address, self.geometry, event.site
        assert isinstance(where, Spread)
        on = None if event.mask is None else g.full(as_mask(event.mask))[:, 0]
        tile = self._tiles.get(id(where))
        if tile is not None and tile.of(where, on):
            return tile
        assert self.pages is not None
        thread, address = where.thread, where.address
        if on is not None and not on[thread].all():
            thread, address = thread[on[thread]], address[on[thread]]
        column, granule = np.zeros(len(thread), np.int64), self.granules.shared
        lanes = Accesses(thread, column, address + np.int64(site.offset), column)
        page = self.pages.of(lanes)
        page, some = np.divmod(_once(page * g.threads + thread), g.threads)
        first, parts = _once(lanes.address // granule), max(1, site.nbytes // granule)
        places = dense(first if parts == 1 else _once(first[:, None] + np.arange(parts)))
        column = np.zeros(len(some), np.int64)
        tile = _Tile(
            where, lanes, Accesses(some, column, page, column), page, places, low, high,
            _once(thread),
        )  # fmt: skip
        if len(self._tiles) >= _TILES:
            del self._tiles[next(iter(self._tiles))]
        self._tiles[id(where)] = tile
        return tile

    def _reads(self, event: Event, tile: _Tile) -> bool:
        """Whether a read in bulk, or of a ``wgmma``, is surely in order; then it is put down."""
        assert self.pages is not None
        sure = self.pages.read(event.site, tile.page, tile.some, self.now)
        written = not self.initialised or bool(self.written[tile.places].all())
        return written and bool(sure.all()) and self._put_down(event, tile)

    def _fills(self, event: Event, tile: _Tile) -> bool:
        """Whether a copy in bulk surely comes after all that was done there; likewise."""
        if self.unwritten.any or event.site.access != "store" or self.pages is None:
            return False
        self.written[tile.places] = True
        sure = self.pages.filled(event.site, tile.page, tile.some, self.now, self.written)
        return bool(sure.all()) and self._put_down(event, tile)

    def _put_down(self, event: Event, tile: _Tile) -> bool:
        site = event.site
        key = site.number, id(tile)
        self._late.pop(key, None)
        self._late[key] = event, tile, self.now
        _widen(self._late_reach, site, tile.low, tile.high)
        if len(self._late) > _MOST:
            self._catch_up()
        return True

    def _catch_up(self) -> None:
        """What was put down goes into the table."""
        late, self._late = self._late, {}
        self._late_reach.clear()
        shadow, granule = self.shared_shadow, self.granules.shared
        assert shadow is not None
        for event, tile, now in late.values():
            site = event.site
            lanes, part = tile.lanes.located(site, granule)
            place = lanes.address // granule + part
            thread = self.geometry.blocks[0] * self.geometry.threads + lanes.thread
            values, since = None, np.zeros(len(place), np.int64)
            if site.access != "load":
                values = np.zeros(len(place), np.uint64)
                if shadow.newest is not None:
                    known = self.happens_before.horizon
                    shadow.newest.access(site, place, lanes, now, known)
            shadow.remember(site, place, thread, now, values, since)


def _once(keys: Flat) -> Flat:
    """Small numbers, each once, ascending; in a fifth of the time of sorting."""
    table = np.zeros(int(keys.max(initial=-1)) + 1, bool)
    table[keys] = True
    return np.flatnonzero(table)


def _widen(reaches: dict[int, _Reach], site: Site, low: int, high: int) -> None:
    _, first, last = reaches.get(site.number, (site, low, high))
    reaches[site.number] = site, min(low, first), max(high, last)
