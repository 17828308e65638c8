"""Warp-synchronous instructions: lanes are held until all that the member mask names have come.

``shfl.sync``, ``vote.sync``, ``match.sync``, ``redux.sync``, ``elect.sync`` and
``bar.warp.sync`` (PTX ISA): they wait for the lanes of the mask that have not exited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .geometry import WARP
from .program import CompiledBlock

if TYPE_CHECKING:
    from .machine import Machine

EVERY_LANE = np.uint32(0xFFFFFFFF)


class Gates:
    """The lanes of one batch that are held in front of warp-synchronous instructions.

    Attributes:
        parked: Lanes that are held, by block number.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.parked: dict[int, Any] = {}
        self.opened: dict[int, Any] = {}
        self._checked: dict[int, tuple[Any, Any]] = {}

    def through(self, block: CompiledBlock, mask: Any, everyone: bool) -> Any:
        """Of the lanes that came to a gate, those that may go on; ``None`` if all are held.

        Args:
            block: The basic block that the instruction begins.
            mask: The lanes.
            everyone: Whether they are all lanes that live.
        """
        number = block.number
        if everyone:
            if block.gate != "ALL":
                self._own_bit(block, self.members(block), mask)
            return mask
        here = self.parked.pop(number, None)
        if here is not None:
            mask = here if mask is None else mask | here
        if block.gate == "ALL":
            return mask if mask is not None else self._everybody()
        named = self.members(block)
        left_out = self._own_bit(block, named, mask)
        missing = self._missing(self.machine.geometry.warp_bits(_on(mask)))
        ready = ((missing & named) == 0) | left_out
        opened = self.opened.pop(number, None)
        if opened is not None:
            ready = ready | opened
            rest = opened if mask is None else opened & ~mask
            if mask is not None and rest.any():
                self.opened[number] = rest
        if mask is not None:
            ready = ready & mask
        if ready.all():
            return self._everybody() if mask is None else mask
        late = ~ready if mask is None else mask & ~ready
        if late.any():
            self.parked[number] = late
            if block.warp_barrier and len(self._warp_barriers()) > 1:
                self.meet()
        return ready if ready.any() else None

    def members(self, block: CompiledBlock) -> Any:
        """The member mask of a warp-synchronous block, uint32."""
        assert block.gate is not None
        return eval(block.gate, self.machine.names | {"R": self.machine.registers})

    def _missing(self, bits: Any) -> Any:
        """Living lanes of each thread's warp that are not among ``bits``, uint32."""
        g, alive = self.machine.geometry, self.machine.alive
        living = g.existing if alive is None else g.warp_bits(alive)
        return g.spread(living & ~bits)

    def _own_bit(self, block: CompiledBlock, named: Any, mask: Any) -> Any:
        """The lanes whose mask does not name themselves, which are told of: nobody may do that."""
        if named.ndim == 0 and named == EVERY_LANE:
            return np.bool_(False)
        checked = self._checked.get(block.number)
        if checked is not None and checked[0] is named and checked[1] is mask:
            return np.bool_(False)
        lane = self.machine.geometry.lane_ids.astype(np.uint32)
        left_out = ((named >> lane) & np.uint32(1)) == 0
        if mask is not None:
            left_out = left_out & mask
        if left_out.any():
            self.machine.listener.event("left-out", block, left_out)
            return left_out
        self._checked[block.number] = named, mask
        return np.bool_(False)

    def look_again(self) -> None:
        """Lanes have exited, which are waited for no longer."""
        for number in list(self.parked):
            block = self.machine.program.blocks[number]
            lanes = self.parked[number]
            missing = self._missing(self.machine.geometry.warp_bits(lanes))
            if (lanes & ((missing & self.members(block)) == 0)).any():
                self.machine.join(number, self.parked.pop(number))
        if len(self._warp_barriers()) > 1:
            self.meet()

    def force(self) -> None:
        """Nothing else can run: the lanes that a mask names never come."""
        number = min(self.parked)
        mask = self.parked.pop(number)
        self.machine.listener.event("bad-mask", self.machine.program.blocks[number], mask)
        self._open(number, mask)

    def _open(self, number: int, lanes: Any) -> None:
        """Lanes may go through, whoever is missing."""
        self.machine.join(number, lanes)
        self.opened[number] = lanes | self.opened.get(number, np.bool_(False))

    def _warp_barriers(self) -> list[int]:
        return [n for n in self.parked if self.machine.program.blocks[n].warp_barrier]

    def meet(self) -> None:
        """Lanes at different ``bar.warp.sync`` with the same member mask meet as well."""
        g = self.machine.geometry
        numbers = self._warp_barriers()
        masks: Any = np.zeros(g.shape, np.uint32)
        for number in numbers:
            named = self.members(self.machine.program.blocks[number])
            masks = np.where(self.parked[number], named, masks)
        alive = _on(self.machine.alive)
        theirs = g.by_warp(np.broadcast_to(masks, g.shape), np.uint32(0))
        living = g.by_warp(np.broadcast_to(alive, g.shape), False)
        ready = theirs != 0
        for lane in range(WARP):
            named = ((theirs >> np.uint32(lane)) & np.uint32(1)) == 1
            other = theirs[:, lane : lane + 1]
            ready &= ~named | ~living[:, lane : lane + 1] | (other == theirs)
        if not ready.any():
            return
        together = g.from_rows(ready.reshape(g.warps * WARP, -1))
        for number in numbers:
            go = self.parked[number] & together
            if go.any():
                late = self.parked.pop(number) & ~together
                if late.any():
                    self.parked[number] = late
                self._open(number, go)
        self.machine.listener.warp_sync(together, masks)

    def _everybody(self) -> Any:
        return np.ones((1, 1, 1, 1), bool)


def _on(mask: Any) -> Any:
    return np.bool_(True) if mask is None else mask
