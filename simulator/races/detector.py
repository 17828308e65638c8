"""Race detection: which accesses no barrier, warp barrier or release puts in order.

Cheap where nothing is wrong. Shared memory is judged once for each *interval* (what is
accessed between two barriers), and intervals that repeat are remembered; a global array
costs a look only when it is written, and if it is read as well, a dense table of owners.
Where a quick look finds something suspicious it raises ``LookCloser``, and the launch starts
again with the exact ``Shadow`` table on for those locations, which tells who raced with whom.

Longer: an observer of many events, which are one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from ..analysis.steering import Steering
from ..geometry import Addresses, Flat, Geometry
from ..isa.roles import relaxed, roles
from ..isa.table import scope
from ..memory.event import Event, PickedEvent, Spread
from ..memory.reaches import Reaches
from ..memory.site import PHASE, Granules, Site
from ..memory.spaces import Allocation
from . import exits
from .accesses import SHARED, Accesses, Closer, LookCloser, by_block, lanes_of
from .between import find_between
from .book import RaceBook
from .exact import ExactLook
from .happens_before import HappensBefore
from .intervals import Intervals, Memo
from .looks import Sectors, cached
from .phases import Arrival, arrivals
from .quick import Owners, QuickLook
from .releases import Releases
from .repeats import Repeats
from .shadow import Shadow
from .synchronisation import Synchronisation
from .unwritten import Report, Unwritten
from .written import written


class RaceCheck(Synchronisation):
    """Observer of accesses, barriers and fences.

    Args:
        closer: What to look at closely, by array number (and ``SHARED``): see ``LookCloser``.
        granules: Bytes of a location.
        book: Where races are written down.
        uninitialised: Called with reads of shared memory that nothing wrote.
        exited: Called with accesses to shared memory of blocks that may have left.
        memo: What is known of intervals, for this shape of block and these checks.
    """

    def __init__(
        self, closer: Closer, granules: Granules, shared_bytes: int, book: RaceBook,
        steering: Steering, uninitialised: Report, exited: exits.Report, races: bool,
        initialised: bool, memo: Memo,
    ) -> None:  # fmt: skip
        self.closer, self.granules, self.shared_bytes = closer, granules, shared_bytes
        self.book, self.steering = book, steering
        self.uninitialised, self.exited = uninitialised, exited
        self.races, self.initialised = races, initialised
        self.releases: Releases | None = None
        self._others: list[Releases] = []
        self.shadows: dict[int, Shadow] = {}
        self.arrays: dict[int, Allocation] = {}
        self.owners: dict[int, Owners] = {}
        self.synchronised = False
        self._arrived: tuple[Event, list[Arrival]] | None = None
        self.reaches = Reaches()
        self.quick, self.exact = QuickLook(granules.array), ExactLook(granules, book, steering)
        self._reserved = steering.program.layout.reserved
        self.intervals = Intervals(
            granules.shared, shared_bytes, races, initialised, memo, self._reserved
        )

    def start(self, geometry: Geometry) -> None:
        """A new batch begins."""
        self.geometry = geometry
        self.reaches.start(geometry.moves)
        program, sites = self.steering.program, self.steering.program.sites
        ends = [block.block.end for block in program.blocks if block.cluster]
        mixed = any(end and end.has("relaxed") for end in ends)
        clustered = bool(ends) or geometry.clusters.size > 1
        at_phases = (site.instruction for site in sites if roles(site.instruction).row.phase)
        loose = mixed or any(map(relaxed, at_phases))
        self.happens_before = HappensBefore(geometry, clustered, mixed, loose)
        if self.releases is None:
            shape = geometry.everyone, geometry.threads, geometry.clusters
            self.releases = Releases(self.steering, *shape)
        self.exact.start(geometry, self.happens_before, self.releases)
        self.shared_shadow: Shadow | None = None
        self.repeats = Repeats()
        if SHARED in self.closer and self.shared_bytes:
            places = -(-self.shared_bytes // self.granules.shared) * geometry.columns
            own = 0 if clustered else places
            self.shared_shadow = Shadow(geometry.everyone, geometry.threads, own)
            self.written = np.zeros(places, bool)
            self.written[: self._reserved // self.granules.shared * geometry.columns] = True
        self.unwritten = Unwritten(self.uninitialised)
        self.exits = exits.Exits(geometry)
        for owners in self.owners.values():
            owners.forget()
        self.intervals.start(geometry)

    def finish(self) -> None:
        """The batch is done."""
        if self.shared_shadow is None:
            self.intervals.close()
        else:
            self.unwritten.tell()
            if self.happens_before.cluster is not None and self.races:
                self.exits.look(self.happens_before.cluster, self.releases, self.exited)

    def end(self) -> None:
        """The launch is done.

        Raises:
            LookCloser: Locations of an array are contested.
        """
        for number, owners in self.owners.items():
            if owners.disputed:
                raise LookCloser(number, owners.contested)
        if not (self.shadows or self.exact.doubts):  # nothing to go through the releases for
            return
        self.exact.settle()

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
        self.seen += space in ("shared", "cluster")
        if site.operation == PHASE:
            if self.shared_shadow is None:
                raise LookCloser(SHARED)
            self.synchronised = True
            hands_on = scope(site.instruction) != "cta"
            for arrival in self.arrivals(event):
                self._arrive_at(arrival, hands_on, relaxed(site.instruction))
        elif site.strong and not site.order and self.races and space != "local":
            self._synchronise(event)
        if space in ("shared", "cluster"):
            if self.shared_shadow is None and space == "cluster":
                raise LookCloser(SHARED)
            if self.shared_shadow is None:
                if isinstance(event.address, Spread):
                    raise LookCloser(SHARED)
                self.intervals.add((site,), event.address, event.mask)
            else:
                self._make(event)
                self._shared(event)
        elif space == "global" and self.races:
            self._global(event)
            self.repeats.pass_over(site, self.now)

    def arrivals(self, event: Event) -> list[Arrival]:
        """See ``phases.arrivals``, of the present event."""
        if self._arrived is None or self._arrived[0] is not event:
            self._arrived = event, list(arrivals(event, self.geometry))
        return self._arrived[1]

    def loads(self, sites: tuple[Site, ...], events: Sequence[Event]) -> None:
        """See ``Observer``."""
        if self.shared_shadow is not None:
            super().loads(sites, events)
            return
        self.now += len(sites)
        self.seen += len(sites)
        self.intervals.add(sites, cast(Addresses, events[0].address), events[0].mask)

    def picked(self, event: PickedEvent) -> None:
        """See ``Observer``; what is only read, or a thread's own, need not be looked at."""
        site, space = event.site, event.space
        if not site.counted:
            return
        only_read = space == "global" and site.access == "load" and not site.strong
        if space == "local" or (only_read and self.quick.reads(event.home.number)):
            self.now += 1
        else:
            self.access(event.full)

    # -- shared memory, with the table ------------------------------------------------

    def _shared(self, event: Event) -> None:
        g, shadow, site = self.geometry, self.shared_shadow, event.site
        assert shadow is not None
        lanes = lanes_of(g, event)
        if event.space == "cluster":
            self.exits.access(site, lanes, self.now)
        lanes, part, values = self._locations(event, lanes, self.granules.shared)
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        place = (lanes.address // self.granules.shared + part) * g.columns + lanes.home
        again = self.repeats.again(event, self.now)
        self.exact.in_step.access(site, thread, shadow.threads, self.now)
        if self.initialised and site.access != "store":
            at = np.flatnonzero(~self.written[place])
            if at.size:
                self.unwritten.add(site, lanes, at, place[at], thread[at], self.now)
        if site.access != "load":
            self.written[place] = True
        if self.races:
            if site.access != "load":
                before = self.happens_before.before(lanes.thread, lanes.column)
                self.unwritten.overtake(site, place, thread, before)
            self.exact.look_up(shadow, event, self.now, lanes, place, thread, values, again)

    def _locations(
        self, event: Event, lanes: Accesses, granule: int
    ) -> tuple[Accesses, Flat, Flat | None]:
        """A lane for each location of each; which of its lane's that is; what is left there."""
        offsets = range(0, max(event.site.nbytes, granule), granule)
        values = [written(event, lanes, self.geometry, offset, granule) for offset in offsets]
        left = [one for one in values if one is not None]
        return *lanes.located(event.site, granule), np.concatenate(left) if left else None

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
        granule = self.granules.array
        shift, parts = granule.bit_length() - 1, max(1, site.nbytes // granule)
        if closer is False:
            address, thread = by_block(g, site, event.address, event.mask)
            for first in range(parts):
                places = ((address - home.base) >> shift) + first
                self._owners(home).access(site, places, thread)
            return
        lanes, part, values = self._locations(event, lanes_of(g, event), granule)
        place = ((lanes.address - home.base) >> shift) + part
        shadow = self.shadows.get(number)
        if shadow is None:
            shadow = self.shadows[number] = Shadow(g.everyone, g.threads)
            self.arrays[number] = home
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        self.exact.in_step.access(site, thread, shadow.threads, self.now)
        self._load(number, site, lanes, place, thread)
        at = np.flatnonzero(closer[place])
        if not at.size:
            return
        if at.size < len(place):
            lanes, place, thread = lanes.some(at), place[at], thread[at]
            values = None if values is None else values[at]
        self.exact.look_up(shadow, event, self.now, lanes, place, thread, values)

    def _load(self, number: int, site: Site, lanes: Accesses, place: Flat, thread: Flat) -> None:
        """A load of global memory may leave its sectors in L1, if anything asks for that."""
        if site.access != "load" or site.strong or not cached(site) or self.releases is None:
            return
        if self.releases.relaxed:
            self.exact.now = self.now
            self.releases.blocks()  # what has been noted down is gone through
            sectors = self.exact.sectors.setdefault(number, Sectors(self.granules.array))
            sectors.load(place, self.geometry.blocks[lanes.column], self.exact.looks(thread))

    def forget(self, home: Allocation, piece: range) -> None:
        """Bytes begin a new life: who used them before has nothing to do with it."""
        granule = self.granules.array
        places = range(piece.start // granule, -(-piece.stop // granule))
        if home.number in self.owners:
            self.owners[home.number].begin(places)
        if home.number in self.shadows:
            self.shadows[home.number].begin(places)

    def _owners(self, home: Allocation) -> Owners:
        found = self.owners.get(home.number)
        if found is None:
            size = len(home.buffer) // self.granules.array
            found = self.owners[home.number] = Owners(size, self.geometry.everyone)
        return found
