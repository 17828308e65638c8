"""The lockstep machine: runs a batch of blocks, and decides which lanes go next.

Lanes stand at a basic block. The machine takes a group of lanes that stand at the
same one, runs it, and sees where they go; the lowest block goes first, which brings
branches together again. A barrier holds lanes until their block's others have come.

Longer: choosing lanes and running them are one loop.
"""

from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from ..compile.blocks import EXIT
from ..compile.needed import ALL
from ..compile.program import Code, CompiledBlock, Form, Program
from ..events import Apart, Loop, Stall, Told
from ..geometry import Geometry, Mask, as_mask
from ..isa.table import Results
from ..memory.access import Access
from ..memory.memories import Memories
from .barriers import Barriers
from .clusters import ClusterBarriers
from .ends import Ends
from .gates import Gates
from .livelock import Idle, LivelockWatch, cycle
from .paths import Map, Paths
from .picking import Picking
from .schedule import FAIR, Groups, Pick, Schedule
from .splits import Splits
from .waiting import Stuck, Waiting

_OFTEN, _APART = 8, 2048
"""So often once they have been apart for so many steps."""


class Machine:
    """Runs one program, batch after batch.

    ``names`` are the free ones of generated code: sites, parameters, constants; ``step_limit``:
    basic blocks a batch may run before it is given up; ``accesses``: of all sites, if lanes may be
    picked out.
    """

    def __init__(
        self,
        program: Program,
        names: dict[str, Any],
        schedule: Schedule,
        told: Told,
        memories: Memories,
        step_limit: int,
        accesses: Iterable[Access] | None = None,
    ) -> None:
        self.program, self.names, self.schedule = program, names, schedule
        self.told = told
        self.memories, self.step_limit = memories, step_limit
        self.map: Map = program.fact(Map)
        self.needed = program.needed
        self._functions: dict[tuple[int, int], Code] = {}
        self._active: dict[int, tuple[Mask | None, tuple[int, int]]] = {}
        self.picking = None if accesses is None else Picking(self, accesses)

    def stall(self, stuck: Stuck) -> Stall:
        """What there is to tell of lanes that are stuck."""
        spinning = [(cycle(self, number), mask) for number, mask in stuck.spinning.items()]
        loops = [Loop(loop[0], mask) for loop, mask in spinning if loop]
        return Stall(stuck.why, stuck.waiting, loops, stuck.steps)

    def run(self, geometry: Geometry, others_to_come: bool = False) -> None:
        """Run a batch until every lane is done.

        ``others_to_come``: whether blocks that are not in it could run together with it.

        Raises:
            Stuck: Lanes wait for something that cannot come.
        """
        self.geometry, self.others_to_come = geometry, others_to_come
        self.registers = list(self.program.registers)
        self.alive: Mask | None = None
        self.finished = False
        self.groups: Groups = {self.program.start: None}
        self.paths = Paths(self.map, geometry.shape)
        self.barriers, self.ends = Barriers(self), Ends(self)
        self.clusters = ClusterBarriers(self)
        self.gates = Gates(self)
        self.splits = Splits(self)
        self.ages: dict[int, int] = {}
        self.step = 0
        self._active = {}
        self.together = 0
        self.visited: set[int] | None = None
        self.meets = 0
        self.livelock, self.idle = LivelockWatch(self), Idle(self)
        self.schedule.start(geometry)
        while not self.finished:
            if self.gates.met:
                self._exchange()
                continue
            if self.groups:
                self._advance()
            elif not self.barriers.release() and not self.barriers.release(True):
                if self.gates.parked:
                    self.gates.force()
                elif not self.barriers.orders.look().any():
                    raise Stuck("waits", self.never(), {})
        self.barriers.orders.look()

    # -- choosing ---------------------------------------------------------------

    def _advance(self) -> None:
        """Take a group of lanes and run it until it splits, waits or ends."""
        alone = self.alone() and self.splits.settle(next(iter(self.groups)))
        if alone:
            self.together = self.step
        picked, picking = self._pick(), self.picking
        if picked is None:
            return
        number, mask, whole = picked
        self.ages[number] = self.step
        if whole:
            del self.groups[number]
            if alone:
                mask = self.alive
        else:
            alone = False
        self.memories.exact = not alone or self.memories.watched
        if not alone and (self.livelock.turns or self.step % FAIR == 0):
            self.barriers.release()
        while True:
            if picking and number in picking.about and picking.worth(number, mask):
                went_on = picking.run(number, as_mask(mask), alone)
                if went_on is None:
                    return
                (number, mask), alone = went_on, True
            self.step += 1
            if self.step >= self.livelock.next_look:
                self.livelock.look(number, mask)
            block = self.program.blocks[number]
            if block.gate is not None:
                self.meets += 1
                through = self.gates.through(block, mask, alone)
                if through is False:
                    return
                alone = alone and through is mask
                mask = through
                if not alone:
                    self.splits.meet(mask)
                if number in self.gates.ordering:
                    come = self.gates.heeded(block.gate.guard, as_mask(mask))
                    for tell in self.told.warp_sync:
                        tell(come, self.gates.members(block))
            following = self._execute(block, mask, not alone)
            if following is None:
                return
            if not alone:
                self.go(number, following, mask)
                return
            number = following

    def _execute(
        self, block: CompiledBlock, mask: Mask | None, form: int, *got: list[Results]
    ) -> int | None:
        """Lanes run a block; where they go on, if that is one place.

        ``got``: of lanes that have met others at copies of its first instruction.
        """
        number = block.number
        if form != Form.CONVERGED:
            self.splits.start(number, mask)
            self.idle.visited.add(number)
            if number in self.map.pollers and not self.livelock.turns:
                self.idle.look(number, mask)
        if number in self.map.heads:
            self.paths.enter(number, mask if form else None)
        threads, warps = self.count(mask)
        for tell in self.told.ran:
            tell(number, threads, warps)
        key = (number, form)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self.program.function(number, form, self.names)
        more = ((), self._needed()) if form == Form.DIVERGED else got
        out = function(self.registers, mask, *more)
        return self.ends.leave(block, out, mask, not form)

    def _needed(self) -> Container[int]:
        """The registers that lanes which are elsewhere may read still."""
        if self.livelock.turns or self.held() or self.gates.parked or self.gates.met:
            return ALL
        return self.needed.by(self.groups)

    def _exchange(self) -> None:
        """Lanes at copies of a warp instruction execute it as one, and the rest of their blocks."""
        met = self.gates.met.pop()
        self.memories.exact = True
        for number, got in self.gates.exchange(met).items():
            self.step += 1
            block, mask = self.program.blocks[number], met[number]
            self.splits.meet(mask)
            following = self._execute(block, mask, Form.JOINED, got)
            if following is not None:
                self.go(number, following, mask)

    def _pick(self) -> Pick | None:
        """Choose lanes: the schedule does, but nobody waits for ever; ``None``: all have ended.

        The schedule chooses among warps. Of a warp's lanes those at the lowest block go, unless a
        loop there lets others go first.
        """
        groups, splits = self.groups, self.splits
        if (ahead := splits.next_ahead()) is not None:
            return self._take(*ahead)
        if self.livelock.turns:
            self.idle.lanes = None
            for number in sorted(groups, key=lambda n: self.ages.get(n, -1)):
                lanes = splits.leaders(number, groups)
                if lanes is None or lanes.any():
                    return self._chosen(number, lanes)
        if self.idle.lanes is not None:
            groups = self.idle.awake(groups)
            while not groups:
                self._let_in()
                if self.finished:
                    return None
                groups = self.idle.awake(self.groups)
        return self._chosen(*(self._oldest(groups) or self.schedule.pick(groups)))

    def _chosen(self, number: int, mask: Mask | None) -> Pick:
        """Lanes whose turn it is: those of each warp that run as one, or others before them."""
        splits = self.splits
        if number in splits.facts.yields and splits.waits_for(number, mask):
            ahead = splits.next_ahead()
            assert ahead is not None
            return self._take(*ahead)
        return self._take(number, splits.together(number, mask))

    def _take(self, number: int, lanes: Mask | None) -> Pick:
        """Lanes at a block, and whether they are all that stand there; else they are taken out."""
        before = self.groups[number]
        if lanes is before:
            return number, lanes, True
        rest = as_mask(before) & ~as_mask(lanes)
        if not rest.any():
            return number, lanes, True
        self.groups[number] = rest
        return number, lanes, False

    def _oldest(self, groups: Groups) -> tuple[int, Mask | None] | None:
        """The lanes that have waited longest, if fairness wants them to go.

        A warp that polls cannot starve the one it waits for. Lanes that wait for others of their
        own warp to come stay where they are.
        """
        if len(groups) < 2:
            return None
        often = _OFTEN if self.step - self.together > _APART else FAIR
        if self.step % often:
            return None
        for number in sorted(groups, key=lambda n: self.ages.get(n, -1)):
            lanes = self.splits.leaders(number, groups)
            if lanes is None or lanes.any():
                break
        if number != min(groups):
            for tell in self.told.overtaken:
                tell()
        return number, lanes

    def alone(self) -> bool:
        """Whether all lanes that live stand at one block, and none is held."""
        return len(self.groups) == 1 and not self.held() and not self.gates.parked

    def _let_in(self) -> None:
        """All that could run are idle: nobody is going to write what they wait for."""
        if self.gates.met:
            self._exchange()
            return
        if self.barriers.release() or self.barriers.release(loose=True):
            return
        if self.gates.parked:
            self.gates.force()
            return
        self.visited = self.idle.visited
        raise Stuck("repeats", self.never(), dict(self.groups), self.step)

    def held(self) -> list[Waiting]:
        """The lanes that are held at barriers."""
        return self.barriers.waiting + self.clusters.waiting

    def never(self) -> list[Apart]:
        """Nothing can run any more: those that are held, and who does not come to them."""
        return self.barriers.never() + self.clusters.never()

    def count(self, mask: Mask | None) -> tuple[int, int]:
        """Threads of a mask, and warps that have one of them."""
        key = id(mask)
        known = self._active.get(key)
        if known is not None and known[0] is mask:
            return known[1]
        if len(self._active) > 64:
            self._active.clear()
        counts = self.geometry.active(mask)
        self._active[key] = (mask, counts)
        return counts

    def go(self, at: int, to: int, mask: Mask | None) -> None:
        """Lanes go from one block to another."""
        self.splits.arrive(at, to, mask)
        self.join(to, mask)

    def join(self, number: int, mask: Mask | None) -> None:
        """Put lanes at a block; those that stand there already are joined."""
        self.splits.came(number, mask)
        if number == EXIT:
            self.exit(mask)
        elif number in self.groups:
            here = self.groups[number]
            self.groups[number] = None if mask is None or here is None else here | mask
        else:
            self.groups[number] = mask

    def exit(self, mask: Mask | None) -> None:
        """Lanes are done."""
        self.alive = np.zeros((1, 1, 1, 1), bool) if mask is None else self._without(mask)
        self.finished = not self.alive.any()
        if self.gates.parked:
            self.gates.look_again()
        self.clusters.look_again()

    def stop(self, lanes: Mask) -> None:
        """Lanes are done, wherever they stand."""
        staying = ((number, as_mask(mask) & ~lanes) for number, mask in self.groups.items())
        self.groups = {number: mask for number, mask in staying if mask.any()}
        for wait in self.held():
            wait.mask = as_mask(wait.mask) & ~lanes
        self.gates.forget(lanes)
        self.exit(lanes)

    def _without(self, mask: Mask) -> Mask:
        return ~mask if self.alive is None else self.alive & ~mask
