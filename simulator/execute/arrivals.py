"""Warps that a barrier counts without holding them: ``bar.arrive``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..geometry import Mask, Rows, as_mask

if TYPE_CHECKING:
    from .machine import Machine


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
