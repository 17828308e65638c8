"""The lockstep machine: executes a batch of blocks under a schedule.

Every lane is at a basic block. A step executes one basic block for a group of lanes that are at it
and moves them to its successors. The lowest block goes first, so that branches reconverge. A
barrier blocks lanes until the others of their block arrive.
"""

import functools
from collections.abc import Container, Iterable
from typing import Any

from ..compile.codegen.liveness import ALL
from ..compile.program import Code, CompiledBlock, Form, Program
from ..core.geometry import Geometry, Mask, as_mask
from ..core.machine_memory import MemoryWatch
from ..events import Dispatcher, LoopPosition, Stall
from ..isa.table import Results
from ..memory.access import Access
from ..memory.memories import AddressSpaces
from .calls.call_frames import Frames
from .calls.special_registers import SpecialRegisters
from .calls.syscalls import Syscalls
from .calls.terminators import Terminators
from .lane_state import LaneState
from .progress.lane_compaction import LaneCompaction
from .progress.livelock import LivelockWatch, SpinningLanes
from .progress.machine_snapshot import MachineSnapshot
from .schedule import FAIR, Groups, Pick, Schedule
from .sync.block_barriers import Barriers
from .sync.blocked_lanes import NoProgress
from .sync.branch_history import BranchHistory, ControlFlowMap
from .sync.cluster_barriers import ClusterBarriers
from .sync.independent_loops import endless
from .sync.lane_groups import Splits
from .sync.sync_state import SyncState
from .sync.warp_sync import WarpSync
from .sync.warp_sync_sites import DuplicatedSites, Ordering

_OFTEN, _CHECK_INTERVAL = 8, 2048
"""So often once they have been apart for so many steps."""


