"""Block barriers: who is held where, and when they are let go.

``bar.sync``, ``barrier``, ``bar.red`` and ``bar.arrive``, numbered and counted (PTX ISA,
"Parallel Synchronization and Communication Instructions: bar, barrier").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .blocks import Block
from .flow import deciders
from .program import CompiledBlock
from .schedule import Schedule
from .waiting import Waiting

if TYPE_CHECKING:
    from .machine import Machine


def part_of_a_block(lanes: Any, among: Any, shape: tuple[int, ...]) -> bool:
    """Whether some block has lanes here and others that are not."""
    here = np.broadcast_to(lanes, shape)
    rest = ~here if among is None else among & ~here
    return bool((here.any(axis=(0, 1, 2)) & rest.any(axis=(0, 1, 2))).any())


class Splits:
    """Branches that sent threads of one block different ways.

    Attributes:
        places: Numbers of their basic blocks.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.places: set[int] = set()
        self._deciders: dict[int, set[int]] = {}

    def note(self, number: int, lanes: Any, among: Any, shape: tuple[int, ...]) -> None:
        """At the end of a basic block some lanes, among those there, went one way."""
        if number not in self.places and part_of_a_block(lanes, among, shape):
            self.places.add(number)

    def decide_on(self, number: int) -> bool:
        """Whether one of them decides if a basic block is reached."""
        if number not in self._deciders:
            self._deciders[number] = deciders(self.blocks, number) | {number}
        return not self._deciders[number].isdisjoint(self.places)


