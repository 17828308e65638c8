"""Loops without end: found where no fair schedule changes anything any more.

Seen first: some lane is back at a block with all registers that it needs as they were. Then the
groups take turns, and three things prove the end: nobody changes global or shared memory,
every lane that can run does, and each is back where it was. What a lane does is then the
same round for ever, whoever goes next. A round that changes memory proves nothing, even
if the change is undone: another schedule might let somebody in between.

Clocks stand while that is looked for. Who has read one does the same again at that time; so
the end is proved once more, an hour later: waits with a limit are over by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from kernels.ptx.module import Instruction

from ..compile.blocks import EXIT
from ..geometry import Mask, as_mask
from ..isa.roles import callee, roles
from .kept import Kept
from .schedule import Groups
from .waiting import Stuck

if TYPE_CHECKING:
    from .machine import Machine

_FIRST_LOOK = 1 << 10
_VISITS = 64
_LATER = (1 << 42) + (1 << 30)
"""Ticks, an hour in ns; and many for who looks at 32 bits of them."""


class _Round:
    """A round in which all groups take turns, while memory has to stay as it is."""

    def __init__(self, machine: Machine, number: int, mask: Mask | None) -> None:
        self.machine = machine
        self.started = machine.step
        self.writes = machine.memories.writes
        machine.memories.watched = machine.memories.exact = True
        self.met = False
        self.last = -1
        self.visited: set[int] = set()
        self._keep(number, mask)

    def _keep(self, number: int, mask: Mask | None) -> None:
        """Keep the state as it is now; nobody has moved."""
        machine = self.machine
        self.kept = Kept(machine, number, mask)
        self.local = np.copy(machine.memories.local.words)
        self.moved = np.zeros(machine.geometry.shape, bool)
        self.returned = np.zeros(machine.geometry.shape, bool)
        self.held = self._held()

    def _held(self) -> dict[int, Mask]:
        """The lanes that are held at barriers and warp instructions, by block."""
        machine, shape = self.machine, self.moved.shape
        waiting = [(wait.block.number, wait.mask) for wait in machine.held()]
        held: dict[int, Mask] = {}
        for number, mask in [*machine.gates.parked.items(), *waiting]:
            held[number] = held.get(number, np.zeros(shape, bool)) | as_mask(mask)
        return held

    def proves(self, number: int, mask: Mask | None) -> bool | None:
        """Whether the round is closed; ``None`` if it has failed. Called before each block."""
        machine = self.machine
        if self.last >= 0:
            block = machine.program.blocks[self.last]
            if machine.memories.writes != self.writes:
                return None
            self.met |= block.gate is not None or block.ends == "barrier"
        self.last = number
        self.visited.add(number)
        closed = self._close(number, mask)
        age = machine.step - self.started
        if not closed and self.met and age >= _VISITS and age & (age - 1) == 0:
            self._keep(number, mask)  # it may have begun on the way to what comes back
        self.moved |= as_mask(mask)
        return closed

    def _close(self, number: int, mask: Mask | None) -> bool:
        machine = self.machine
        back = self.kept.same(number, mask) & self.moved
        if not back.any():
            return False
        local = (machine.memories.local.words == self.local).all(axis=0)
        back = back & local.reshape(machine.memories.local.shape)
        groups = machine.groups | {number: mask}
        running = {n: as_mask(machine.splits.leaders(n, groups)) for n in groups}
        if not self.met:  # nobody depends on anybody
            self.returned |= back
            return all((self.returned | ~lanes).all() for lanes in running.values())
        # Lanes that meet depend on each other: all have to be back at one time.
        if number != self.kept.number or set(machine.groups) | {number} != set(self.kept.groups):
            return False
        for group, lanes in groups.items():
            before = np.broadcast_to(as_mask(self.kept.groups[group]), self.moved.shape)
            same = np.array_equal(before, np.broadcast_to(as_mask(lanes), self.moved.shape))
            moved = (self.kept.same(group, lanes) & self.moved) | ~running[group]
            if not (same and moved.all()):
                return False
        held = self._held()
        return held.keys() == self.held.keys() and all(
            np.array_equal(lanes, self.held[group]) and (self.kept.equal(lanes) | ~lanes).all()
            for group, lanes in held.items()
        )


class Idle:
    """Lanes that wait for a change of memory by looking at it again and again.

    They came back to where they look, with all registers and all memory as they were, and
    met nobody on the way: until somebody writes they do the same again, and need not run.

    Attributes:
        lanes: Those lanes; ``None`` if there are none.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.lanes: Mask | None = None
        self.visited: set[int] = set()
        self._since: tuple[int, ...] = ()
        self._looks: dict[int, list[Kept]] = {}

    def look(self, number: int, mask: Mask | None) -> None:
        """Lanes come to a block that looks at what others may change."""
        memories = self.machine.memories
        clock = self.machine.names["S"].reads
        now = (memories.writes, memories.local_writes, self.machine.meets, clock)
        if now != self._since:
            self._since = now
            self._looks.clear()
            self.visited = {number}
        looks = self._looks.setdefault(number, [])
        for kept in looks:
            same = kept.same(number, mask)
            if same.any():
                self.lanes = same if self.lanes is None else self.lanes | same
        del looks[: -_VISITS + 1]
        looks.append(Kept(self.machine, number, mask))

    def awake(self, groups: Groups) -> Groups:
        """The groups without lanes that are idle."""
        if self._since[0] != self.machine.memories.writes:
            self.lanes = None
            return groups
        assert self.lanes is not None
        found = {number: as_mask(mask) & ~self.lanes for number, mask in groups.items()}
        return {number: mask for number, mask in found.items() if mask.any()}


