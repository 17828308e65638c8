"""Race checks of shared memory, by barrier intervals or by shadow memory."""

from __future__ import annotations

from typing import cast

import numpy as np

from ...core.geometry import Addresses, Lanes, Mask
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import Site
from ..accesses import SHARED, EscalateCheck, lanes_of
from ..shadow.repeated_loads import Repeats
from ..shadow.shadow_memory import ShadowMemory
from ..shadow.stored_values import located
from . import exited_blocks
from .barrier_intervals import BarrierIntervals
from .shadow_check import ShadowChecker
from .sync_observer import SyncObserver
from .uninitialised_shared import Report, UninitialisedReads


class SharedMemory:
    """Race checks of the shared memory of a batch's blocks.

    Args:
        intervals: The check by barrier intervals, used until shadow memory is needed.
        shadow_checker: The check by shadow memory.
        uninitialised: Called with reads of uninitialised memory.
        exited: Called with accesses to memory of blocks that may have exited.

    Attributes:
        order: Happens-before order.
        shadow: Shadow memory, if it is enabled.
        written: Whether each location has been written, with shadow memory.
    """

    order: SyncObserver

    def __init__(
        self,
        intervals: BarrierIntervals,
        shadow_checker: ShadowChecker,
        uninitialised: Report,
        exited: exited_blocks.Report,
    ) -> None:  # fmt: skip
        self.intervals, self.shadow_checker = intervals, shadow_checker
        self.uninitialised, self.exited = uninitialised, exited
        self.granule, self.nbytes = intervals.granule, intervals.shared_bytes
        self.races, self.initialised = intervals.races, intervals.initialised
        self._accesses, self._arrived = 0, -1

    def start(self, order: SyncObserver, exactly: bool) -> None:
        """Begin a batch; ``exactly``: with shadow memory."""
        self.order, g = order, order.geometry
        self.shadow: ShadowMemory | None = None
        self.repeats = Repeats()
        if exactly and self.nbytes:
            places = -(-self.nbytes // self.granule) * g.columns
            own = places if order.happens_before.cluster is None else 0
            self.shadow = ShadowMemory(g.everyone, g.threads, own)
            self.written = np.zeros(places, bool)
            self.written[: self.intervals.reserved // self.granule * g.columns] = True
        self.uninitialised_reads = UninitialisedReads(self.uninitialised)
        self.exits = exited_blocks.Exits(g)
        self.intervals.start(g)

    def finish(self) -> None:
        """Check the last interval of a batch."""
        if self.shadow is None:
            self.intervals.close()
            return
        self.uninitialised_reads.report_all()
        cluster = self.order.happens_before.cluster
        if cluster is not None and self.races:
            self.exits.check(cluster, self.order.releases, self.exited)

    def need_shadow(self) -> None:
        """Continue with shadow memory only.

        Raises:
            EscalateCheck: Shadow memory is not enabled.
        """
        if self.shadow is None:
            raise EscalateCheck(SHARED)

    # -- barriers ---------------------------------------------------------------------

    def barrier(self, whole: bool) -> None:
        """Handle a block barrier; ``whole``: of all threads of all blocks."""
        if not whole:
            self.arrive()
        elif self.shadow is None:
            self.intervals.close()
        else:
            self.uninitialised_reads.report_all()
            if self.order.geometry.clusters.size == 1:
                self.shadow.clear()
                self.repeats.meet(self.order.now)

    def arrive(self) -> None:
        """Handle an arrival without a wait, which ends no interval."""
        if self.nbytes:
            self.need_shadow()

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """Handle ``bar.warp.sync``."""
        if self.shadow is None:
            self.intervals.add((), members, lanes)

    def cluster_arrive(self, whole: bool) -> None:
        """Handle ``barrier.cluster.arrive``; ``whole``: all threads arrive with release."""
        self._arrived = self._accesses if whole else -1

    def cluster_wait(self, whole: bool) -> None:
        """Handle ``barrier.cluster.wait``; ``whole``: all threads wait.

        If all threads have arrived since the last access, it is a barrier of all blocks.
        """
        if not whole or self._arrived != self._accesses:
            self.arrive()
        elif self.shadow is None:
            self.intervals.close()
        else:
            self.uninitialised_reads.report_all()
            self.shadow.clear()

    # -- accesses ---------------------------------------------------------------------

    def grouped_loads(self, sites: tuple[Site, ...], first: AccessEvent) -> None:
        """Handle loads from one base without shadow memory; ``first``: the first of them."""
        self._accesses += len(sites)
        self.intervals.add(sites, cast(Addresses, first.address), first.mask)

    def access(self, event: AccessEvent) -> None:
        """Handle an access to shared memory of this block or of another block of the cluster."""
        self._accesses += 1
        if self.shadow is not None:
            self.order.make(event)
            self._access(event, self.shadow)
        elif event.space == "cluster" or isinstance(event.address, LaneAddressList):
            self.need_shadow()
        else:
            self.intervals.add((event.site,), event.address, event.mask)

    def _access(self, event: AccessEvent, shadow: ShadowMemory) -> None:
        g, site, now = self.order.geometry, event.site, self.order.now
        lanes = lanes_of(g, event)
        if event.space == "cluster":
            self.exits.access(site, lanes, now)
        lanes, part, values = located(event, lanes, g, self.granule)
        thread = g.blocks[lanes.column] * g.threads + lanes.thread
        place = (lanes.address // self.granule + part) * g.columns + lanes.home
        again = self.repeats.again(event, now)
        self.shadow_checker.in_step.access(site, thread, shadow.threads, now)
        if self.initialised and site.access != "store":
            at = np.flatnonzero(~self.written[place])
            if at.size:
                self.uninitialised_reads.add(site, lanes, at, place[at], thread[at], now)
        if site.access != "load":
            self.written[place] = True
        if self.races:
            if site.access != "load":
                before = self.order.happens_before.before(lanes.thread, lanes.column)
                self.uninitialised_reads.drop_racing(site, place, thread, before)
            self.shadow_checker.check_and_record(
                shadow, event, now, lanes, place, thread, values, again
            )
