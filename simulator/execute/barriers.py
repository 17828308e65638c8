"""Block barriers: who is held where, and when they are let go.

``bar.sync``, ``barrier``, ``bar.red`` and ``bar.arrive`` (PTX ISA, "Parallel
Synchronization and Communication Instructions: bar, barrier"). A barrier belongs to a
block. It is met by its number and its count of threads, wherever in the code; whole warps
are counted. One without a count waits for all threads of the block that live.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ..compile.program import CompiledBlock
from ..events import Apart
from ..geometry import EVERY_LANE, NO_LANE, WARP, Flat, Mask, Rows, Shape, as_mask, blocks_of
from .divergence import Divergence
from .waiting import Arrivals, Operands, Waiting

if TYPE_CHECKING:
    from .machine import Machine

NUMBERS = 16
"""Barriers of a block."""

Key = tuple[int, int]
"""A barrier: its number, and the count of threads that it waits for (0: the block)."""


class Barriers:
    """The block barriers of one batch.

    Attributes:
        waiting: Lanes that are held.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waiting: list[Waiting] = []
        self.arrivals: dict[Key, Arrivals] = {}
        self.divergence = Divergence(machine)

    def come(
        self, block: CompiledBlock, out: Operands, mask: Mask | None, alone: bool
    ) -> int | None:
        """Lanes come to a barrier.

        Returns:
            Where they go on, or ``None`` if they were sent there or are held.
        """
        machine = self.machine
        number, count, predicate = out
        wait = Waiting(block, mask, number, count.view(np.uint32), predicate, machine.step)
        self._check_operands(wait)
        if not block.holds:
            self._arrive(wait)
            if alone:
                return block.block.follow
            machine.join(block.block.follow, mask)
            return None
        if alone and number.ndim == 0 and count.ndim == 0 and not count and not self.arrivals:
            self._let_go([wait], mask)
            return block.block.follow
        self.waiting.append(wait)
        if np.any(count):  # it may be complete without the others
            self.release()
        return None

    def _check_operands(self, wait: Waiting) -> None:
        """A barrier has a number below 16, and a count of whole warps."""
        number, count = wait.number, wait.count
        wrong = (number < 0) | (number >= NUMBERS)
        for how, value, bad in (("number", number, wrong), ("count", count, count % WARP != 0)):
            if np.any(bad):
                lanes = bad if wait.mask is None else bad & wait.mask
                if lanes.any():
                    which = np.broadcast_to(value, lanes.shape)[lanes]
                    self.divergence.tell(Apart(how, wait.block, lanes, value=int(which.flat[0])))

    def _arrive(self, wait: Waiting) -> None:
        """``bar.arrive``: counted, not held."""
        machine = self.machine
        for key in self._keys(wait):
            lanes = self._lanes(key, wait)
            if key not in self.arrivals:
                self.arrivals[key] = Arrivals(machine)
            self.arrivals[key].add(lanes)
            for tell in machine.told.arrive:
                tell(lanes, key[0])

    def _keys(self, wait: Waiting) -> list[Key]:
        """The barriers that lanes mean."""
        number, count = wait.number, wait.count
        if number.ndim == 0 and count.ndim == 0:
            return [(int(number), int(count))]
        on = np.broadcast_to(as_mask(wait.mask), self.machine.geometry.shape)
        pairs = [np.broadcast_to(value, on.shape)[on] for value in (number, count)]
        return sorted(set(zip(*(values.tolist() for values in pairs), strict=True)))

    def _lanes(self, key: Key, wait: Waiting) -> Mask:
        """Of lanes, those that mean one barrier, in the batch's full shape."""
        lanes = (wait.number == key[0]) & (wait.count == key[1]) & as_mask(wait.mask)
        return np.broadcast_to(lanes, self.machine.geometry.shape)

    # -- letting go -----------------------------------------------------------------

    def release(self, loose: bool = False) -> bool:
        """Let go of those for whom all have come; whether there were any.

        ``loose``: nothing else can run: count a warp of which any lane has come.
        """
        if not self.waiting:
            return False
        machine = self.machine
        if (
            len(self.waiting) == 1
            and not machine.groups
            and not machine.gates.parked
            and not self.arrivals
            and not np.any(self.waiting[0].count)
            and self.waiting[0].number.ndim == 0
            and self._covers(self.waiting[0].mask)
        ):
            wait = self.waiting.pop()
            self._let_go([wait], wait.mask)
            machine.join(wait.block.block.follow, wait.mask)
            return True
        released = False
        for key in sorted({k for w in self.waiting for k in self._keys(w)}):
            for again in (False, True)[: 1 + loose]:
                while self._counted(key, loose, again) if key[1] else self._whole(key):
                    released = True
        self.waiting = [w for w in self.waiting if w.mask is None or w.mask.any()]
        return released

    def _members(self, key: Key) -> list[tuple[Waiting, Mask]]:
        """The lanes held at one barrier, in the order of their coming."""
        return [(w, held) for w in self.waiting if (held := self._lanes(key, w)).any()]

    def _whole(self, key: Key) -> bool:
        """A barrier of the whole block: every thread that lives has to come, or have arrived."""
        g = self.machine.geometry
        members = self._members(key)
        union = _union([lanes for _, lanes in members], g.shape)
        arrivals = self.arrivals.get((key[0], g.warps * WARP))
        used: list[Rows] = []
        arrived: Mask = NO_LANE
        if arrivals and arrivals.open:
            ahead = np.zeros((g.warps, g.columns), bool)
            for arrival in arrivals.open:
                used.append(arrival.warps & ~ahead)
                ahead |= arrival.warps
            arrived = g.spread(ahead)
        absent = np.broadcast_to(as_mask(self.machine.alive), g.shape) & ~union & ~arrived
        done = blocks_of(union) & ~blocks_of(absent)
        if not done.any():
            return False
        if arrivals and used:
            arrivals.use_up([warps & done for warps in used])
        go = union & done & ~arrived  # who has arrived is held for the next time
        if go.any():
            self._go(members, go)
        return True

    def _counted(self, key: Key, loose: bool, again: bool) -> bool:
        """A barrier of so many threads: the warps that came first, each of them once.

        ``again``: as often as it arrived, as a GPU does it (seen on an H200); if others come as
        well, that hangs on who is first, so it is left for when nobody else comes.
        """
        g = self.machine.geometry
        members = self._members(key)
        arrivals = self.arrivals.get(key)
        if arrivals:
            arrivals.settle(loose)
        union = _union([lanes for _, lanes in members], g.shape)
        ready = g.any_of_warp(union)
        if not loose:  # a warp has come when its living lanes have
            absent = np.broadcast_to(as_mask(self.machine.alive), g.shape) & ~union
            ready = ready & ~g.any_of_warp(absent)
        wanted = -(-key[1] // WARP)
        shape = g.warps, g.columns
        taken, waits = np.zeros(shape, np.int64), np.zeros(shape, bool)
        used: dict[int, Rows] = {}
        queue: list[tuple[int, int, Rows]] = [
            (wait.since, -1, g.any_of_warp(lanes) & ready) for wait, lanes in members
        ]
        queue += [(a.since, i, a.warps) for i, a in enumerate(arrivals.open if arrivals else ())]
        for _, number, warps in sorted(queue, key=lambda entry: entry[:2]):
            new = warps & ~(taken > 0 if not again else waits & (number < 0))
            new = new & (np.cumsum(new, axis=0) + taken.sum(axis=0) <= wanted)
            taken += new
            if number < 0:
                waits |= new
            else:
                used[number] = new
        done = taken.sum(axis=0) == wanted
        if not done.any():
            return False
        if arrivals:
            arrivals.use_up([used[i] & done for i in range(len(used))])
        go = union & g.spread(waits & done)
        if go.any():
            self.divergence.check_warps(members, go)
            self._go(members, go)
        return True

    def _go(self, members: list[tuple[Waiting, Mask]], lanes: Mask) -> None:
        """Let lanes go that are held at one barrier."""
        machine = self.machine
        waits: list[Waiting] = []
        for wait, here in members:
            leaving = here & lanes
            if leaving.any():
                waits.append(dataclasses.replace(wait, mask=leaving))
                wait.mask = as_mask(wait.mask) & ~leaving
        self._let_go(waits, lanes)
        for wait in waits:
            machine.join(wait.block.block.follow, wait.mask)

    def _covers(self, mask: Mask | None) -> bool:
        return mask is None or bool((mask | ~as_mask(self.machine.alive)).all())

    def _let_go(self, waits: list[Waiting], lanes: Mask | None) -> None:
        if not np.any(waits[0].count):
            self.divergence.look_at(waits)
        for wait in waits:
            if wait.block.reduction:
                self._reduce(wait, waits, lanes)
        number, warps = _number(waits[0], lanes), self.machine.count(lanes)[1]
        for tell in self.machine.told.barrier:
            tell(lanes, number, warps)

    def _reduce(self, wait: Waiting, waits: list[Waiting], lanes: Mask | None) -> None:
        """``bar.red``: a reduction over all threads that came, given to each."""
        g = self.machine.geometry
        operation, index = wait.block.reduction  # type: ignore[misc]
        true = np.zeros(g.shape, bool)
        for other in waits:
            if other.predicate is not None:
                true |= np.broadcast_to(other.predicate & as_mask(other.mask), g.shape)
        on = np.broadcast_to(as_mask(lanes), g.shape)
        if operation == "popc":
            result: Flat = (true & on).sum(axis=(0, 1, 2), dtype=np.int32)
        elif operation == "or":
            result = blocks_of(true & on)
        else:
            result = ~blocks_of(~true & on)
        registers = self.machine.registers
        here, result = as_mask(wait.mask), result.reshape(1, 1, 1, -1)
        registers[index] = np.where(here, result, registers[index])

    def never(self) -> list[Apart]:
        """Nothing can run any more: those that are held, and who does not come to them."""
        machine, shape = self.machine, self.machine.geometry.shape
        alive = np.broadcast_to(as_mask(machine.alive), shape)
        found = []
        for wait in self.waiting:
            for key in self._keys(wait):
                lanes = self._lanes(key, wait)
                union = _union([here for _, here in self._members(key)], shape)
                blocks = blocks_of(lanes)
                missing = ~union & blocks & (alive if not key[1] else EVERY_LANE)
                elsewhere = [
                    (other.block, there)
                    for other in self.waiting
                    if (there := as_mask(other.mask) & missing).any()
                ]
                branches = machine.paths.kept_away(wait.block, missing, lanes)
                found.append(
                    Apart("never", wait.block, lanes, missing, elsewhere, branches, key[1])
                )
        return found


def _number(wait: Waiting, lanes: Mask | None) -> int:
    """The barrier's number, which is the same for all lanes that it let go."""
    if wait.number.ndim == 0 or lanes is None:
        return int(wait.number.reshape(-1)[0])
    shape = np.broadcast_shapes(wait.number.shape, lanes.shape)
    return int(np.broadcast_to(wait.number, shape)[np.broadcast_to(lanes, shape)][0])


def _union(masks: list[Mask], shape: Shape) -> Mask:
    union = np.zeros(shape, bool)
    for mask in masks:
        union |= mask
    return union