class LivelockWatch:
    """Looks out for loops without end, less and less often.

    Attributes:
        next_look: The step at which to be called.
        turns: Whether the groups have to take turns now.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.next_keep = _FIRST_LOOK
        self.next_look = min(_FIRST_LOOK, machine.step_limit)
        self.kept: Kept | None = None
        self.round: _Round | None = None
        self.polled = self.later = False

    @property
    def turns(self) -> bool:
        """Whether the groups have to take turns now."""
        return self.round is not None

    def look(self, number: int, mask: Mask | None) -> None:
        """Called before a block runs, from ``next_look`` on.

        Raises:
            Stuck: Nothing can change any more, or the step limit is reached.
        """
        machine = self.machine
        if machine.step >= machine.step_limit:
            raise self._stuck("limit", number, mask)
        if self.round is not None:
            self._go_round(number, mask)
        elif self.kept is not None:
            self._watch(number, mask)
        elif machine.step >= self.next_keep:
            self.next_keep = machine.step * 2
            self.kept, self.polled = Kept(machine, number, mask), False
            machine.names["S"].stop()
        watching = self.round or self.kept
        self.next_look = machine.step + 1 if watching else min(self.next_keep, machine.step_limit)

    def _watch(self, number: int, mask: Mask | None) -> None:
        """Is any lane back where it was?"""
        assert self.kept is not None
        machine, kept = self.machine, self.kept
        self.polled |= number in machine.map.pollers
        if number == kept.number:
            kept.visits += 1
            if kept.same(number, mask).any():
                self.kept, self.round = None, _Round(machine, number, mask)
                self.round.proves(number, mask)
                return
            if machine.names["S"].reads != kept.clock and not kept.visits & (kept.visits - 1):
                self.kept = Kept(machine, number, mask)  # it had read them while they ran
                self.kept.take_place(kept)
                kept = self.kept
        enough = machine.step - kept.step >= _VISITS + kept.step // 8
        if (kept.visits > _VISITS and enough) or machine.step - kept.step > kept.step // 2:
            self.kept = None
            if self.polled and machine.others_to_come:
                self.round = _Round(machine, number, mask)
                self.round.proves(number, mask)
            else:
                self._go_on()

    def _go_round(self, number: int, mask: Mask | None) -> None:
        """Has everybody had a turn, and come back, with nothing changed?"""
        assert self.round is not None
        machine, started = self.machine, self.round.started
        closed = self.round.proves(number, mask)
        late = machine.step - started > max(4096, started // 2)
        if late and closed is False and machine.others_to_come and self.polled:
            raise self._stuck("idle", number, mask)
        if closed:
            clocks = machine.names["S"]
            if clocks.reads != self.round.kept.clock and not self.later:
                clocks.stop(_LATER)
                self.later, self.round, self.next_keep = True, None, machine.step + _VISITS
                machine.memories.watched = False
                return
            if machine.barriers.release(loose=True):
                pass
            elif machine.gates.parked:
                machine.gates.force()
            elif not machine.splits.free(machine.groups | {number: mask}):
                raise self._stuck("repeats", number, mask)
        if closed is not False or late:
            self.round = None
            machine.memories.watched = False
            self._go_on()

    def _go_on(self) -> None:
        """Nothing is proved: clocks run again."""
        self.machine.names["S"].stopped, self.later = None, False

    def _stuck(self, why: str, number: int, mask: Mask | None) -> Stuck:
        machine = self.machine
        machine.memories.watched = False
        machine.visited = self.round.visited if self.round else None
        return Stuck(why, machine.never(), {**machine.groups, number: mask}, machine.step)


def cycle(machine: Machine, number: int) -> list[Instruction]:
    """The instructions of the loop in which a block stands, what it waits for in front."""
    after, among = machine.map.after, machine.visited
    before: dict[int, list[int]] = {}
    for at, ways in enumerate(after):
        for to in ways:
            before.setdefault(to, []).append(at)

    def reached(step: Callable[[int], Iterable[int]]) -> set[int]:
        found, todo = {number}, [number]
        while todo:
            for to in step(todo.pop()):
                if to != EXIT and to not in found and (among is None or to in among):
                    found.add(to)
                    todo.append(to)
        return found

    loop = reached(lambda n: after[n]) & reached(lambda n: before.get(n, []))
    blocks = [machine.program.blocks[n] for n in sorted(loop)]
    instructions = [ins for block in blocks for ins in block.block.instructions]
    sites = [s for s in machine.program.sites if s.block in loop and s.counted]
    polls = [s for s in sites if s.access != "store" and s.space not in ("local", "const")]
    polls.sort(key=lambda s: roles(s.instruction).row.phase != "wait")
    first = [s.instruction for s in polls if s.instruction.location]
    functions = {s.function for s in polls}  # without lines, as NVRTC's own: where it is called
    first += [i for i in instructions if callee(i) in functions]
    return first + sorted(instructions, key=lambda ins: ins.location is None)
