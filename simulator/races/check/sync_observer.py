"""Happens-before order of a launch, from its barriers, fences and strong accesses."""

from __future__ import annotations

import functools

import numpy as np

from kernels.ptx.module import Instruction

from ...analysis.influence import ForwardSlices
from ...compile.program import Program
from ...core.geometry import EVERY_LANE, WARP, Addresses, Flat, Geometry, Lanes, Mask, as_mask
from ...isa.decoded import relaxed, roles
from ...isa.table import CLUSTER, INITS, scope
from ...memory.event import AccessEvent
from ...memory.storage.word_ops import unique
from ..accesses import lanes_of
from ..order.happens_before import HappensBefore
from ..order.mbarrier_phases import Key, PhaseArrival, arrivals, at_barriers
from ..order.release_acquire import ReleaseAcquireTracker
from ..order.sync_events import BarrierId, by_block, mbarrier_at
from ..shadow.stored_values import written


class SyncObserver:
    """Vector clocks of the current batch, the release/acquire state of the launch, and the time.

    Attributes:
        now: Time, in events of the launch.
        happens_before: Order within blocks and clusters of the batch.
        releases: Order by fences and strong accesses, of the whole launch.
    """

    geometry: Geometry
    happens_before: HappensBefore
    releases: ReleaseAcquireTracker

    def __init__(self, steering: ForwardSlices) -> None:
        self.steering = steering
        self.now = 0
        self._started = False
        self._arrived: tuple[AccessEvent, list[PhaseArrival]] | None = None

    def start(self, geometry: Geometry) -> None:
        """Begin a batch."""
        self.geometry = geometry
        uses, mixed, loose = self.steering.program.analysis(_cluster_barriers)
        clustered = uses or geometry.clusters.size > 1
        self.happens_before = HappensBefore(geometry, clustered, mixed, loose)
        if not self._started:
            shape = geometry.everyone, geometry.threads, geometry.clusters
            self.releases, self._started = ReleaseAcquireTracker(self.steering, *shape), True

    def barrier(self, lanes: Mask | None, number: int) -> bool:
        """Handle a block barrier; return whether all threads of all blocks took part."""
        self.now += 1
        whole = self.happens_before.barrier(lanes, number, self.now)
        if self.releases.active:
            g = self.geometry
            self.releases.barrier(g.numbers(lanes), self.now, g.whole_blocks(lanes), number)
        return whole

    def arrive(self, lanes: Mask | None, number: int) -> None:
        """Handle ``bar.arrive``."""
        self.now += 1
        self.happens_before.arrive(lanes, number, self.now)
        if self.releases.active:
            for block, here in by_block(self.geometry.numbers(lanes), self.geometry.threads):
                threads = block * self.geometry.threads + here
                self.releases.arrive(threads, self.now, (block, number))

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """Handle ``bar.warp.sync``: each lane synchronises with the lanes of its member mask."""
        self.now += 1
        self.happens_before.warp_sync(lanes, members, self.now)
        if self.releases.fences:
            columns, warps, together = _meeting(self.geometry, lanes, members)
            self.releases.warp_barrier(self.geometry.blocks[columns], warps, together, self.now)

    def phase(self, lanes: Mask | None, base: Addresses, offset: int, wait: Instruction) -> None:
        """Handle lanes that observe a complete phase of an mbarrier."""
        self.now += 1
        for place, threads in at_barriers(self.geometry, lanes, base, offset):
            near = scope(wait) == "cta"
            self.happens_before.wait_at(place, threads, self.now, relaxed(wait), near)
            if not relaxed(wait):
                self._notify_order(place, threads, scope(wait) == "cluster")

    def _notify_order(self, place: Key, threads: Flat, fences: bool = False) -> None:
        """Join the clock of a complete ``mbarrier`` phase into threads of a block.

        ``fences``: the wait has cluster scope; only after such a wait does ptxas invalidate L1.
        """
        if self.releases.active:
            numbers = self._numbers(place[0], threads)
            self.releases.waited(numbers, self.now, self._at(place), fences)

    def _at(self, place: Key) -> BarrierId:
        return mbarrier_at(int(self.geometry.blocks[place[0]]), place[1])

    def arrive_at(self, event: AccessEvent) -> None:
        """Handle arrivals of threads, or of bytes of copies, at mbarriers."""
        hands_on = scope(event.site.instruction) != "cta"
        for arrival in self.arrivals(event):
            self._arrive_at(arrival, hands_on, relaxed(event.site.instruction))

    def arrivals(self, event: AccessEvent) -> list[PhaseArrival]:
        """Return ``mbarrier_phases.arrivals`` of the current event, cached."""
        if self._arrived is None or self._arrived[0] is not event:
            self._arrived = event, list(arrivals(event, self.geometry))
        return self._arrived[1]

    def _arrive_at(self, arrival: PhaseArrival, hands_on: bool, loose: bool) -> None:
        """Handle an arrival at an mbarrier; see ``HappensBefore.arrive_at``; ``loose``: relaxed."""
        self.happens_before.arrive_at(arrival, self.now, hands_on, loose)
        place, threads, column, end = arrival
        far = column != place[0]
        if self.releases.active:
            cut = len(threads) if end is None else end + 1
            numbers = self._numbers(column, threads)
            known = self.happens_before.clocks_of(numbers) if far else None
            at = self._at(place)
            for some, is_end in ((slice(cut), end is not None), (slice(cut, None), False)):
                given = numbers[some] if hands_on or not far else numbers[:0]
                known_clocks = known and known[some]
                if len(given) or is_end:
                    self.releases.arrive(given, self.now, at, is_end, known_clocks, loose)

    def _numbers(self, column: int, threads: Flat) -> Flat:
        """Return the global numbers of threads of a block."""
        numbers: Flat = self.geometry.blocks[column] * self.geometry.threads + threads
        return numbers

    def cluster_arrive(self, lanes: Mask | None, releases: bool) -> bool:
        """Handle ``barrier.cluster.arrive``; return whether all threads arrive with release."""
        self.now += 1
        full, cluster = self.geometry.full(as_mask(lanes)), self.happens_before.cluster
        assert cluster is not None
        cluster.arrive(full, releases, self.now)
        if self.releases.active:
            for at, threads in cluster.phases(full):
                self.releases.arrive(threads, self.now, at, relaxed=not releases)
        return releases and bool(full.all())

    def cluster_wait(self, lanes: Mask | None) -> bool:
        """Handle ``barrier.cluster.wait``; return whether all threads wait."""
        self.now += 1
        full, cluster = self.geometry.full(as_mask(lanes)), self.happens_before.cluster
        assert cluster is not None
        cluster.wait(full, self.now)
        if self.releases.active:
            for at, threads in cluster.phases(full):
                self.releases.waited(threads, self.now, at, fences=True)
        return bool(full.all())

    def make(self, event: AccessEvent) -> None:
        """Handle an access that may initialise mbarriers; relevant in clusters."""
        cluster = self.happens_before.cluster
        if cluster is not None and roles(event.site.instruction).row.phase == "init":
            cluster.make(self.geometry.full(as_mask(event.mask)), self.now)

    def fence(self, lanes: Mask | None, reach: int) -> None:
        """Handle ``membar`` or ``fence``; ``reach``: the number of its scope."""
        self.now += 1
        cluster = self.happens_before.cluster
        if reach == INITS:
            if cluster is not None:
                cluster.fence_made(self.geometry.full(as_mask(lanes)))
            return
        if cluster is not None and reach >= CLUSTER:
            cluster.fence(self.geometry.full(as_mask(lanes)), self.now)
        if (unfenced := self.happens_before.unfenced) is not None:
            full = self.geometry.full(as_mask(lanes))
            for place, heard in unfenced.fence(full, self.now, reach):
                self._notify_order(place, heard)
        if self.releases.acquiring:
            threads = self.geometry.numbers(lanes)
            met, warp = self.happens_before.met_by(threads)
            known = self.happens_before.clocks_of(threads)
            self.releases.fence(threads, self.now, reach, met, warp, known)

    def strong_access(self, event: AccessEvent) -> None:
        """Handle a strong access, which may release and acquire, lane after lane.

        The order is block by block with ascending threads, as in ``atomics``.
        """
        g, site, releases = self.geometry, event.site, self.releases
        if not releases.acquiring or (event.space == "shared" and not releases.is_near_logged):
            return
        lanes = lanes_of(g, event)
        blocks = g.blocks[lanes.column]
        thread = blocks * g.threads + lanes.thread
        if not thread.size:
            return
        place = lanes.address
        if event.space != "global":
            place = -1 - (g.blocks[lanes.home] << 32 | lanes.address)
        turn = np.empty(len(thread), np.int64)
        turn[np.lexsort((lanes.thread, lanes.column))] = np.arange(len(thread))
        met, warp = self.happens_before.last_barrier_epochs(lanes.thread, lanes.column)
        known = self.happens_before.clocks_of(thread) if site.releases or site.acquires else None
        vain = None
        if site.operation == "cas":
            assert event.old is not None
            assert event.values is not None
            pairs = zip(event.old, event.values, strict=False)  # the comparands come first
            other = functools.reduce(np.logical_or, (old != given for old, given in pairs))
            other = np.broadcast_to(other, g.shape).reshape(g.threads, g.columns)
            vain = other[lanes.thread, lanes.column]
        values = written(event, lanes, g, 0, site.size) if site.access == "atomic" else None
        silent = None if values is None else values == 1
        releases.access(site, place, thread, self.now + turn, met, warp, known, vain, silent)
        self.now += len(thread)  # the access is known by the time after its last turn


