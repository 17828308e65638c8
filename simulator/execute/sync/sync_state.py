"""Synchronisation state of one batch: the components that block lanes."""

from __future__ import annotations

from ...core.geometry import Mask, as_mask
from ...events import BarrierDivergence
from ..lane_state import LaneState
from .block_barriers import Barriers
from .blocked_lanes import BlockedLanes
from .cluster_barriers import ClusterBarriers
from .warp_sync import WarpSync


class SyncState:
    """Block barriers, cluster barriers and warp-synchronous instructions of one batch."""

    def __init__(
        self, state: LaneState, barriers: Barriers, clusters: ClusterBarriers, gates: WarpSync
    ) -> None:
        self.state, self.barriers, self.clusters, self.gates = state, barriers, clusters, gates

    def blocked_lanes(self) -> list[BlockedLanes]:
        """Return the lanes that are blocked at barriers."""
        return self.barriers.waiting + self.clusters.waiting

    def holds_any(self) -> bool:
        """Return whether lanes are blocked at barriers or warp-synchronous instructions."""
        return bool(self.barriers.waiting or self.clusters.waiting or self.gates.waiting)

    def alone(self) -> bool:
        """Return whether all live lanes are at one basic block and none is blocked."""
        return len(self.state.groups) == 1 and not self.holds_any()

    def unblock(self) -> bool:
        """Release lanes if nothing else can run; return whether there were any."""
        if self.barriers.release() or self.barriers.release(loose=True):
            return True
        if self.gates.waiting:
            self.gates.force()
            return True
        return False

    def forget(self, lanes: Mask) -> None:
        """Remove lanes that exit."""
        for wait in self.blocked_lanes():
            wait.mask = as_mask(wait.mask) & ~lanes
        self.gates.forget(lanes)

    def never(self) -> list[BarrierDivergence]:
        """Return the lanes that barriers block for ever, with the missing ones."""
        return self.barriers.unsatisfied() + self.clusters.never(self.blocked_lanes())