class Barriers:
    """The block barriers of one batch.

    Attributes:
        waiting: Lanes that are held.
        arrived: Threads that passed ``bar.arrive`` since, by barrier number.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waiting: list[Waiting] = []
        self.arrived: dict[int, Any] = {}

    def come(self, block: CompiledBlock, out: Any, mask: Any, alone: bool) -> int | None:
        """Lanes come to a barrier.

        Returns:
            Where they go on, or ``None`` if they were sent there or are held.
        """
        machine = self.machine
        guard, number, count, predicate = out
        if guard is not None:
            coming, passing = machine.split(guard, mask)
            if passing is not False:
                machine.join(block.block.follow, passing)
            if coming is False:
                return None
            if passing is not False:
                machine.splits.note(block.number, coming, mask, machine.geometry.shape)
            mask, alone = coming, False
        if "arrive" in block.block.end.modifiers:  # type: ignore[union-attr]
            self._arrive(number, mask)
            return block.block.follow
        wait = Waiting(block, mask, number, count, predicate)
        if alone and number.ndim == 0 and count.ndim == 0 and not count:
            self._let_go([wait], mask)
            return block.block.follow
        wait.in_pieces = self._in_pieces(block, mask)
        self.waiting.append(wait)
        if np.any(count):  # it may be complete without the others
            self.release()
        return None

    def _in_pieces(self, block: CompiledBlock, mask: Any) -> bool:
        """Whether threads come without others of their block, by a branch's doing.

        Told in lockstep only, which brings branches together where it can. It cannot always
        (fairness lets a group go that waits for one that loops on), so a branch has to be
        there, too, that split a block and decides on this barrier.
        """
        machine = self.machine
        if mask is None or type(machine.schedule) is not Schedule or not machine.splits.places:
            return False
        part = part_of_a_block(mask, machine.alive, machine.geometry.shape)
        return part and machine.splits.decide_on(block.number)

    def _arrive(self, number: Any, mask: Any) -> None:
        """``bar.arrive``: counted, not held. Warps count as 32 threads."""
        key = int(np.asarray(number).reshape(-1)[0])
        self.arrived[key] = self.arrived.get(key, 0) + self._warps_of(mask) * 32
        self.machine.listener.arrive(mask, key)

    def _warps_of(self, mask: Any) -> Any:
        """How many warps of each block have a lane in the mask, ``(blocks,)``."""
        bits = self.machine.geometry.warp_bits(np.bool_(True) if mask is None else mask)
        return np.broadcast_to((bits != 0).sum(axis=0), (self.machine.geometry.columns,))

    def release(self) -> bool:
        """Let go of every block whose threads have all come; whether there was one."""
        if not self.waiting:
            return False
        machine = self.machine
        g = machine.geometry
        if (
            len(self.waiting) == 1
            and not machine.groups
            and not machine.gates.parked
            and not np.any(self.waiting[0].count)
            and self.waiting[0].number.ndim == 0
            and self._covers(self.waiting[0].mask)
        ):
            wait = self.waiting.pop()
            self._let_go([wait], wait.mask)
            machine.join(wait.block.block.follow, wait.mask)
            return True
        whole = np.ones(g.shape, bool)
        alive = whole if machine.alive is None else np.broadcast_to(machine.alive, g.shape)
        released = False
        numbers: set[int] = set()
        for wait in self.waiting:
            numbers |= set(np.unique(wait.number).tolist())
        for number in sorted(numbers):
            members: list[tuple[Waiting, Any]] = []
            union = np.zeros(g.shape, bool)
            wanted = np.zeros(g.columns, np.int64)
            for wait in self.waiting:
                lanes = (wait.number == number) & (whole if wait.mask is None else wait.mask)
                lanes = np.broadcast_to(lanes, g.shape)
                if lanes.any():
                    members.append((wait, lanes))
                    union |= lanes
                    count = np.where(lanes, wait.count, 0)
                    wanted = np.maximum(wanted, count.reshape(g.threads, -1).max(axis=0))
            present = union.any(axis=(0, 1, 2))
            every = (union | ~alive).all(axis=(0, 1, 2))
            union = self._generation(union, wanted, self.arrived.get(number, 0))
            counted = self._warps_of(union) * 32 + self.arrived.get(number, 0)
            done = present & np.where(wanted > 0, counted >= wanted, every)
            if not done.any():
                continue
            released = True
            if number in self.arrived:
                self.arrived[number] = np.where(done, 0, self.arrived[number])
            go: list[Waiting] = []
            for wait, lanes in members:
                leaving = lanes & union & done
                if not leaving.any():
                    continue
                go.append(dataclasses.replace(wait, mask=leaving))
                rest = (whole if wait.mask is None else wait.mask) & ~leaving
                wait.mask = rest
            self._let_go(go, union & done)
            for wait in go:
                machine.join(wait.block.block.follow, wait.mask)
        self.waiting = [w for w in self.waiting if w.mask is None or w.mask.any()]
        return released

    def _generation(self, union: Any, wanted: Any, arrived: Any) -> Any:
        """Of the lanes at a counted barrier, the warps that complete it: the lowest ones."""
        if not wanted.any():
            return union
        g = self.machine.geometry
        here = np.broadcast_to(g.warp_bits(union) != 0, (g.warps, g.columns))
        turn = np.cumsum(here, axis=0) * 32 + arrived
        mine = here & ((turn <= wanted) | (wanted == 0))
        return union & np.repeat(mine, 32, axis=0)[: g.threads].reshape(g.shape)

    def _covers(self, mask: Any) -> bool:
        if mask is None:
            return True
        alive = np.bool_(True) if self.machine.alive is None else self.machine.alive
        return bool((mask | ~alive).all())

    def _let_go(self, waits: list[Waiting], lanes: Any) -> None:
        self.machine.barrier_warps += self.machine.count(lanes)[1]
        for wait in waits:
            if wait.block.reduction:
                self._reduce(wait, waits, lanes)
        self.machine.listener.barrier(waits, lanes, self.machine.alive)

    def _reduce(self, wait: Waiting, waits: list[Waiting], lanes: Any) -> None:
        """``bar.red``: a reduction over all threads that came, given to each."""
        g = self.machine.geometry
        operation, index = wait.block.reduction  # type: ignore[misc]
        true = np.zeros(g.shape, bool)
        for other in waits:
            mask = np.bool_(True) if other.mask is None else other.mask
            true |= np.broadcast_to(other.predicate & mask, g.shape)
        on = np.broadcast_to(np.bool_(True) if lanes is None else lanes, g.shape)
        result: Any
        if operation == "popc":
            result = (true & on).sum(axis=(0, 1, 2), dtype=np.int32)
        elif operation == "or":
            result = (true & on).any(axis=(0, 1, 2))
        else:
            result = (true | ~on).all(axis=(0, 1, 2))
        mine = np.bool_(True) if wait.mask is None else wait.mask
        self.machine.registers[index] = np.where(
            mine, result.reshape(1, 1, 1, -1), self.machine.registers[index]
        )
