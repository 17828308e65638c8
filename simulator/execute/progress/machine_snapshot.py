"""Snapshot of a batch's state, to detect that it recurs."""

from __future__ import annotations

from collections.abc import Callable

from ...compile.codegen.liveness import ALL, LiveRegisters
from ...core.geometry import NO_LANE, Mask, as_mask
from ..calls.call_frames import Frames, bits
from ..calls.special_registers import SpecialRegisters
from ..lane_state import LaneState


class MachineSnapshot:
    """State of a batch at one step.

    ``number``, ``mask``: the lanes that run next, which are in no group.
    """

    def __init__(
        self, state: LaneState, frames: Frames, clocks: SpecialRegisters, needed: LiveRegisters,
        number: int, mask: Mask | None,
    ) -> None:  # fmt: skip
        self.state, self.number, self.step = state, number, state.step
        self.clock = clocks.reads
        self.registers = list(state.registers)
        self._saved, self._needed = frames, needed
        self.frames = frames.now()
        self.orders: dict[int | None, list[int]] = {}
        self.groups = state.groups | {number: mask}
        self.visits = 0

    def take_place(self, of: MachineSnapshot) -> None:
        """Take over the search state of an earlier snapshot."""
        self.visits, self.step, self.clock = of.visits, of.step, of.clock

    def same(self, number: int, lanes: Mask | None) -> Mask:
        """Return the lanes that were at this block with the same registers."""
        if number not in self.groups:
            return NO_LANE
        return self.equal(as_mask(self.groups[number]) & as_mask(lanes), number)

    def equal(self, same: Mask, number: int | None = None) -> Mask:
        """Return the lanes with the same registers as in the snapshot.

        ``number``: their block, if only the registers live there matter.
        """
        now = self.state.registers
        if number not in self.orders:
            needed = ALL if number is None else self._needed.live_at((number,))
            depths = {register for register, _ in self.frames}
            self.orders[number] = [i for i in range(len(now)) if i in needed or i in depths]
        order = self.orders[number]
        for place, index in enumerate(order):
            new, old = now[index], self.registers[index]
            if new is old:
                continue
            same = same & (bits(new) == bits(old))
            if not same.any():  # what tells first is asked first the next time
                order.insert(0, order.pop(place))
                return same
        return self._saved.equal(self.frames, same)


Keep = Callable[[int, Mask | None], MachineSnapshot]
"""Takes a ``Kept`` of the batch, given the block and the lanes that run next."""
