"""State of a batch's lanes: registers, current basic block, and liveness."""

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
    """Lanes that a branch can count and move: a whole batch, or compact lanes."""

    def count(self, mask: Mask | None) -> tuple[int, int]:
        """Return the threads of a mask, and the warps that have one of them."""

    def go(self, at: int, to: int, mask: Mask | None) -> None:
        """Move lanes from one basic block to another."""


class LaneState:
    """Registers, current basic block and liveness of a batch's lanes; ``start`` begins a batch.

    The callbacks connect it to the components that block lanes; ``Machine`` sets them.

    Attributes:
        geometry: Shape of the batch.
        registers: Values by register number; each broadcasts to ``geometry.shape``.
        alive: Mask of the lanes that have not exited; ``None``: all.
        finished: Whether no lane is alive.
        groups: Masks of runnable lanes, by the number of their basic block.
        step: Number of basic blocks executed.
        ages: For each basic block, the step of its last execution.
        together: The last step at which all living lanes were at one basic block.
        meets: Number of barriers and warp-synchronous instructions reached.
        on_move: Called with (from, to, lanes) before lanes move between basic blocks.
        on_join: Called with (block, lanes) before lanes are added to a block's group.
        on_exit: Called after lanes have exited.
        on_stop: Called with lanes before they are terminated at any place.
    """

    geometry: Geometry
    registers: list[Lanes]
    groups: Groups
    on_move: Callable[[int, int, Mask | None], None]
    on_join: Callable[[int, Mask | None], None]
    on_exit: Sequence[Callable[[], None]]
    on_stop: Callable[[Mask], None]

    def start(self, geometry: Geometry, registers: Sequence[Lanes], first: int) -> None:
        """Begin a batch: all lanes are at the block ``first``."""
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
        """Terminate lanes that are in no group."""
        self.alive = np.zeros((1, 1, 1, 1), bool) if mask is None else self._without(mask)
        self.finished = not self.alive.any()
        for look_again in self.on_exit:
            look_again()

    def stop(self, lanes: Mask) -> None:
        """Terminate lanes that are runnable or blocked."""
        staying = ((number, as_mask(mask) & ~lanes) for number, mask in self.groups.items())
        self.groups = {number: mask for number, mask in staying if mask.any()}
        self.on_stop(lanes)
        self.exit(lanes)

    def _without(self, mask: Mask) -> Mask:
        return ~mask if self.alive is None else self.alive & ~mask