def _cluster_barriers(program: Program) -> tuple[bool, bool, bool]:
    """Whether a program has cluster barriers, relaxed ones, and any relaxed arrival or wait."""
    terminators = [block.block.end for block in program.blocks if block.cluster]
    mixed = any(end and end.has("relaxed") for end in terminators)
    at_phases = (site.instruction for site in program.sites if roles(site.instruction).row.phase)
    return bool(terminators), mixed, mixed or any(map(relaxed, at_phases))


def _meeting(g: Geometry, lanes: Mask | None, members: Lanes) -> tuple[Flat, Flat, Flat]:
    """Return the lanes that meet at a ``bar.warp.sync``: column, warp number, and lane bits.

    A lane meets the lanes of its member mask that arrive; exited lanes do not.
    """
    on = EVERY_LANE if lanes is None else lanes
    bits = np.broadcast_to(g.warp_bits(on), (g.warps, g.columns))
    thread, column = np.nonzero(g.full(on))
    warp = thread // WARP
    together = g.full(members)[thread, column].astype(np.int64) & bits[warp, column]
    # A lane that names others than these do meets them, and they do not meet it.
    found = unique((column * g.warps + warp) << 32 | together)
    at, together = found >> 32, found & 0xFFFFFFFF
    return at // g.warps, at % g.warps, together
