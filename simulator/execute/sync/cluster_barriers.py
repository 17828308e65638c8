"""Cluster barriers: ``barrier.cluster.arrive`` and ``.wait`` (PTX ISA, "barrier.cluster").

Every live thread of the cluster arrives, and waits before it arrives again. A phase is complete
when all have arrived. Each cluster has one such barrier, which has no place in the code.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import NO_LANE, Lanes, Mask, as_mask, blocks_of
from ...events import BarrierDivergence, Dispatcher
from ..lane_state import LaneState
from .barrier_divergence import Divergence, is_aligned
from .blocked_lanes import BlockedLanes
from .branch_history import BranchHistory

_AWAY, _ARRIVED, _FREE = 0, 1, 2
"""A lane has not arrived, has arrived in the phase at hand, in one that is over."""
_NUMBER: Lanes = np.zeros((), np.int32)


class ClusterBarriers:
    """The barriers of the clusters of one batch.

    Attributes:
        waiting: Blocked lanes.
    """

    def __init__(
        self, state: LaneState, dispatcher: Dispatcher, paths: BranchHistory, divergence: Divergence
    ) -> None:
        self.state, self.dispatcher, self.paths, self.divergence = (
            state,
            dispatcher,
            paths,
            divergence,
        )
        self.waiting: list[BlockedLanes] = []
        self._state: Lanes | None = None
        self._places: dict[int, tuple[CompiledBlock, Mask]] = {}
        self._gone: dict[int, Mask] = {}

    def come(self, block: CompiledBlock, mask: Mask | None, alone: bool) -> int | None:
        """Handle lanes that arrive or wait; returns what ``Barriers.arrive`` does."""
        state = self.state
        if self._state is None:
            self._state = np.full(state.geometry.shape, _AWAY, np.int8)
        lanes = np.broadcast_to(as_mask(mask if mask is not None else state.alive),
                                state.geometry.shape)  # fmt: skip
        if not block.holds:
            self._arrive(block, lanes, mask)
        else:
            going = self._wait(block, lanes)
            if not going.any():
                return None
            if not going[lanes].all():
                mask, alone = going, False
            for callback in self.dispatcher.cluster_wait:
                callback(mask)
        if alone:
            return block.block.follow
        state.go(block.number, block.block.follow, mask)
        return None

    def _arrive(self, block: CompiledBlock, lanes: Mask, mask: Mask | None) -> None:
        assert self._state is not None
        again = lanes & (self._state != _AWAY)
        if again.any():
            self._report("again", block, again)
        self._state[lanes & ~again] = _ARRIVED
        known = self._places.get(block.number)
        self._places[block.number] = block, lanes if known is None else known[1] | lanes
        for callback in self.dispatcher.cluster_arrive:
            callback(mask, not (block.block.end and block.block.end.has("relaxed")))
        self.look_again()

    def _wait(self, block: CompiledBlock, lanes: Mask) -> Mask:
        """Block waiting lanes whose phase is incomplete; return the others."""
        assert self._state is not None
        never = lanes & (self._state == _AWAY)
        if never.any():
            self._report("unarrived", block, never)
        blocked = lanes & (self._state == _ARRIVED)
        if blocked.any():
            self.waiting.append(
                BlockedLanes(block, blocked, _NUMBER, _NUMBER, None, self.state.step)
            )
        going: Mask = lanes & ~blocked
        self._state[going] = _AWAY
        return going

    def _report(self, how: str, block: CompiledBlock, lanes: Mask) -> None:
        self.divergence.notify(BarrierDivergence(how, block, lanes))

    def _by_cluster(self, lanes: Mask) -> Mask:
        """Return for each block whether any of the lanes is in its cluster."""
        g = self.state.geometry
        blocks: Lanes = np.asarray(blocks_of(lanes))
        of_cluster: Lanes = blocks[g.clusters.columns]
        some: Mask = np.logical_or.reduce(of_cluster, axis=1)
        return some

    def look_again(self) -> None:
        """Complete phases, after lanes have arrived or exited."""
        state, lanes = self._state, self.state
        if state is None or not (state == _ARRIVED).any():
            return
        alive = np.broadcast_to(as_mask(lanes.alive), state.shape)
        missing = self._by_cluster(alive & (state != _ARRIVED))
        done = self._by_cluster(alive & (state == _ARRIVED)) & ~missing
        if not done.any():
            return
        over = done & (state == _ARRIVED)
        self._check(done, over, alive)
        state[over] = _FREE
        for wait in self.waiting:
            going = as_mask(wait.mask) & over
            if going.any():
                state[going] = _AWAY
                wait.mask = as_mask(wait.mask) & ~going
                for callback in self.dispatcher.cluster_wait:
                    callback(going)
                lanes.go(wait.block.number, wait.block.block.follow, going)
        self.waiting = [wait for wait in self.waiting if as_mask(wait.mask).any()]

    def _check(self, done: Mask, over: Mask, alive: Mask) -> None:
        """Check a complete phase: have all threads arrived, and warps as one?"""
        g, before = self.state.geometry, NO_LANE
        for number, (block, lanes) in sorted(self._places.items()):
            here = lanes & over
            if is_aligned(block):
                split_warps = g.any_of_warp(here) & g.any_of_warp(alive & over & ~here)
                both = here & g.spread(split_warps)
                if both.any():
                    others = g.spread(split_warps) & ~both & over
                    branches = self.paths.nearest_differences(block, others, both)
                    self.divergence.notify(
                        BarrierDivergence("warp", block, both, others, branches=branches)
                    )
            known = self._gone.get(number, NO_LANE)
            gone = self._by_cluster(here) & ~alive & ~over & ~known & ~before
            if gone.any():
                self._gone[number] = gone | known
                before = before | gone
                branches = self.paths.diverging_branches(block, gone, here)
                self.divergence.notify(
                    BarrierDivergence("gone", block, here, gone, branches=branches)
                )
            self._places[number] = block, lanes & ~done

    def never(self, blocked: Sequence[BlockedLanes]) -> list[BarrierDivergence]:
        """Describe the lanes that wait here for ever, and those that have not arrived.

        ``blocked``: all lanes that are blocked at barriers of any kind.
        """
        found = []
        for wait in self.waiting:
            assert self._state is not None
            lanes = np.broadcast_to(as_mask(wait.mask), self._state.shape)
            alive = np.broadcast_to(as_mask(self.state.alive), self._state.shape)
            missing = self._by_cluster(lanes) & alive & (self._state != _ARRIVED)
            elsewhere = [
                (other.block, there)
                for other in blocked
                if other is not wait and (there := as_mask(other.mask) & missing).any()
            ]
            branches = self.paths.diverging_branches(wait.block, missing, lanes)
            found.append(
                BarrierDivergence("cluster", wait.block, lanes, missing, elsewhere, branches)
            )
        return found
