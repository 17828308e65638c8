"""What the machine was like at one step: lanes that come back to it do the same again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..compile.needed import ALL
from ..geometry import NO_LANE, Mask, as_mask
from .frames import bits

if TYPE_CHECKING:
    from .machine import Machine


class Kept:
    """The state of the machine at one step, to see what comes back."""

    def __init__(self, machine: Machine, number: int, mask: Mask | None) -> None:
        self.machine, self.number, self.step = machine, number, machine.step
        self.clock = machine.names["S"].reads
        self.registers = list(machine.registers)
        self.frames = machine.ends.frames.now()
        self.orders: dict[int | None, list[int]] = {}
        self.groups = machine.groups | {number: mask}
        self.visits = 0

    def take_place(self, of: Kept) -> None:
        """It goes on with what has been looked for since an earlier one."""
        self.visits, self.step, self.clock = of.visits, of.step, of.clock

    def same(self, number: int, lanes: Mask | None) -> Mask:
        """Of lanes that come to a block, those that have been there with the same registers."""
        if number not in self.groups:
            return NO_LANE
        return self.equal(as_mask(self.groups[number]) & as_mask(lanes), number)

    def equal(self, same: Mask, number: int | None = None) -> Mask:
        """Of some lanes, those that have the same registers as then.

        ``number``: of the block at which they are, if only what they need there counts.
        """
        now = self.machine.registers
        if number not in self.orders:
            needed = ALL if number is None else self.machine.needed.by((number,))
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
        return self.machine.ends.frames.equal(self.frames, same)
