"""State of the lanes of one batch: registers, position in the program, life."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ..compile.cfg.basic_blocks import EXIT
from ..core.geometry import Geometry, Lanes, Mask, as_mask
from .schedule import Groups

_MAX_COUNTS = 64
"""Masks whose threads and warps are remembered."""


class LaneMover(Protocol):
    """Lanes that a branch can count and send on: a whole batch, or those picked out of it."""

    def count(self, mask: Mask | None) -> tuple[int, int]:
        """Return the threads of a mask, and the warps that have one of them."""

    def go(self, at: int, to: int, mask: Mask | None) -> None:
        """Move lanes from one basic block to another."""


class LaneState:
    """Registers, position and life of the lanes of one batch; ``start`` begins a batch.

    The callbacks connect it to the components that hold lanes; ``Machine`` sets them.

    Attributes:
        geometry: Shape of the batch.
        registers: Values by register number; each broadcasts to ``geometry.shape``.
        alive: Lanes that have not exited; ``None``: all.
        finished: Whether no lane is alive.
        groups: Lanes that are ready to run, by the number of the basic block they stand at.
        step: Basic blocks that have run.
        ages: For each basic block, the step at which lanes last ran it.
        together: The last step at which all living lanes stood at one basic block.
        meets: Barriers and warp-synchronous instructions that lanes have come to.
        on_move: Called with (from, to, lanes) before lanes move between basic blocks.
        on_join: Called with (block, lanes) before lanes are added to a block's group.
        on_exit: Called after lanes have exited.
        on_stop: Called with lanes that end wherever they are, before these exit.
    """

    geometry: Geometry
    registers: list[Lanes]
    groups: Groups
    on_move: Callable[[int, int, Mask | None], None]
    on_join: Callable[[int, Mask | None], None]
    on_exit: Sequence[Callable[[], None]]
    on_stop: Callable[[Mask], None]

    def start(self, geometry: Geometry, registers: Sequence[Lanes], first: int) -> None:
        """Begin a batch: all lanes stand at the block ``first``."""
        self.geometry, self.registers = geometry, list(registers)
        self.alive: Mask | None = None
        self.finished = False
        self.groups = {first: None}
        self.step = self.together = self.meets = 0
        self.ages: dict[int, int] = {}
        self._counts: dict[int, tuple[Mask | None, tuple[int, int]]] = {}

    def count(self, mask: Mask | None) -> tuple[int, int]:
        """Return the threads of a mask, and the warps that have one of them."""
        key = id(mask)
        known = self._counts.get(key)
        if known is not None and known[0] is mask:
            return known[1]
        if len(self._counts) > _MAX_COUNTS:
            self._counts.clear()
        counts = self.geometry.active(mask)
        self._counts[key] = (mask, counts)
        return counts

    def go(self, at: int, to: int, mask: Mask | None) -> None:
        """Move lanes from one basic block to another."""
        self.on_move(at, to, mask)
        self.join(to, mask)

    def join(self, number: int, mask: Mask | None) -> None:
        """Add lanes to the group at a basic block; at ``EXIT`` they exit."""
        self.on_join(number, mask)
        if number == EXIT:
            self.exit(mask)
        elif number in self.groups:
            here = self.groups[number]
            self.groups[number] = None if mask is None or here is None else here | mask
        else:
            self.groups[number] = mask

    def exit(self, mask: Mask | None) -> None:
        """End lanes that are in no group."""
        self.alive = np.zeros((1, 1, 1, 1), bool) if mask is None else self._without(mask)
        self.finished = not self.alive.any()
        for look_again in self.on_exit:
            look_again()

    def stop(self, lanes: Mask) -> None:
        """End lanes wherever they stand or are held."""
        staying = ((number, as_mask(mask) & ~lanes) for number, mask in self.groups.items())
        self.groups = {number: mask for number, mask in staying if mask.any()}
        self.on_stop(lanes)
        self.exit(lanes)

    def _without(self, mask: Mask) -> Mask:
        return ~mask if self.alive is None else self.alive & ~mask
