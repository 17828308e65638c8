"""Race detection: which accesses no barrier, warp barrier or release puts in order.

Cheap where nothing is wrong. Shared memory is judged once for each *interval* (what is
accessed between two barriers), and intervals that repeat are remembered; a global array
costs a look only when it is written, and if it is read as well, a dense table of owners.
Where a quick look finds something suspicious it raises ``LookCloser``, and the launch starts
again with the exact ``Shadow`` table on for those locations, which tells who raced with whom.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..analysis.steering import Steering
from ..events import Observer
from ..geometry import Addresses, Geometry, Lanes, Mask
from ..memory.event import Event, Spread
from ..memory.site import PHASE
from ..memory.spaces import Allocation
from .accesses import SHARED, Accesses, Closer, LookCloser, flatten
from .book import RaceBook
from .exact import ExactLook, find_between
from .happens_before import HappensBefore
from .intervals import Intervals
from .phases import arrivals, at_barriers
from .quick import Owners, QuickLook
from .releases import Releases
from .shadow import Shadow
from .unwritten import Report, Unwritten


class RaceCheck(Observer):
    """Observer of accesses, barriers and fences.

    Args:
        closer: What to look at closely, by array number (and ``SHARED``): see ``LookCloser``.
        granule: Bytes of a location: 4, or the narrowest access of the program.
        book: Where races are written down.
        uninitialised: Called with reads of shared memory that nothing wrote.
        memo: What is known of intervals, for this shape of block and these checks.
    """

    def __init__(
        self,
        closer: Closer,
        granule: int,
        shared_bytes: int,
        book: RaceBook,
        steering: Steering,
        uninitialised: Report,
        races: bool,
        initialised: bool,
        memo: dict[str, Any],
    ) -> None:
        self.closer, self.granule, self.shared_bytes = closer, granule, shared_bytes
        self.book, self.steering, self.uninitialised = book, steering, uninitialised
        self.races, self.initialised = races, initialised
        self.now = 0
        self.releases: Releases | None = None
        self._others: list[Releases] = []
        self.shadows: dict[int, Shadow] = {}
        self.arrays: dict[int, Allocation] = {}
        self.owners: dict[int, Owners] = {}
        self.synchronised = False
        self.quick, self.exact = QuickLook(granule), ExactLook(granule, book, steering)
        self.intervals = Intervals(granule, shared_bytes, races, initialised, memo)

    def start(self, geometry: Geometry) -> None:
        """A new batch begins."""
        self.geometry = geometry
        self.happens_before = HappensBefore(geometry)
        if self.releases is None:
            self.releases = Releases(self.steering, geometry.everyone, geometry.threads)
        self.exact.start(geometry, self.happens_before, self.releases)
        self.shared_shadow: Shadow | None = None
        if SHARED in self.closer and self.shared_bytes:
            places = -(-self.shared_bytes // self.granule) * geometry.columns
            self.shared_shadow = Shadow(geometry.everyone, geometry.threads)
            self.written = np.zeros(places, bool)
        self.unwritten = Unwritten(self.uninitialised)
        for owners in self.owners.values():
            owners.forget()
        self.intervals.start(geometry)

    def finish(self) -> None:
        """The batch is done."""
        if self.shared_shadow is None:
            self.intervals.close()
        else:
            self.unwritten.tell()
            self.book.count("shared", {-1: self.shared_shadow}, not self.synchronised, True)

    def end(self) -> None:
        """The launch is done.

        Raises:
            LookCloser: Locations of an array are contested.
        """
        for number, owners in self.owners.items():
            contested = owners.contested
            if contested.any():
                raise LookCloser(number, contested)
        if not (self.shadows or self.exact.doubts):  # nothing to go through the releases for
            return
        self.exact.settle()
        far = not any(releases.blocks() for releases in (self.releases, *self._others) if releases)
        self.book.count("global", self.shadows, far and not self.synchronised, far)

    def merge(self, other: RaceCheck) -> None:
        """See ``Observer``.

        Raises:
            LookCloser: What neither had to suspect alone, the two have together.
        """
        self.quick.merge(other.quick)
        for number, owners in other.owners.items():
            known = self.owners.setdefault(number, owners)
            if known is not owners:
                known.merge(owners)
        other.exact.settle()
        self.book.merge(other.book)
        for number, shadow in other.shadows.items():
            mine = self.shadows.setdefault(number, shadow)
            home = self.arrays.setdefault(number, other.arrays[number])
            if mine is not shadow:
                find_between(self.exact, mine, shadow, home)
                mine.merge(shadow)
        self.synchronised |= other.synchronised
        self._others += [releases for releases in (other.releases, *other._others) if releases]

    # -- events -------------------------------------------------------------------

    def access(self, event: Event) -> None:
        """See ``Observer``."""
        site, space = event.site, event.space
        if not site.counted:
            return
        self.now += 1
        if site.operation == PHASE:
            if self.shared_shadow is None:
                raise LookCloser(SHARED)
            self.synchronised = True
            for place, threads, end in arrivals(event, self.geometry):
                self.happens_before.arrive_at(place, threads, self.now, end)
        elif site.strong and not site.order and self.races and space in ("shared", "global"):
            self._synchronise(event)
        if space == "shared":
            if self.shared_shadow is None:
                if isinstance(event.address, Spread):
                    raise LookCloser(SHARED)
                self.intervals.add(site, event.address, event.mask)
            else:
                self._shared(event)
        elif space == "global" and self.races:
            self._global(event)

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """A block barrier let lanes go."""
        self.now += 1
        self.synchronised = True
        whole = self.happens_before.barrier(lanes, number, self.now)
        if self.releases is not None and self.releases.active:
            self.releases.barrier(
                self.geometry.numbers(lanes), self.now, self.geometry.whole_blocks(lanes)
            )
        if self.shared_shadow is not None:
            if whole:
                self.unwritten.tell()
                self.shared_shadow.clear()
        elif whole:
            self.intervals.close()
        elif self.shared_bytes:
            raise LookCloser(SHARED)

    def arrive(self, lanes: Mask | None, number: int) -> None:
        """``bar.arrive``."""
        self.now += 1
        self.synchronised = True
        self.happens_before.arrive(lanes, number, self.now)
        if self.shared_bytes and self.shared_shadow is None:
            raise LookCloser(SHARED)

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """``bar.warp.sync``; each lane meets those of its member mask."""
        self.now += 1
        self.synchronised = True
        self.happens_before.warp_sync(lanes, members, self.now)
        if self.shared_shadow is None:
            self.intervals.add(None, members, lanes)

    def phase(self, lanes: Mask | None, base: Addresses, offset: int) -> None:
        """Lanes have seen that a phase of an mbarrier is over."""
        self.now += 1
        self.synchronised = True
        for place, threads in at_barriers(self.geometry, lanes, base, offset):
            self.happens_before.wait_at(place, threads)

    def fence(self, lanes: Mask | None, wide: bool) -> None:
        """``membar``, ``fence``; ``wide``: at device scope or more."""
        self.now += 1
        if self.releases is not None and self.releases.acquiring:
            threads = self.geometry.numbers(lanes)
            self.releases.fence(threads, self.now, wide, self.happens_before.known_by(threads))

    # -- shared memory, with the table ------------------------------------------------

    def _shared(self, event: Event) -> None:
        g, shadow, site = self.geometry, self.shared_shadow, event.site
        assert shadow is not None
        lanes = flatten(g, site, event.address, event.mask, g.columns)
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        for part in range(max(1, site.nbytes // self.granule)):
            place = (lanes.address // self.granule + part) * g.columns + lanes.column
            if self.initialised and site.access != "store":
                missing = ~self.written[place]
                if missing.any():
                    at = np.flatnonzero(missing)
                    self.unwritten.add(site, lanes, at, place[at], thread[at], self.now)
            if site.access != "load":
                self.written[place] = True
            if self.races:
                if site.access != "load":
                    before = self.happens_before.before(lanes.thread, lanes.column)
                    self.unwritten.overtake(site, place, thread, before)
                self.exact.look_up(shadow, event, self.now, lanes, place, thread, part)

    # -- global memory ---------------------------------------------------------------

    def _global(self, event: Event) -> None:
        site, home, g = event.site, event.home, self.geometry
        number = home.number
        closer = self.closer.get(number)
        if closer is None:
            self.quick.look(event, g)
            return
        if closer is False and self._owners(home).seen(event):
            return
        lanes = flatten(g, site, event.address, event.mask, g.columns)
        places = (lanes.address - home.base) // self.granule
        parts = max(1, site.nbytes // self.granule)
        if closer is False:
            thread = g.blocks[lanes.column] * g.threads + lanes.thread
            for part in range(parts):
                self._owners(home).access(site, places + part, thread)
            return
        shadow = self.shadows.get(number)
        if shadow is None:
            shadow = self.shadows[number] = Shadow(g.everyone, g.threads)
            self.arrays[number] = home
        for part in range(parts):
            chosen, where = lanes, places + part
            at = np.flatnonzero(closer[where])
            if not at.size:
                continue
            if at.size < len(where):
                chosen = Accesses(lanes.thread[at], lanes.column[at], lanes.address[at])
                where = where[at]
            thread = g.blocks[chosen.column] * g.threads + chosen.thread
            self.exact.look_up(shadow, event, self.now, chosen, where, thread, part)

    def _owners(self, home: Allocation) -> Owners:
        found = self.owners.get(home.number)
        if found is None:
            found = self.owners[home.number] = Owners(len(home.buffer) // self.granule)
        return found

    def _synchronise(self, event: Event) -> None:
        """A strong access releases and acquires; its lanes take turns.

        Block by block, threads ascending, as ``atomics`` has it.
        """
        g, site, releases = self.geometry, event.site, self.releases
        if releases is None or not releases.acquiring:
            return
        lanes = flatten(g, site, event.address, event.mask, g.columns)
        blocks = g.blocks[lanes.column]
        thread = blocks * g.threads + lanes.thread
        if not thread.size:
            return
        place = lanes.address if event.space == "global" else -1 - (blocks << 32 | lanes.address)
        turn = np.empty(len(thread), np.int64)
        turn[np.lexsort((lanes.thread, lanes.column))] = np.arange(len(thread))
        met, warp = self.happens_before.met(lanes.thread, lanes.column)
        known = self.happens_before.known_by(thread) if site.releases else None
        vain = None
        if site.operation == "cas":
            assert event.old is not None
            assert event.values is not None
            pairs = zip(event.old, event.values, strict=False)  # the comparands come first
            other = functools.reduce(np.logical_or, (old != given for old, given in pairs))
            other = np.broadcast_to(other, g.shape).reshape(g.threads, g.columns)
            vain = other[lanes.thread, lanes.column]
        releases.access(site, place, thread, self.now + turn, met, warp, known, vain)
        self.now += len(thread)  # the access is known by the time after its last turn
