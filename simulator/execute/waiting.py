"""Who waits at a barrier, who has arrived at it, and what is raised where nobody can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..compile.program import CompiledBlock
from ..events import Apart
from ..geometry import Lanes, Mask, Rows, as_mask
from .schedule import Groups

if TYPE_CHECKING:
    from .machine import Machine


Operands = tuple[Lanes, Lanes, Mask | None]
"""Of a barrier instruction: number, count, and what a reduction takes in."""


@dataclass
class Waiting:
    """Lanes held by a block barrier.

    Attributes:
        number: The barrier's, by lane; ``count``: the threads it waits for, 0 for the block.
        predicate: What a reduction takes in.
        since: The step at which they came.
    """

    block: CompiledBlock
    mask: Mask | None
    number: Lanes
    count: Lanes
    predicate: Mask | None
    since: int = 0


class Stuck(Exception):
    """No lane can go on: the lanes that wait at barriers, or that spin without end.

    Attributes:
        waiting: What is known of the lanes held by block barriers.
        spinning: Lanes by block number that loop for ever (or past the step limit).
        why: ``waits``, ``repeats`` (no fair schedule changes anything any more) or ``limit``.
        steps: How many basic blocks had run.
    """

    def __init__(self, why: str, waiting: list[Apart], spinning: Groups, steps: int = 0) -> None:
        super().__init__(why)
        self.why, self.waiting, self.spinning, self.steps = why, waiting, spinning, steps


@dataclass
class Arrival:
    """Warps that passed ``bar.arrive``, bools ``(warps, blocks)``, at a step."""

    warps: Rows
    since: int


class Arrivals:
    """The ``bar.arrive`` of one barrier: a warp has arrived when its living lanes have."""

    def __init__(self, machine: Machine) -> None:
        g = machine.geometry
        self.machine = machine
        self.lanes = np.zeros(g.shape, np.int64)
        self.told = np.zeros((g.warps, g.columns), np.int64)
        self.open: list[Arrival] = []

    def add(self, lanes: Mask) -> None:
        """Lanes arrive."""
        self.lanes += lanes
        self.settle(False)

    def settle(self, loose: bool) -> None:
        """See which warps have arrived; ``loose``: those with any lane that has."""
        machine = self.machine
        g = machine.geometry
        if loose:
            full = g.by_warp(self.lanes, 0).max(axis=1)
        else:
            living = np.broadcast_to(as_mask(machine.alive), g.shape)
            most = np.iinfo(np.int64).max
            full = g.by_warp(np.where(living, self.lanes, most), most).min(axis=1)
            full = np.where(full == most, g.by_warp(self.lanes, 0).max(axis=1), full)
        while (full > self.told).any():
            warps = full > self.told
            self.open.append(Arrival(warps, machine.step))
            self.told += warps

    def use_up(self, used: Sequence[Rows]) -> None:
        """A barrier takes the warps given for each that is open."""
        for arrival, warps in zip(self.open, used, strict=False):
            arrival.warps = arrival.warps & ~warps
        self.open = [arrival for arrival in self.open if arrival.warps.any()]
