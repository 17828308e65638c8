"""Shared memory by pages: what copies in bulk fill, and warps read, is judged a page at once.

A tile that a copy brings is written by one thread and read by hundreds, and what they know of
each other is the same for all of it. So it is enough to hold each thread that reads against the
last write of the page, and a copy against when each thread read there; only pages of which that
does not show the order have to be looked at location by location.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..geometry import GROUP, Flat, Geometry, Mask, as_mask
from ..memory.event import Event, Spread
from ..memory.site import Site
from ..memory.words import changes, distinct
from .accesses import Accesses, lanes_of
from .happens_before import HappensBefore
from .newest import Newest
from .shadow import Shadow

_PAGES = 64
"""About so many pages has a block's memory; of one block alone four times as many: tiles that share
a page do so at its cost."""
_LEAST = 128
"""Bytes of a page, at least."""
_MOST = 512
"""Products that nobody has waited for of which is kept what they have read."""
_EVER = np.int64(np.iinfo(np.int64).max)


class _Begun(NamedTuple):
    """What a product has read: of each lane the page, the warpgroup, and the key in a history."""

    event: Event
    page: Flat
    group: Flat
    keys: Flat
    now: int


def copied_to(sites: Iterable[Site]) -> bool:
    """Whether copies in bulk write any memory: where none does, pages are no help."""
    return any(site.in_bulk and site.access == "store" for site in sites)


class Pages:
    """Who wrote each page last, and when each thread has read there.

    Args:
        nbytes: Of a block's shared memory; of which the locations have ``granule``.
    """

    def __init__(self, geometry: Geometry, nbytes: int, granule: int, order: HappensBefore) -> None:
        self._geometry, self._granule, self._order = geometry, granule, order
        pages = _PAGES if geometry.columns > 1 else 4 * _PAGES
        page = max(_LEAST, 1 << (-(-nbytes // pages) - 1).bit_length())
        self._shift = page.bit_length() - 1
        self._starts = np.arange(0, -(-nbytes // granule), page // granule)  # locations
        count, threads = len(self._starts) * geometry.columns, geometry.threads
        self._last = Newest(count)
        self._written = np.zeros(count, bool)  # all of it
        self._read: NDArray[np.int64] = np.zeros((count, threads), np.int64)
        self._multiplied: NDArray[np.int64] | None = None  # by the warpgroup
        self._begun: dict[int, _Begun] = {}

    def look(self, event: Event, shadow: Shadow, now: int) -> Accesses | None:
        """An access, but what copies in bulk write; the lanes that are to be looked at closer.

        Reads that surely race with nothing, and find nothing unwritten, are remembered here.
        """
        site, g = event.site, self._geometry
        if self._again(event, shadow, now):
            return None
        lanes = lanes_of(g, event)
        if site.access != "load":
            if not isinstance(event.address, Spread):
                self._last.access(site, self.of(lanes), lanes, now, self._order.horizon)
            return lanes
        page = self.of(lanes)
        sure = self._read_by(site, page, lanes, now)
        if not sure.any():
            return lanes
        whole = bool(sure.all())
        known = lanes if whole else lanes.some(np.flatnonzero(sure))
        place = known.address // self._granule * g.columns + known.home
        keys = place * shadow.threads + g.blocks[known.column] * g.threads + known.thread
        self._remember(site, shadow, keys, now)
        if whole and site.queue == "product":
            self._begun[id(event.address)] = _Begun(event, page, lanes.thread // GROUP, keys, now)
            if len(self._begun) > _MOST:
                del self._begun[next(iter(self._begun))]
        return None if whole else lanes.some(np.flatnonzero(~sure))

    def _again(self, event: Event, shadow: Shadow, now: int) -> bool:
        """A product has been waited for: what knew of all writes does, if no more has come."""
        begun = self._begun.pop(id(event.address), None)
        if begun is None or begun.event.site is not event.site or self._multiplied is None:
            return False
        then, mask = begun.event.mask, event.mask
        if then is not mask:
            one, other = (self._geometry.full(as_mask(part)) for part in (then, mask))
            if not np.array_equal(one, other):
                return False
        if not self._last.older(begun.page, begun.now):
            return False
        self._multiplied[begun.page, begun.group] = now
        self._remember(event.site, shadow, begun.keys, now)
        return True

    def _remember(self, site: Site, shadow: Shadow, keys: Flat, now: int) -> None:
        parts = max(1, site.nbytes // self._granule)
        shadow.remember_reads(site, keys, now, parts, self._geometry.columns)

    def _read_by(self, site: Site, page: Flat, lanes: Accesses, now: int) -> Mask:
        return self.read(site, page, lanes, now) & self._written[page]

    def read(self, site: Site, page: Flat, lanes: Accesses, now: int) -> Mask:
        """Lanes read pages each; which surely race with no write."""
        if site.queue == "product":
            if self._multiplied is None:
                groups = -(-self._geometry.threads // GROUP)
                self._multiplied = np.zeros((len(self._read), groups), np.int64)
            self._multiplied[page, lanes.thread // GROUP] = now
        else:
            self._read[page, lanes.thread] = now
        return self._last.access(site, page, lanes, now, self._order.horizon)

    def fill(self, event: Event, lanes: Accesses, now: int, written: Mask) -> Mask | None:
        """Copies in bulk write; which lanes surely come after all that was read there.

        ``written``: of each location, whether it is. ``None``: it is another access.
        """
        if event.site.access == "load" or not isinstance(event.address, Spread):
            return None
        page, threads = self.of(lanes), self._geometry.threads
        key = page * threads + lanes.thread
        keys = distinct(changes(key))
        page, thread = np.divmod(keys, threads)
        column = page % self._geometry.columns
        some = Accesses(thread, column, page, column)
        self._last.access(event.site, page, some, now, self._order.horizon)
        self._fill_up(written)
        return self._after(page, some)[np.searchsorted(keys, key)]

    def filled(self, site: Site, page: Flat, lanes: Accesses, now: int, written: Mask) -> Mask:
        """Copies in bulk write to pages: which surely come after all that was done there."""
        known = self._last.access(site, page, lanes, now, self._order.horizon)
        if not self._written[page].all():
            self._fill_up(written)
        return known & self._after(page, lanes)

    def _fill_up(self, written: Mask) -> None:
        rows = written.reshape(-1, self._geometry.columns)
        self._written = np.logical_and.reduceat(rows, self._starts, axis=0).reshape(-1)

    def of(self, lanes: Accesses) -> Flat:
        """The page of each lane."""
        return (lanes.address >> self._shift) * self._geometry.columns + lanes.home

    def _after(self, page: Flat, lanes: Accesses) -> Mask:
        """Whether lanes know of all that was read of a page each."""
        threads = self._geometry.threads
        who, which = np.unique(lanes.column * threads + lanes.thread, return_inverse=True)
        column, mine = (np.repeat(part, threads) for part in np.divmod(who, threads))
        other = np.tile(np.arange(threads), len(who))
        seen = self._order.horizon(other, mine, column)
        seen[other == mine] = _EVER
        seen = seen.reshape(len(who), threads)
        after = (self._read[page] <= seen[which]).all(axis=1)
        if self._multiplied is not None:  # whoever of a warpgroup has waited tells for all
            starts = np.arange(0, threads, GROUP)
            seen = np.maximum.reduceat(seen, starts, axis=1)
            after &= (self._multiplied[page] <= seen[which]).all(axis=1)
        return np.asarray(after)
