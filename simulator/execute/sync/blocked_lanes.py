"""Lanes that wait at a barrier or have arrived at it, and the errors if no lane can continue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import Lanes, Mask, as_mask
from ...events import BarrierDivergence
from ..lane_state import LaneState
from ..schedule import Groups

Key = tuple[int, int, str]
"""A barrier: its number, the count of threads that it waits for (0: the block), and whether it
reduces: ``and``, ``or``, ``popc``, or nothing."""
Operands = tuple[Lanes, Lanes, Mask | None]
"""Of a barrier instruction: number, count, and what a reduction takes in."""


@dataclass
class BlockedLanes:
    """Lanes blocked at a block barrier.

    Attributes:
        number: Barrier number of each lane.
        count: Thread count of each lane's barrier; 0: the block.
        predicate: Input of the reduction.
        since: Step of the arrival.
    """

    block: CompiledBlock
    mask: Mask | None
    number: Lanes
    count: Lanes
    predicate: Mask | None
    since: int = 0

    @property
    def operation(self) -> str:
        """Operation of the reduction."""
        return self.block.reduction[0] if self.block.reduction else ""


class NoProgress(Exception):
    """No lane can make progress: all wait at barriers or spin for ever.

    Attributes:
        waiting: The lanes blocked at barriers, with the missing ones.
        spinning: Lanes in endless loops (or beyond the step limit), by block number.
        why: ``waits``, ``repeats`` (no fair schedule changes the state any more) or ``limit``.
        steps: Basic blocks executed so far.
        visited: Basic blocks that the spinning lanes execute; ``None`` if unknown.
    """

    def __init__(
        self, why: str, waiting: list[BarrierDivergence], spinning: Groups, steps: int = 0,
        visited: set[int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(why)
        self.why, self.waiting, self.spinning, self.steps = why, waiting, spinning, steps
        self.visited = visited


class WarpArrivals:
    """Arrivals (``bar.arrive``) at one barrier; a warp arrives with its last live lane.

    Attributes:
        phase: Number of arrivals of each warp since the barrier was last full, ``(warps, blocks)``.
    """

    def __init__(self, state: LaneState, wanted: int) -> None:
        g = state.geometry
        self.state, self.wanted = state, wanted
        self.lanes = np.zeros(g.shape, np.int64)
        self.counted = np.zeros((g.warps, g.columns), np.int64)
        self.phase = np.zeros((g.warps, g.columns), np.int64)
        self.places: dict[int, tuple[BlockedLanes, Mask]] = {}

    def add(self, wait: BlockedLanes, lanes: Mask) -> None:
        """Record arriving lanes."""
        self.lanes += lanes
        self.places[wait.block.number] = wait, lanes
        self.settle(False)

    def came(self) -> Iterator[tuple[BlockedLanes, Mask]]:
        """Return the recorded arrivals since the barrier was last full, with their places."""
        here = self.state.geometry.spread(self.phase > 0)
        for wait, lanes in self.places.values():
            yield wait, lanes & here

    def settle(self, loose: bool) -> None:
        """Count the warps that have arrived; ``loose``: with any lane."""
        state = self.state
        g = state.geometry
        if loose:
            full = g.by_warp(self.lanes, 0).max(axis=1)
        else:
            living = np.broadcast_to(as_mask(state.alive), g.shape)
            infinity = np.iinfo(np.int64).max
            full = g.by_warp(np.where(living, self.lanes, infinity), infinity).min(axis=1)
            full = np.where(full == infinity, g.by_warp(self.lanes, 0).max(axis=1), full)
        new = np.maximum(full - self.counted, 0)
        if not new.any():
            return
        self.counted += new
        last = self.phase.sum(axis=0) + np.cumsum(new, axis=0)
        over = last[-1] // self.wanted * self.wanted  # full by arrivals alone: that frees nobody
        surplus = last - np.maximum(last - new, over)
        self.phase = np.where(over, np.maximum(surplus, 0), self.phase + new)
