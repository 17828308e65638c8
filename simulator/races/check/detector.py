"""Race detection: conflicting accesses without happens-before.

Race-free launches are cheap. Shared memory is checked once for each *barrier interval*, and
repeated intervals are cached. A global array is checked only when it is written, and, if it is read
as well, in a dense table of owners. If the cheap check cannot rule out a race, it raises
``EscalateCheck``, and the launch is repeated with full shadow memory for those locations, which
identifies the racing threads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.ptx.module import Instruction

from ...analysis.influence import ForwardSlices
from ...core.geometry import Addresses, Flat, Geometry, Lanes, Mask
from ...events import Observer, Stall
from ...memory.addressing.address_range_cache import AddressRangeCache
from ...memory.event import AccessEvent, CompactAccessEvent
from ...memory.site import PHASE, Granules, Site
from ...memory.storage.spaces import Allocation
from ..accesses import SHARED, Accesses, EscalateCheck, PrecisionPlan, by_block, lanes_of
from ..order.stale_reads import Sectors, cached
from ..report.race_log import RaceLog
from ..shadow.ownership import ArrayAccessFilter, OwnershipTable
from ..shadow.shadow_memory import ShadowMemory
from ..shadow.stored_values import located
from . import exited_blocks
from .barrier_intervals import BarrierIntervals, Memo
from .cross_shard import find_between
from .shadow_check import ShadowChecker
from .shared_memory import SharedMemory
from .sync_observer import SyncObserver
from .uninitialised_shared import Report


class RaceCheck(Observer):
    """Observer of accesses, barriers and fences that detects races.

    Args:
        precision: Arrays (and ``SHARED``) that need a closer check: see ``EscalateCheck``.
        granules: Bytes of a location.
        race_log: The race log.
        uninitialised: Called with reads of uninitialised shared memory.
        exited: Called with accesses to shared memory of blocks that may have exited.
        memo: Cached intervals for this block shape and these checks.

    Attributes:
        order: Happens-before order.
        shared: Checks of shared memory.
    """

    geometry: Geometry

    def __init__(
        self, precision: PrecisionPlan, granules: Granules, shared_bytes: int, race_log: RaceLog,
        steering: ForwardSlices, uninitialised: Report, exited: exited_blocks.Report, races: bool,
        initialised: bool, memo: Memo,
    ) -> None:  # fmt: skip
        self.precision, self.granules, self.race_log, self.races = (
            precision,
            granules,
            race_log,
            races,
        )
        self.shadows: dict[int, ShadowMemory] = {}
        self.arrays: dict[int, Allocation] = {}
        self.owners: dict[int, OwnershipTable] = {}
        self.reaches = AddressRangeCache()
        self.array_filter = ArrayAccessFilter(granules.array)
        self.shadow_checker = ShadowChecker(granules, race_log, steering)
        self.order = SyncObserver(steering)
        reserved = steering.program.layout.reserved
        intervals = BarrierIntervals(
            granules.shared, shared_bytes, races, initialised, memo, reserved
        )
        self.shared = SharedMemory(intervals, self.shadow_checker, uninitialised, exited)

    def start(self, geometry: Geometry) -> None:
        """Begin a batch."""
        self.geometry = geometry
        self.reaches.start(geometry.moves)
        self.order.start(geometry)
        self.shadow_checker.start(geometry, self.order.happens_before, self.order.releases)
        self.shared.start(self.order, SHARED in self.precision)
        for owners in self.owners.values():
            owners.reset_cache()

    def finish(self) -> None:
        """End a batch."""
        self.shared.finish()

    def end(self) -> None:
        """End the launch.

        Raises:
            EscalateCheck: Several threads conflict on locations of an array.
        """
        for number, owners in self.owners.items():
            if owners.has_contention:
                raise EscalateCheck(number, owners.contested)
        if self.shadows or self.shadow_checker.lock_ordered_pairs:
            self.shadow_checker.resolve_lock_ordered_pairs()

    def merge(self, other: RaceCheck) -> None:
        """See ``Observer``.

        Raises:
            EscalateCheck: The two parts conflict on a location.
        """
        self.array_filter.merge(other.array_filter)
        for number, owners in other.owners.items():
            known = self.owners.setdefault(number, owners)
            if known is not owners:
                known.merge(owners)
        other.shadow_checker.resolve_lock_ordered_pairs()
        self.race_log.merge(other.race_log)
        for number, shadow in other.shadows.items():
            mine = self.shadows.setdefault(number, shadow)
            home = self.arrays.setdefault(number, other.arrays[number])
            if mine is not shadow:
                find_between(self.shadow_checker, mine, shadow, home)
                mine.merge(shadow)

    # -- events -------------------------------------------------------------------

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site, space = event.site, event.space
        if not site.counted:
            return
        self.order.now += 1
        if site.operation == PHASE:
            self.shared.need_shadow()
            self.order.arrive_at(event)
        elif site.strong and not site.order and self.races and space != "local":
            self.order.strong_access(event)
        if space in ("shared", "cluster"):
            self.shared.access(event)
        elif space == "global" and self.races:
            self._global(event)
            self.shared.repeats.pass_over(site, self.order.now)

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """See ``Observer``."""
        if self.shared.shadow is not None:
            super().grouped_loads(sites, events)
            return
        self.order.now += len(sites)
        self.shared.grouped_loads(sites, events[0])

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``; read-only arrays and a thread's own locations need no check."""
        site, space = event.site, event.space
        if not site.counted:
            return
        only_read = space == "global" and site.access == "load" and not site.strong
        if space == "local" or (only_read and self.array_filter.reads(event.home.number)):
            self.order.now += 1
        else:
            self.access(event.full)

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``."""
        self.shared.barrier(self.order.barrier(lanes, number))

    def arrive(self, lanes: Mask | None, number: int) -> None:
        """See ``Observer``."""
        self.order.arrive(lanes, number)
        self.shared.arrive()

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """See ``Observer``."""
        self.order.warp_sync(lanes, members)
        self.shared.warp_sync(lanes, members)

    def phase(self, lanes: Mask | None, base: Addresses, offset: int, wait: Instruction) -> None:
        """See ``Observer``."""
        self.order.phase(lanes, base, offset, wait)

    def cluster_arrive(self, lanes: Mask | None, releases: bool) -> None:
        """See ``Observer``."""
        self.shared.cluster_arrive(self.order.cluster_arrive(lanes, releases))

    def cluster_wait(self, lanes: Mask | None) -> None:
        """See ``Observer``."""
        self.shared.cluster_wait(self.order.cluster_wait(lanes))

    def fence(self, lanes: Mask | None, reach: int) -> None:
        """See ``Observer``."""
        self.order.fence(lanes, reach)

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``; the stalled threads' blocks do not exit."""
        self.shared.exits.staying = stall.staying

    # -- global memory ---------------------------------------------------------------

    def _global(self, event: AccessEvent) -> None:
        site, home, g = event.site, event.home, self.geometry
        number = home.number
        precision = self.precision.get(number)
        if precision is None:
            self.array_filter.check(event, g)
            return
        if precision is False and self._owners(home).is_repeat(event):
            return
        granule = self.granules.array
        shift, parts = granule.bit_length() - 1, max(1, site.nbytes // granule)
        if precision is False:
            address, thread = by_block(g, site, event.address, event.mask)
            for first in range(parts):
                places = ((address - home.base) >> shift) + first
                self._owners(home).access(site, places, thread)
            return
        lanes, part, values = located(event, lanes_of(g, event), g, granule)
        place = ((lanes.address - home.base) >> shift) + part
        shadow = self.shadows.get(number)
        if shadow is None:
            shadow = self.shadows[number] = ShadowMemory(g.everyone, g.threads)
            self.arrays[number] = home
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        self.shadow_checker.in_step.access(site, thread, shadow.threads, self.order.now)
        self._load(number, site, lanes, place, thread)
        at = np.flatnonzero(precision[place])
        if not at.size:
            return
        if at.size < len(place):
            lanes, place, thread = lanes.some(at), place[at], thread[at]
            values = None if values is None else values[at]
        self.shadow_checker.check_and_record(
            shadow, event, self.order.now, lanes, place, thread, values
        )

    def _load(self, number: int, site: Site, lanes: Accesses, place: Flat, thread: Flat) -> None:
        """Record a global load that may leave its sectors in L1, if a check needs that."""
        if site.access != "load" or site.strong or not cached(site):
            return
        if self.order.releases.relaxed:
            self.shadow_checker.now = self.order.now
            self.order.releases.blocks()  # what has been noted down is gone through
            sectors = self.shadow_checker.sectors.setdefault(number, Sectors(self.granules.array))
            sectors.load(
                place, self.geometry.blocks[lanes.column], self.shadow_checker.looks(thread)
            )

    def forget(self, home: Allocation, piece: range) -> None:
        """Forget accesses to bytes that are reallocated; earlier users are unrelated."""
        granule = self.granules.array
        places = range(piece.start // granule, -(-piece.stop // granule))
        if home.number in self.owners:
            self.owners[home.number].begin(places)
        if home.number in self.shadows:
            self.shadows[home.number].begin(places)

    def _owners(self, home: Allocation) -> OwnershipTable:
        found = self.owners.get(home.number)
        if found is None:
            size = len(home.buffer) // self.granules.array
            found = self.owners[home.number] = OwnershipTable(size, self.geometry.everyone)
        return found
