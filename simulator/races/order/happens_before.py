"""Happens-before within blocks and clusters, by vector clocks.

Every event of a launch has a time, and every thread a vector clock: for each other thread, the
epoch up to which that thread's accesses happen before its own next access. Block barriers are
tracked per pair of warps and ``bar.warp.sync`` per pair of lanes, both transitively.
``release_acquire`` adds the order of fences, flags and locks.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import EVERY_LANE, GROUP, WARP, Flat, Geometry, Lanes, Mask, Rows, as_mask
from .cluster_clocks import ClusterClocks
from .mbarrier_phases import Key, Known, PhaseArrival, Phases
from .named_barriers import NamedBarrierArrivals, Pairs
from .relaxed_mbarrier import Over, RelaxedMbarriers
from .thread_clock import ThreadClock
from .vector_clock import Ordered


class HappensBefore:
    """Happens-before order within the blocks of one batch, or within their clusters.

    ``clustered``: whether clusters are tracked. ``mixed``: see ``ClusterClocks``. ``relaxed``:
    whether the program uses ``.relaxed`` operations of ``mbarrier``.
    """

    def __init__(
        self, geometry: Geometry, clustered: bool = False, mixed: bool = False,
        relaxed: bool = False,
    ) -> None:  # fmt: skip
        g = self.geometry = geometry
        # Up to when every thread of a block has seen all others.
        self.block_barrier_epoch = np.zeros(g.columns, np.int64)
        self.unfenced = (
            RelaxedMbarriers(g.threads, clustered, self.release_clocks, self.acquire)
            if relaxed
            else None
        )
        self.cluster = None
        if clustered:
            self.cluster = ClusterClocks(
                g, self.known_epoch_in_block, self.block_barrier_epoch, self.unfenced, mixed
            )
        self.warp_clocks: Pairs | None = None
        self._warp_time = np.zeros((g.warps, g.columns), np.int64)
        self.lane_clocks: NDArray[np.int64] | None = (
            None  # (threads, 32, blocks): [mine, other lane]
        )
        self._arrived: dict[int, NamedBarrierArrivals] = {}
        self.phases: Phases | None = None

    def barrier(self, lanes: Mask | None, number: int, now: int) -> bool:
        """Handle the release of a block barrier.

        Return whether it included all threads of all blocks.
        """
        g = self.geometry
        if self.cluster is not None:
            self.cluster.forget()
        if lanes is None:
            self.block_barrier_epoch[:] = now
            return True
        full = g.full(lanes)
        whole = full.all(axis=0)
        self.block_barrier_epoch[whole] = now
        rest = full.any(axis=0) & ~whole
        if rest.any():
            self._partial(full & rest, number, now)
        return bool(whole.all())

    def arrive(self, lanes: Mask | None, number: int, now: int) -> None:
        """Handle ``bar.arrive``.

        Threads that wait at the next completion of this barrier acquire the arriving threads'
        clocks. If lanes of one warp arrive separately, each contributes its clock at its own
        arrival. A second arrival of the same thread belongs to the next phase.
        """
        full = self.geometry.full(as_mask(lanes))
        arrivals = self._arrived.setdefault(number, NamedBarrierArrivals(self.geometry))
        late = arrivals.arrive(full, self.warp_clocks, now)
        if self.phases or late.any():
            self._all_phases().carry_arrivals(number, full, np.where(late, now, 0))

    def _partial(self, full: Mask, number: int, now: int) -> None:
        """Handle a barrier of some warps of a block (named, counted or divergent)."""
        g = self.geometry
        if self.phases:
            self.phases.meet_at(number, full)
        pairs = self._all_pairs()
        bits = np.broadcast_to(g.warp_bits(full.reshape(g.shape)) != 0, (g.warps, g.columns))
        given, informed = np.where(bits, now, 0), pairs
        if arrivals := self._arrived.get(number):
            times, informed = arrivals.met(bits, pairs)
            given = np.maximum(given, times)
        givers = given > 0
        own = np.where(np.eye(g.warps, dtype=bool)[:, :, None], given[:, None, :], informed)
        known = np.where(givers[:, None, :], own, 0).max(axis=0)
        self.warp_clocks = np.where(bits[:, None, :], np.maximum(pairs, known[None]), pairs)

    def _all_pairs(self) -> Pairs:
        if self.warp_clocks is None:
            g = self.geometry
            self.warp_clocks = np.zeros((g.warps, g.warps, g.columns), np.int64)
        return self.warp_clocks

    def warp_sync(self, lanes: Mask | None, members: Lanes, now: int) -> None:
        """Handle ``bar.warp.sync``: each lane synchronises with the lanes in its member mask."""
        g = self.geometry
        if self.cluster is not None:
            self.cluster.forget()
        on = EVERY_LANE if lanes is None else lanes
        bits = np.broadcast_to(g.warp_bits(on), (g.warps, g.columns))
        named = g.full(members)
        everybody = np.repeat(np.broadcast_to(g.existing, bits.shape), WARP, axis=0)[: g.threads]
        full = g.full(on)
        fits = ((named & everybody) == everybody) | ~full
        whole: Rows = (bits == g.existing) & np.logical_and.reduceat(
            fits, np.arange(0, g.threads, WARP), axis=0
        )
        self._warp_time[whole] = now
        if self.phases:
            self.phases.meet(g.full(on), WARP)
        partial = ~whole & (bits != 0)
        if not partial.any():
            return
        if self.lane_clocks is None:
            self.lane_clocks = np.zeros((g.threads, WARP, g.columns), np.int64)
        meeting = full & np.repeat(partial, WARP, axis=0)[: g.threads]
        present = named & np.repeat(bits, WARP, axis=0)[: g.threads]
        before, starts = self.lane_clocks.copy(), np.arange(0, g.threads, WARP)
        together = _one_group(named, meeting, starts)
        if together:  # what one of them has seen, all have now
            released = np.where(meeting[:, None], before, 0)
            shared = np.repeat(np.maximum.reduceat(released, starts, axis=0), WARP, axis=0)
            self.lane_clocks = np.where(
                meeting[:, None], np.maximum(before, shared[: g.threads]), before
            )
        first = np.arange(g.threads) // WARP * WARP
        for lane in range(WARP):
            met = meeting & ((present >> np.uint32(lane)) & np.uint32(1)).astype(bool)
            self.lane_clocks[:, lane][met] = now
            if not together:
                theirs = before[np.minimum(first + lane, g.threads - 1)]
                more = np.maximum(self.lane_clocks, theirs)
                self.lane_clocks = np.where(met[:, None], more, self.lane_clocks)

    def last_barrier_epochs(self, thread: Flat, column: Flat) -> tuple[Flat, Flat]:
        """Return the epochs of the last full barrier of each thread's block, and of its warp."""
        return self.block_barrier_epoch[column], self._warp_time[thread // WARP, column]

    @property
    def has_partial_barriers(self) -> bool:
        """Whether barriers of parts of a block occurred, so that its threads' clocks differ."""
        clocks = (self.warp_clocks, self.lane_clocks, self.phases, self.cluster)
        return bool(self._arrived) or any(one is not None for one in clocks)

    def known(self, mine: int, column: int) -> ThreadClock:
        """Return a thread's clock within its block."""
        warp, pairs, lanes = mine // WARP, self.warp_clocks, self.lane_clocks
        threads = None if self.phases is None else self.phases.epochs[mine, :, column].copy()
        if self.cluster is not None:
            others = np.arange(self.geometry.threads)
            me, where = np.full_like(others, mine), np.full_like(others, column)
            by_cluster = self.cluster.horizon(others, where, me, where)
            threads = by_cluster if threads is None else np.maximum(threads, by_cluster)
        return ThreadClock(
            warp, int(self._warp_time[warp, column]), int(self.block_barrier_epoch[column]),
            None if pairs is None else pairs[warp, :, column].copy(),
            None if lanes is None else lanes[mine, :, column].copy(),
            threads, self._by_block(mine, column),
        )  # fmt: skip

    def _by_block(self, mine: int, column: int) -> dict[int, Flat] | None:
        """Return a thread's clock of other blocks of its cluster."""
        if self.cluster is None:
            return None
        others = self.cluster.others(mine, column)
        return {int(self.geometry.blocks[there]): row for there, row in others.items()}

    def met_by(self, threads: Flat) -> tuple[Flat, Flat]:
        """``met`` of threads by their global numbers."""
        block, thread = np.divmod(threads, self.geometry.threads)
        return self.last_barrier_epochs(thread, np.searchsorted(self.geometry.blocks, block))

    def clocks_of(self, threads: Flat) -> list[ThreadClock] | None:
        """``known`` of some threads (global numbers), if only parts of blocks have met."""
        if not self.has_partial_barriers:
            return None
        g = self.geometry
        block, thread = np.divmod(threads, g.threads)
        return list(map(self.known, thread.tolist(), np.searchsorted(g.blocks, block).tolist()))

    def rows(self, threads: Flat) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Return threads' clocks, ``(threads, others, columns)``, by the kind of others.

        (Together they say what ``near`` does.)
        """
        warp = threads // WARP
        yield (
            "block",
            np.broadcast_to(self.block_barrier_epoch, (len(threads), 1, self.geometry.columns)),
        )
        yield "own warp", self._warp_time[warp][:, None]
        if self.warp_clocks is not None:
            yield "warps", self.warp_clocks[warp]
        if self.lane_clocks is not None:
            yield "own lanes", self.lane_clocks[threads]
        if self.phases is not None:
            yield "threads", self.phases.epochs[threads]

    def happens_before(self, time: Flat, other: Flat, mine: Flat, column: Flat) -> Mask:
        """Whether accesses at ``time`` by threads ``other`` come before ``mine`` (same block)."""
        return time <= self.known_epoch(other, mine, column)

    def known_epoch(self, other: Flat, mine: Flat, column: Flat) -> Flat:
        """Return the epochs of threads ``other`` that ``mine`` of their block have acquired."""
        epoch = self.known_epoch_in_block(other, mine, column)
        if self.cluster is None:
            return epoch
        return np.maximum(epoch, self.cluster.horizon(other, column, mine, column))

    def known_epoch_in_block(self, other: Flat, mine: Flat, column: Flat) -> Flat:
        """Return the ``known_epoch`` of threads without the cluster's barrier."""
        epoch = self.block_barrier_epoch[column]
        if self.warp_clocks is not None:
            epoch = np.maximum(epoch, self.warp_clocks[mine // WARP, other // WARP, column])
        met = self.lane_clocks is not None or self._warp_time.any()
        mates = np.flatnonzero(mine // WARP == other // WARP) if met else np.zeros(0, np.int64)
        if mates.size:
            me, where = mine[mates], column[mates]
            by_warp = self._warp_time[me // WARP, where]
            if self.lane_clocks is not None:
                by_warp = np.maximum(by_warp, self.lane_clocks[me, other[mates] % WARP, where])
            epoch[mates] = np.maximum(epoch[mates], by_warp)
        if self.phases is not None:
            epoch = np.maximum(epoch, self.phases.of(mine, other, column))
        return epoch

    def known_epoch_of_warpgroup(self, other: Flat, mine: Flat, column: Flat) -> Flat:
        """Return the latest ``known_epoch`` of any thread in the warpgroup of each ``other``."""
        g = self.geometry
        keys, back = np.unique(
            (column * g.threads + mine) * g.threads + other // GROUP, return_inverse=True
        )
        asked, group = np.divmod(np.repeat(keys, GROUP), g.threads)
        where, who = np.divmod(asked, g.threads)
        members = group * GROUP + np.tile(np.arange(GROUP), len(keys))
        times = self.known_epoch(np.minimum(members, g.threads - 1), who, where)
        latest: Flat = times.reshape(-1, GROUP).max(axis=1, initial=0)[back]
        return latest

    def arrive_at(self, arrival: PhaseArrival, now: int, hands_on: bool, relaxed: bool) -> None:
        """Handle an arrival at an mbarrier.

        ``hands_on``: whether it releases the threads' accesses.

        ``relaxed``: it releases what was fenced, in a program whose fences are tracked.
        """
        place, threads, column, end = arrival
        far = column != place[0]
        if relaxed and self.unfenced is not None:
            given = self.unfenced.given(threads, column, far)
        else:
            given = self.release_clocks(threads, column, now, far)
        if self.cluster is not None:
            cut = len(threads) if end is None else end + 1
            hands_on &= far
            self.cluster.arrive_at(place, given[:cut] if hands_on else ())
            if end is not None:
                self.cluster.end(place)
            self.cluster.arrive_at(place, given[cut:] if hands_on else ())
        if far:
            if end is not None:
                self._all_phases().end(place)
        else:
            self._all_phases().arrive(place, np.array([one[column] for one in given]), end)

    def release_clocks(self, threads: Flat, column: int, now: int, far: bool) -> list[Known]:
        """Return the clock that each of some threads of a block releases at time ``now``.

        ``far``: includes other blocks of the cluster.
        """
        everyone = np.arange(self.geometry.threads)
        mine, other = np.repeat(threads, len(everyone)), np.tile(everyone, len(threads))
        rows = self.known_epoch(other, mine, np.full(len(mine), column)).reshape(len(threads), -1)
        rows[np.arange(len(threads)), threads] = now
        given: list[Known] = [{column: row} for row in rows]
        if far and self.cluster is not None:
            for known, thread in zip(given, threads.tolist(), strict=True):
                known.update(self.cluster.others(thread, column))
        return given

    def wait_at(self, place: Key, threads: Flat, now: int, relaxed: bool, near: bool) -> None:
        """Handle threads that observe a complete phase of an mbarrier.

        ``relaxed``: the acquire takes effect at the next fence. ``near``: the scope is the block,
        so that releases of other blocks are not acquired.
        """
        far = None if self.cluster is None or near else self.cluster.over(place)
        over = self._all_phases().over(place), far
        if relaxed and self.unfenced is not None:
            self.unfenced.wait(place, threads, over)
        else:
            self.acquire(threads, place[0], over, now)

    def acquire(self, threads: Flat, column: int, over: Over, now: int) -> None:
        """Join the clock of a complete phase, of this block and of others, into threads' clocks."""
        near, far = over
        self._all_phases().wait(column, threads, near)
        if self.cluster is not None:
            self.cluster.forget()
            self.cluster.wait_at(column, threads, far, now)

    def _all_phases(self) -> Phases:
        if self.phases is None:
            self.phases = Phases(self.geometry.threads, self.geometry.columns)
        return self.phases

    def happens_before_any_block(self, time: Flat, earlier: Flat, mine: Flat, column: Flat) -> Mask:
        """``happens_before`` for earlier threads of any block, by their global numbers."""
        g = self.geometry
        block, other = np.divmod(earlier, g.threads)
        same = block == g.blocks[column]
        out = np.zeros(len(time), bool)
        out[same] = self.happens_before(time[same], other[same], mine[same], column[same])
        if self.cluster is not None and not same.all():
            far = np.flatnonzero(~same & np.isin(block, g.blocks))
            there = np.searchsorted(g.blocks, block[far])
            epoch = self.cluster.horizon(other[far], there, mine[far], column[far])
            out[far] = time[far] <= epoch
        return out

    def before(self, thread: Flat, column: Flat) -> Ordered:
        """Return ``happens_before`` for accesses now; earlier threads by global numbers."""

        def ordered(time: Flat, earlier: Flat, which: Flat) -> Mask:
            return self.happens_before_any_block(time, earlier, thread[which], column[which])

        return ordered


def _one_group(named: Rows, meeting: Rows, starts: Flat) -> bool:
    """Whether all lanes of a warp that meet name the same members."""
    all_members = np.maximum.reduceat(np.where(meeting, named, 0), starts, axis=0)
    least = np.minimum.reduceat(np.where(meeting, named, 0xFFFFFFFF), starts, axis=0)
    return bool((least >= all_members).all())
