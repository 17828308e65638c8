"""Warp-synchronous instructions: lanes are held until all that the member mask names have come.

``shfl.sync``, ``vote.sync``, ``match.sync``, ``redux.sync``, ``elect.sync`` and
``bar.warp.sync`` (PTX ISA): they wait for the lanes of the mask that have not exited.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

import numpy as np

from ..compile.program import CompiledBlock
from ..compile.steps import Constant, Register
from ..geometry import NO_LANE, WARP, WHOLE_WARP, Lanes, Mask, Rows, as_mask
from .schedule import Part

if TYPE_CHECKING:
    from .machine import Machine


class Gates:
    """The lanes of one batch that are held in front of warp-synchronous instructions.

    Attributes:
        parked: Lanes that are held, by block number.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.parked: dict[int, Mask] = {}
        self.opened: dict[int, Mask] = {}
        self._known: dict[int, tuple[Lanes, Mask | None]] = {}

    def through(self, block: CompiledBlock, mask: Mask | None, everyone: bool) -> Part:
        """Of the lanes that came to a gate, those that may go on; ``False`` if all are held.

        ``everyone``: whether they are all lanes that live.
        """
        number, gate = block.number, block.gate
        assert gate
        if everyone and (gate.members is None or self._right(block, mask)):
            return mask
        here = self.parked.pop(number, None)
        if here is not None:
            mask = here if mask is None else mask | here
        on = as_mask(mask)
        if gate.members is None:
            return self._whole(on)
        named = self.members(block)
        left_out = on & ((named >> self._lane) & np.uint32(1) == 0)
        if left_out.any():
            for tell in self.machine.told.event:
                tell("left-out", block, left_out)
        if named.ndim == 0:
            missing = self._missing(self.machine.geometry.active_bits(on))
            ready = on & (((missing & named) == 0) | left_out)
        else:
            ready = self._agreed(np.where(on, named, np.uint32(0))) | left_out
        opened = self.opened.pop(number, None)
        if opened is not None:
            ready = ready | (on & opened)
            rest = opened & ~on
            if rest.any():
                self.opened[number] = rest
        late = on & ~ready
        if late.any():
            self.parked[number] = late
            if block.warp_barrier and len(self._warp_barriers()) > 1:
                self.meet()
        elif everyone and not left_out.any():
            self._known[number] = named, mask
            return mask
        else:
            return self._whole(on)
        return self._whole(ready) if ready.any() else False

    def _right(self, block: CompiledBlock, mask: Mask | None) -> bool:
        """Whether lanes that are all that live are known to name one another."""
        named = self.members(block)
        if named.ndim == 0 and named == WHOLE_WARP:
            return True
        known = self._known.get(block.number)
        return known is not None and known[0] is named and known[1] is mask

    @functools.cached_property
    def _lane(self) -> Lanes:
        return self.machine.geometry.lane_ids.astype(np.uint32)

    def _whole(self, lanes: Mask) -> Mask:
        return lanes if lanes.ndim else np.full((1, 1, 1, 1), lanes)

    def members(self, block: CompiledBlock) -> Lanes:
        """The member mask of a warp-synchronous block, uint32."""
        assert block.gate
        assert block.gate.members
        value = block.gate.members.value
        if isinstance(value, Constant):
            return cast(Lanes, value.value)
        assert isinstance(value, Register)
        named: Lanes = self.machine.registers[value.number]
        return named.view(np.uint32) if value.carrier == "s32" else named.astype(np.uint32)

    def _missing(self, bits: Rows) -> Lanes:
        """Living lanes of each thread's warp that are not among ``bits``, uint32."""
        g, alive = self.machine.geometry, self.machine.alive
        living = g.existing if alive is None else g.warp_bits(alive)
        return g.spread(living & ~bits)

    def _agreed(self, masks: Lanes) -> Mask:
        """The lanes of which all that they name live not, or wait with the same member mask.

        ``masks``: the member mask of each lane that waits, else 0.
        """
        g = self.machine.geometry
        theirs = g.by_warp(masks, np.uint32(0))
        living = g.by_warp(as_mask(self.machine.alive), False)
        ready = theirs != 0
        for lane in range(WARP):
            named = ((theirs >> np.uint32(lane)) & np.uint32(1)) == 1
            other = theirs[:, lane : lane + 1]
            ready = ready & (~named | ~living[:, lane : lane + 1] | (other == theirs))
        return g.from_rows(ready.reshape(g.warps * WARP, -1))

    def look_again(self) -> None:
        """Lanes have exited, which are waited for no longer."""
        for number in list(self.parked):
            block = self.machine.program.blocks[number]
            named = np.where(self.parked[number], self.members(block), np.uint32(0))
            if self._agreed(named).any():
                self.machine.join(number, self.parked.pop(number))
        if len(self._warp_barriers()) > 1:
            self.meet()

    def force(self) -> None:
        """Nothing else can run: the lanes that a mask names never come."""
        number = min(self.parked)
        mask = self.parked.pop(number)
        for tell in self.machine.told.event:
            tell("absent", self.machine.program.blocks[number], mask)
        self._open(number, mask)

    def _open(self, number: int, lanes: Mask) -> None:
        """Lanes may go through, whoever is missing."""
        self.machine.join(number, lanes)
        self.opened[number] = lanes | self.opened.get(number, NO_LANE)

    def _warp_barriers(self) -> list[int]:
        return [n for n in self.parked if self.machine.program.blocks[n].warp_barrier]

    def meet(self) -> None:
        """Lanes at different ``bar.warp.sync`` with the same member mask meet as well."""
        g = self.machine.geometry
        numbers = self._warp_barriers()
        masks: Lanes = np.zeros(g.shape, np.uint32)
        for number in numbers:
            named = self.members(self.machine.program.blocks[number])
            masks = np.where(self.parked[number], named, masks)
        together = self._agreed(masks)
        if not together.any():
            return
        for number in numbers:
            go = self.parked[number] & together
            if go.any():
                late = self.parked.pop(number) & ~together
                if late.any():
                    self.parked[number] = late
                self._open(number, go)
        for tell in self.machine.told.warp_sync:
            tell(together, masks)
