"""Block barriers: who is held where, and when they are let go.

``bar.sync``, ``barrier``, ``bar.red`` and ``bar.arrive`` (PTX ISA, "Parallel
Synchronization and Communication Instructions: bar, barrier"). A barrier belongs to a
block. It is met by its number and its count of threads, wherever in the code; whole warps
are counted. One without a count waits for all threads of the block that live.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compile.program import CompiledBlock
from ..events import Apart
from ..geometry import WARP
from ..isa.roles import roles
from .waiting import Waiting

if TYPE_CHECKING:
    from .machine import Machine

NUMBERS = 16
"""Barriers of a block."""

_Key = tuple[int, int]
"""A barrier: its number, and the count of threads that it waits for (0: the block)."""


@dataclass
class _Arrival:
    """Warps that passed ``bar.arrive``, bools ``(warps, blocks)``, at a step."""

    warps: Any
    since: int


class _Arrivals:
    """The ``bar.arrive`` of one barrier: a warp has arrived when its living lanes have."""

    def __init__(self, barriers: Barriers) -> None:
        g = barriers.machine.geometry
        self.barriers = barriers
        self.lanes = np.zeros(g.shape, np.int64)
        self.told = np.zeros((g.warps, g.columns), np.int64)
        self.open: list[_Arrival] = []

    def add(self, lanes: Any) -> None:
        """Lanes arrive."""
        self.lanes += lanes
        self.settle(False)

    def settle(self, loose: bool) -> None:
        """See which warps have arrived; ``loose``: those with any lane that has."""
        machine = self.barriers.machine
        g = machine.geometry
        if loose:
            full = g.by_warp(self.lanes, 0).max(axis=1)
        else:
            living = np.broadcast_to(_on(machine.alive), g.shape)
            most = np.iinfo(np.int64).max
            full = g.by_warp(np.where(living, self.lanes, most), most).min(axis=1)
            full = np.where(full == most, g.by_warp(self.lanes, 0).max(axis=1), full)
        while (full > self.told).any():
            warps = full > self.told
            self.open.append(_Arrival(warps, machine.step))
            self.told += warps


class Barriers:
    """The block barriers of one batch.

    Attributes:
        waiting: Lanes that are held.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waiting: list[Waiting] = []
        self.arrivals: dict[_Key, _Arrivals] = {}
        self._gone: dict[int, Any] = {}
        self._seen: dict[int, Any] = {}

    def come(self, block: CompiledBlock, out: Any, mask: Any, alone: bool) -> int | None:
        """Lanes come to a barrier.

        Returns:
            Where they go on, or ``None`` if they were sent there or are held.
        """
        machine = self.machine
        guard, number, count, predicate = out
        if guard is not None:
            coming, passing = machine.split(guard, mask)
            machine.tell_ways(block.number, coming, passing)
            if passing is not False:
                machine.join(block.block.follow, passing)
            if coming is False:
                return None
            if passing is not False:
                mask, alone = coming, False
        self._check_operands(block, number, count, mask)
        assert block.block.end is not None
        if roles(block.block.end).row.waits == "nobody":
            self._arrive(number, count, mask)
            if alone:
                return block.block.follow
            machine.join(block.block.follow, mask)
            return None
        wait = Waiting(block, mask, number, count, predicate, machine.step)
        if alone and number.ndim == 0 and count.ndim == 0 and not count and not self.arrivals:
            self._let_go([wait], mask)
            return block.block.follow
        self.waiting.append(wait)
        if np.any(count):  # it may be complete without the others
            self.release()
        return None

    def _check_operands(self, block: CompiledBlock, number: Any, count: Any, mask: Any) -> None:
        """A barrier has a number below 16, and a count of whole warps."""
        wrong = (number < 0) | (number >= NUMBERS)
        for how, value, bad in (("number", number, wrong), ("count", count, count % WARP != 0)):
            if np.any(bad):
                lanes = bad if mask is None else bad & mask
                if lanes.any():
                    which = np.broadcast_to(value, lanes.shape)[lanes]
                    self._tell(Apart(how, block, lanes, value=int(which.flat[0])))

    def _arrive(self, number: Any, count: Any, mask: Any) -> None:
        """``bar.arrive``: counted, not held."""
        for key in self._keys(number, count, mask):
            lanes = self._lanes(key, number, count, mask)
            if key not in self.arrivals:
                self.arrivals[key] = _Arrivals(self)
            self.arrivals[key].add(lanes)
            for tell in self.machine.told.arrive:
                tell(lanes, key[0])

    def _keys(self, number: Any, count: Any, mask: Any) -> list[_Key]:
        """The barriers that lanes mean."""
        if number.ndim == 0 and count.ndim == 0:
            return [(int(number), int(count))]
        on = np.broadcast_to(_on(mask), self.machine.geometry.shape)
        both = number.astype(np.int64) << 32 | count.astype(np.int64) & 0xFFFFFFFF
        found = np.unique(np.broadcast_to(both, on.shape)[on]).tolist()
        return [(key >> 32, key & 0xFFFFFFFF) for key in found]

    def _lanes(self, key: _Key, number: Any, count: Any, mask: Any) -> Any:
        """Of the lanes in a mask, those that mean one barrier, in the batch's full shape."""
        lanes = (number == key[0]) & (count == key[1]) & _on(mask)
        return np.broadcast_to(lanes, self.machine.geometry.shape)

    # -- letting go -----------------------------------------------------------------

    def release(self, loose: bool = False) -> bool:
        """Let go of those for whom all have come; whether there were any.

        Args:
            loose: Nothing else can run: count a warp of which any lane has come.
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
        for key in sorted({k for w in self.waiting for k in self._keys(w.number, w.count, w.mask)}):
            while self._counted(key, loose) if key[1] else self._whole(key):
                released = True
        self.waiting = [w for w in self.waiting if w.mask is None or w.mask.any()]
        return released

    def _members(self, key: _Key) -> list[tuple[Waiting, Any]]:
        """The lanes held at one barrier, in the order of their coming."""
        found = [(w, self._lanes(key, w.number, w.count, w.mask)) for w in self.waiting]
        return [(wait, lanes) for wait, lanes in found if lanes.any()]

    def _whole(self, key: _Key) -> bool:
        """A barrier of the whole block: every thread that lives has to come, or have arrived."""
        g = self.machine.geometry
        members = self._members(key)
        union = _union([lanes for _, lanes in members], g.shape)
        arrivals = self.arrivals.get((key[0], g.warps * WARP))
        used: list[Any] = []
        arrived: Any = np.bool_(False)
        if arrivals and arrivals.open:
            ahead = np.zeros((g.warps, g.columns), bool)
            for arrival in arrivals.open:
                used.append(arrival.warps & ~ahead)
                ahead |= arrival.warps
            arrived = g.from_rows(np.repeat(ahead, WARP, axis=0))
        absent = np.broadcast_to(_on(self.machine.alive), g.shape) & ~union & ~arrived
        done = union.any(axis=(0, 1, 2)) & ~absent.any(axis=(0, 1, 2))
        if not done.any():
            return False
        if arrivals and used:
            self._use_up(arrivals, [warps & done for warps in used])
        go = union & done & ~arrived  # who has arrived is held for the next time
        if go.any():
            self._go(members, go)
        return True

    def _counted(self, key: _Key, loose: bool) -> bool:
        """A barrier of so many threads: the warps that came first, each of them once."""
        g = self.machine.geometry
        members = self._members(key)
        arrivals = self.arrivals.get(key)
        if arrivals:
            arrivals.settle(loose)
        union = _union([lanes for _, lanes in members], g.shape)
        ready = self._warps(union)
        if not loose:  # a warp has come when its living lanes have
            absent = np.broadcast_to(_on(self.machine.alive), g.shape) & ~union
            ready = ready & ~self._warps(absent)
        wanted = -(-key[1] // WARP)
        taken = np.zeros((g.warps, g.columns), bool)
        used: list[Any] = [None] * (len(arrivals.open) if arrivals else 0)
        queue: list[tuple[int, int, Any]] = [
            (wait.since, -1, self._warps(lanes) & ready) for wait, lanes in members
        ]
        queue += [(a.since, i, a.warps) for i, a in enumerate(arrivals.open if arrivals else ())]
        waits = np.zeros_like(taken)
        for _, number, warps in sorted(queue, key=lambda entry: entry[:2]):
            new = warps & ~taken
            new = new & (np.cumsum(new, axis=0) + taken.sum(axis=0) <= wanted)
            taken |= new
            if number < 0:
                waits |= new
            else:
                used[number] = new
        done = taken.sum(axis=0) == wanted
        if not done.any():
            return False
        if arrivals:
            self._use_up(arrivals, [new & done for new in used])
        go = union & g.from_rows(np.repeat(waits & done, WARP, axis=0))
        if go.any():
            self._check_warps(members, go)
            self._go(members, go)
        return True

    def _warps(self, lanes: Any) -> Any:
        """The warps with any of the lanes, bools ``(warps, blocks)``."""
        g = self.machine.geometry
        return np.broadcast_to(g.warp_bits(lanes) != 0, (g.warps, g.columns))

    def _use_up(self, arrivals: _Arrivals, used: list[Any]) -> None:
        for arrival, warps in zip(arrivals.open, used, strict=False):
            arrival.warps = arrival.warps & ~warps
        arrivals.open = [arrival for arrival in arrivals.open if arrival.warps.any()]

    def _go(self, members: list[tuple[Waiting, Any]], lanes: Any) -> None:
        """Let lanes go that are held at one barrier."""
        machine = self.machine
        waits: list[Waiting] = []
        for wait, here in members:
            leaving = here & lanes
            if leaving.any():
                waits.append(dataclasses.replace(wait, mask=leaving))
                wait.mask = _on(wait.mask) & ~leaving
        self._let_go(waits, lanes)
        for wait in waits:
            machine.join(wait.block.block.follow, wait.mask)

    def _covers(self, mask: Any) -> bool:
        return mask is None or bool((mask | ~_on(self.machine.alive)).all())

    def _let_go(self, waits: list[Waiting], lanes: Any) -> None:
        if not np.any(waits[0].count):
            self._look_at(waits, lanes)
        for wait in waits:
            if wait.block.reduction:
                self._reduce(wait, waits, lanes)
        number, warps = _number(waits[0], lanes), self.machine.count(lanes)[1]
        for tell in self.machine.told.barrier:
            tell(lanes, number, warps)

    def _reduce(self, wait: Waiting, waits: list[Waiting], lanes: Any) -> None:
        """``bar.red``: a reduction over all threads that came, given to each."""
        g = self.machine.geometry
        operation, index = wait.block.reduction  # type: ignore[misc]
        true = np.zeros(g.shape, bool)
        for other in waits:
            if other.predicate is not None:
                true |= np.broadcast_to(other.predicate & _on(other.mask), g.shape)
        on = np.broadcast_to(_on(lanes), g.shape)
        result: Any
        if operation == "popc":
            result = (true & on).sum(axis=(0, 1, 2), dtype=np.int32)
        elif operation == "or":
            result = (true & on).any(axis=(0, 1, 2))
        else:
            result = (true | ~on).all(axis=(0, 1, 2))
        registers = self.machine.registers
        registers[index] = np.where(_on(wait.mask), result.reshape(1, 1, 1, -1), registers[index])

    # -- who does not come ------------------------------------------------------------

    def _tell(self, apart: Apart) -> None:
        for tell in self.machine.told.apart:
            tell(apart)

    def _look_at(self, waits: list[Waiting], lanes: Any) -> None:
        """A barrier of whole blocks lets lanes go: did they come to it together?"""
        machine = self.machine
        g, paths = machine.geometry, machine.paths
        places: dict[int, Waiting] = {}
        for wait in waits:  # those that came to one place at several times
            known = places.setdefault(wait.block.number, wait)
            if known is not wait:
                places[wait.block.number] = dataclasses.replace(wait, mask=known.mask | wait.mask)
        waits = [places[number] for number in sorted(places)]
        for wait in waits:
            differ = paths.apart(wait.block, wait.mask, machine.registers)
            if differ is not None:
                here = np.broadcast_to(_on(wait.mask), g.shape) & differ
                branches = paths.between(wait.block, here)
                self._tell(Apart("rounds", wait.block, here, branches=branches))
        if len(waits) > 1:
            self._compare_places(waits)
        if machine.alive is None:
            return
        for wait in waits:
            if self._seen.get(wait.block.number) is not machine.alive:
                self._look_for_gone(wait)
            if wait.mask is machine.alive:  # as they will be next time
                self._seen[wait.block.number] = machine.alive

    def _look_for_gone(self, wait: Waiting) -> None:
        """Threads of a block have left the kernel without coming to its barrier."""
        machine = self.machine
        here = np.broadcast_to(_on(wait.mask), machine.geometry.shape)
        gone = here.any(axis=(0, 1, 2)) & ~machine.alive
        new = gone & ~self._gone.get(wait.block.number, np.bool_(False))
        if new.any():
            self._gone[wait.block.number] = gone | self._gone.get(
                wait.block.number, np.bool_(False)
            )
            here = here & new.any(axis=(0, 1, 2))
            branches = machine.paths.kept_away(wait.block, new, here)
            self._tell(Apart("gone", wait.block, here, new, branches=branches))

    def _compare_places(self, waits: list[Waiting]) -> None:
        """Threads of one block come to its barrier at several places of the code.

        To ``__syncthreads()`` (number 0) they must not, says CUDA C++. In PTX a barrier has
        no place, but the lanes of a warp have to come to it together.
        """
        told: Any = np.bool_(False)
        for i, wait in enumerate(waits):
            for first in waits[:i]:
                both = first.mask.any(axis=(0, 1, 2)) & wait.mask.any(axis=(0, 1, 2)) & ~told
                if not both.any():
                    continue
                told = told | both
                here, there = first.mask & both, wait.mask & both
                warps = self._warps(here) & self._warps(there)
                divided = bool(warps.any()) and (_aligned(first.block) or _aligned(wait.block))
                named = bool((first.number != 0).any())
                if named and not divided:
                    continue
                how = "warp" if named else "places"
                line = _line(first.block)
                if not named and line == _line(wait.block) and (line or not divided):
                    how = "rounds"  # copies of one place, or PTX that is not from C++
                branches = self.machine.paths.told_apart(first.block, there, here)
                self._tell(Apart(how, first.block, here, there, [(wait.block, there)], branches))

    def _check_warps(self, members: list[tuple[Waiting, Any]], go: Any) -> None:
        """The lanes of a warp have to come to an aligned barrier together."""
        g = self.machine.geometry
        absent = np.broadcast_to(_on(self.machine.alive), g.shape) & ~go
        before: Any = np.bool_(False)
        places: dict[int, tuple[Waiting, Any]] = {}
        for wait, lanes in members:  # a schedule may have brought them to one place in turns
            known = places.get(wait.block.number)
            places[wait.block.number] = (wait, lanes if known is None else known[1] | lanes)
        for wait, lanes in (places[number] for number in sorted(places)):
            warps = self._warps(lanes & go)
            if _aligned(wait.block):
                apart = warps & (self._warps(absent) | before)
                if apart.any():
                    here = lanes & go & g.from_rows(np.repeat(apart, WARP, axis=0))
                    others = ~here & g.from_rows(np.repeat(apart, WARP, axis=0))
                    branches = self.machine.paths.told_apart(wait.block, others, here)
                    self._tell(Apart("warp", wait.block, here, others, branches=branches))
            before = before | warps

    def never(self) -> list[Apart]:
        """Nothing can run any more: those that are held, and who does not come to them."""
        machine = self.machine
        shape = machine.geometry.shape
        alive = np.broadcast_to(_on(machine.alive), shape)
        found = []
        for wait in self.waiting:
            for key in self._keys(wait.number, wait.count, wait.mask):
                lanes = self._lanes(key, wait.number, wait.count, wait.mask)
                union = _union([here for _, here in self._members(key)], shape)
                blocks = lanes.any(axis=(0, 1, 2))
                missing = ~union & blocks & (alive if not key[1] else np.bool_(True))
                elsewhere = [
                    (other.block, there)
                    for other in self.waiting
                    if (there := _on(other.mask) & missing).any()
                ]
                branches = machine.paths.kept_away(wait.block, missing, lanes)
                found.append(
                    Apart("never", wait.block, lanes, missing, elsewhere, branches, key[1])
                )
        return found


def _on(mask: Any) -> Any:
    return np.bool_(True) if mask is None else mask


def _number(wait: Waiting, lanes: Any) -> int:
    """The barrier's number, which is the same for all lanes that it let go."""
    if wait.number.ndim == 0 or lanes is None:
        return int(wait.number.reshape(-1)[0])
    shape = np.broadcast_shapes(wait.number.shape, lanes.shape)
    return int(np.broadcast_to(wait.number, shape)[np.broadcast_to(lanes, shape)][0])


def _union(masks: list[Any], shape: tuple[int, ...]) -> Any:
    union = np.zeros(shape, bool)
    for mask in masks:
        union |= mask
    return union


def _line(block: CompiledBlock) -> tuple[str, int] | None:
    """The source line of a barrier; ``None`` for PTX that has none."""
    location = block.block.end.location if block.block.end else None
    return (location.user.file, location.user.line) if location else None


def _aligned(block: CompiledBlock) -> bool:
    """Whether all lanes of a warp have to execute a barrier as one."""
    end = block.block.end
    return end is not None and (roles(end).row.aligned or end.has("aligned"))