class Machine:
    """Executes one program, batch after batch.

    ``names``: free names of the generated code (sites, parameters, constants). ``step_limit``:
    basic blocks that a batch may execute. ``accesses``: those of all sites, if lane compaction is
    allowed.
    """

    def __init__(
        self,
        program: Program,
        names: dict[str, Any],
        schedule: Schedule,
        dispatcher: Dispatcher,
        memories: AddressSpaces,
        step_limit: int,
        accesses: Iterable[Access] | None = None,
    ) -> None:
        self.program, self.names, self.schedule = program, names, schedule
        self.dispatcher = dispatcher
        self.memories, self.step_limit = memories, step_limit
        self.map: ControlFlowMap = program.analysis(flow_map)
        self.needed = program.needed
        self._functions: dict[tuple[int, int], Code] = {}
        self._memory = MemoryWatch()
        self.clocks: SpecialRegisters = names["S"]
        self.state = state = LaneState()
        self.picking = None
        if accesses is not None:
            self.picking = LaneCompaction(
                state, self.map, program.function, dispatcher, memories, schedule, names, accesses
            )

    def close(self) -> None:
        """Drop all references, which form cycles, so that memory is freed with the launch.

        A garbage collection may come launches later; one of 16 M threads retained 1.8 GB.
        """
        for part in (self.names, vars(self.state), vars(self)):
            part.clear()

    def stall(self, stuck: NoProgress) -> Stall:
        """Return the description of lanes that cannot make progress."""
        flow = self.map
        spinning = [
            (endless(flow.blocks, flow.sites, flow.after, number, stuck.visited), mask)
            for number, mask in stuck.spinning.items()
        ]
        loops = [LoopPosition(loop[0], mask) for loop, mask in spinning if loop]
        return Stall(stuck.why, stuck.waiting, loops, stuck.steps)

    def run(self, geometry: Geometry, others_to_come: bool = False) -> None:
        """Execute a batch until every lane has exited.

        ``others_to_come``: whether blocks outside the batch could run concurrently with it.

        Raises:
            Stuck: Lanes wait for an event that cannot occur.
        """
        state, sync = self.state, self._start(geometry, others_to_come)
        while not state.finished:
            if sync.gates.met:
                self._exchange()
                continue
            if state.groups:
                self._advance()
            elif not sync.unblock() and not sync.barriers.check_orders().any():
                raise NoProgress("waits", sync.never(), {})
        sync.barriers.check_orders()

    def _start(self, geometry: Geometry, others_to_come: bool) -> SyncState:
        """Begin a batch: create its components and connect them to the state of its lanes."""
        state, dispatcher, memories, clocks = (
            self.state,
            self.dispatcher,
            self.memories,
            self.clocks,
        )
        self.has_later_batches = others_to_come
        state.start(geometry, self.program.registers, self.program.start)
        self.paths = paths = BranchHistory(self.map, geometry.shape)
        self.splits = splits = Splits(state, self.map.convergence)
        self.gates = gates = WarpSync(
            state, dispatcher, self.program.blocks, self.program.analysis(_copies),
            self.program.analysis(_ordering).blocks, self._ask, self.names["W"],
        )  # fmt: skip
        barriers = Barriers(state, dispatcher, paths, splits)
        clusters = ClusterBarriers(state, dispatcher, paths, barriers.divergence)
        self.sync = sync = SyncState(state, barriers, clusters, gates)
        state.on_move, state.on_join = splits.arrive, splits.came
        state.on_exit = (gates.look_again, clusters.look_again)
        state.on_stop = sync.forget
        frames, system = Frames(state, self.program.blocks), Syscalls(state, dispatcher, memories)
        self.terminators = Terminators(state, dispatcher, paths, frames, system, barriers, clusters)
        keep = functools.partial(MachineSnapshot, state, frames, clocks, self.needed)
        self.idle = SpinningLanes(state, memories, clocks, keep)
        self.livelock = LivelockWatch(
            state, splits, sync, self.map, memories, clocks, keep, self.step_limit, others_to_come
        )
        if self.picking:
            self.picking.start(splits, sync, self.livelock, self.idle)
        self.schedule.start(geometry)
        return sync

    def _ask(self, number: int) -> Code:
        """Return the function that computes the operands of a block's first instruction."""
        return self.program.function(number, Form.ASKED, self.names)

    # -- choosing ---------------------------------------------------------------

    def _advance(self) -> None:
        """Execute a group of lanes until it splits, blocks or exits."""
        state, gates = self.state, self.gates
        alone = self.sync.alone() and self.splits.settle(next(iter(state.groups)))
        if alone:
            state.together = state.step
        picked, picking = self._pick(), self.picking
        if picked is None:
            return
        number, mask, whole = picked
        state.ages[number] = state.step
        if whole:
            del state.groups[number]
            if alone:
                mask = state.alive
        else:
            alone = False
        self.memories.exact = not alone or self.memories.watched
        fair = self.map.may_wait and state.step % FAIR == 0
        if not alone and (self.livelock.turns or fair):
            self.sync.barriers.release()
        while True:
            if picking and number in picking.about and picking.worth(number, mask):
                went_on = picking.run(number, as_mask(mask), alone)
                if went_on is None:
                    return
                (number, mask), alone = went_on, True
            state.step += 1
            if state.step >= self.livelock.next_look:
                self.livelock.look(number, mask)
            block = self.program.blocks[number]
            if block.gate is not None:
                state.meets += 1
                through = gates.admit(block, mask, alone)
                if through is False:
                    return
                alone = alone and through is mask
                mask = through
                if not alone:
                    self.splits.meet(mask)
                if number in gates.ordering:
                    come = gates.heeded(block.gate.guard, as_mask(mask))
                    for callback in self.dispatcher.warp_sync:
                        callback(come, gates.members(block))
            following = self._execute(block, mask, not alone)
            if following is None:
                return
            if not alone:
                state.go(number, following, mask)
                return
            number = following

    def _execute(
        self, block: CompiledBlock, mask: Mask | None, form: int, *got: list[Results]
    ) -> int | None:
        """Execute a block; return the successor if all lanes have the same one.

        ``got``: results of lanes that have met others at copies of its first instruction.
        """
        number = block.number
        self._memory.look()
        if form != Form.CONVERGED:
            self.splits.start(number, mask)
            self.idle.visited.add(number)
            if number in self.map.pollers and not self.livelock.turns:
                self.idle.look(number, mask)
        if number in self.map.heads:
            self.paths.enter(number, mask if form else None)
        threads, warps = self.state.count(mask)
        for callback in self.dispatcher.block_executed:
            callback(number, threads, warps)
        key = (number, form)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self.program.function(number, form, self.names)
        more = ((), self._needed()) if form == Form.DIVERGED else got
        out = function(self.state.registers, mask, *more)
        return self.terminators.execute_terminator(block, out, mask, not form)

    def _needed(self) -> Container[int]:
        """Return the registers that lanes at other blocks may still read."""
        if self.livelock.turns or self.sync.holds_any() or self.gates.met:
            return ALL
        return self.needed.live_at(self.state.groups)

    def _exchange(self) -> None:
        """Execute a warp instruction for lanes at all of its copies, then their blocks."""
        met = self.gates.met.pop()
        self.memories.exact = True
        for number, got in self.gates.exchange(met).items():
            self.state.step += 1
            block, mask = self.program.blocks[number], met[number]
            self.splits.meet(mask)
            following = self._execute(block, mask, Form.JOINED, got)
            if following is not None:
                self.state.go(number, following, mask)

    def _pick(self) -> Pick | None:
        """Choose the lanes of the next step by schedule and fairness; ``None``: all have exited.

        The schedule chooses among warps. Within a warp the lanes at the lowest block go first,
        unless a loop there yields to others.
        """
        state, splits = self.state, self.splits
        groups = state.groups
        if (ahead := splits.next_ahead()) is not None:
            return self._take(*ahead)
        if self.livelock.turns:
            self.idle.lanes = None
            for number in sorted(groups, key=lambda n: state.ages.get(n, -1)):
                lanes = splits.leaders(number, groups)
                if lanes is None or lanes.any():
                    return self._chosen(number, lanes)
        if self.idle.lanes is not None:
            groups = self.idle.runnable(groups)
            while not groups:
                self._let_in()
                if state.finished:
                    return None
                groups = self.idle.runnable(state.groups)
        return self._chosen(*(self._oldest(groups) or self.schedule.pick(groups)))

    def _chosen(self, number: int, mask: Mask | None) -> Pick:
        """Return the lanes of the next step: of each warp one convergent group, or others first."""
        splits = self.splits
        if number in splits.facts.yields and splits.waits_for(number, mask):
            ahead = splits.next_ahead()
            assert ahead is not None
            return self._take(*ahead)
        return self._take(number, splits.together(number, mask))

    def _take(self, number: int, lanes: Mask | None) -> Pick:
        """Remove lanes from a group; return whether they are the whole group."""
        groups = self.state.groups
        before = groups[number]
        if lanes is before:
            return number, lanes, True
        rest = as_mask(before) & ~as_mask(lanes)
        if not rest.any():
            return number, lanes, True
        groups[number] = rest
        return number, lanes, False

    def _oldest(self, groups: Groups) -> tuple[int, Mask | None] | None:
        """Return the lanes that have waited longest, if fairness selects them.

        A polling warp thus cannot starve the one it waits for. Lanes that wait for their own warp
        stay. Programs that never wait for other warps keep to the schedule, so that the order of
        their atomics does not depend on the number of steps.
        """
        if len(groups) < 2 or not self.map.may_wait:
            return None
        state = self.state
        often = _OFTEN if state.step - state.together > _CHECK_INTERVAL else FAIR
        if state.step % often:
            return None
        for number in sorted(groups, key=lambda n: state.ages.get(n, -1)):
            lanes = self.splits.leaders(number, groups)
            if lanes is None or lanes.any():
                break
        if number != min(groups):
            for callback in self.dispatcher.scheduled_out_of_order:
                callback()
        return number, lanes

    def _let_in(self) -> None:
        """End the batch's turn if all runnable lanes only poll, and nothing here writes."""
        if self.gates.met:
            self._exchange()
            return
        if self.sync.unblock():
            return
        state = self.state
        raise NoProgress(
            "repeats", self.sync.never(), dict(state.groups), state.step, self.idle.visited
        )


def flow_map(program: Program) -> ControlFlowMap:
    """Return the control-flow properties of a program's barriers and loops."""
    return ControlFlowMap(program.blocks, program.sites)


def _copies(program: Program) -> DuplicatedSites:
    return DuplicatedSites(program.blocks)


def _ordering(program: Program) -> Ordering:
    return Ordering(program.blocks)
