"""Livelock detection: loops in which no fair schedule changes the state any more.

A lane is suspected when it is back at a block with all live registers unchanged. Then the groups
take turns. The livelock is proved if no lane changes global or shared memory, every runnable lane
runs, and each returns to its state: every later round is then the same under any schedule. A round
that changes memory proves nothing, even if it restores the content, because another schedule could
let another lane in between.

Clocks stand still during the proof. A lane that reads a clock repeats its round only at that time,
so the proof is repeated with the clock advanced by an hour, when waits with a timeout have ended.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import Mask, as_mask
from ...memory.memories import AddressSpaces
from ..calls.special_registers import SpecialRegisters
from ..lane_state import LaneState
from ..schedule import Groups
from ..sync.blocked_lanes import NoProgress
from ..sync.branch_history import ControlFlowMap
from ..sync.lane_groups import Splits
from ..sync.sync_state import SyncState
from .machine_snapshot import Keep, MachineSnapshot

_FIRST_LOOK = 1 << 10
_VISITS = 64
_LATER = (1 << 42) + (1 << 30)
"""Ticks: an hour in ns, and a large step in the low 32 bits as well."""


class _Round:
    """A proof round: all groups take turns, and memory must not change."""

    def __init__(
        self, state: LaneState, splits: Splits, sync: SyncState, memories: AddressSpaces,
        blocks: Sequence[CompiledBlock], keep: Keep, number: int, mask: Mask | None,
    ) -> None:  # fmt: skip
        self.state, self.splits, self.sync, self.memories = state, splits, sync, memories
        self.blocks, self.keep = blocks, keep
        self.started = state.step
        # Lanes that a YIELD let go, and that spin in a loop without one, starve all others.
        self.starved, splits.ahead = splits.ahead is not None, None
        self.writes = self.memories.writes
        self.memories.watched = self.memories.exact = True
        self.met = False
        self.last = -1
        self.visited: set[int] = set()
        self._keep(number, mask)

    def _keep(self, number: int, mask: Mask | None) -> None:
        """Record the state at the start of the round."""
        shape = self.state.geometry.shape
        self.snapshot = self.keep(number, mask)
        self.local = np.copy(self.memories.local.words)
        self.moved = np.zeros(shape, bool)
        self.returned = np.zeros(shape, bool)
        self.blocked_at_start = self._blocked_lanes()

    def _blocked_lanes(self) -> dict[int, Mask]:
        """Return the lanes that are blocked at barriers and warp instructions, by block."""
        shape = self.moved.shape
        waiting = [(wait.block.number, wait.mask) for wait in self.sync.blocked_lanes()]
        blocked: dict[int, Mask] = {}
        for number, mask in [*self.sync.gates.waiting.items(), *waiting]:
            blocked[number] = blocked.get(number, np.zeros(shape, bool)) | as_mask(mask)
        return blocked

    def proves(self, number: int, mask: Mask | None) -> bool | None:
        """Whether the round proves a livelock; ``None``: it failed. Called before each block."""
        state = self.state
        if self.last >= 0:
            block = self.blocks[self.last]
            if self.memories.writes != self.writes:
                return None
            self.met |= block.gate is not None or block.terminator_kind == "barrier"
        self.last = number
        self.visited.add(number)
        closed = self._close(number, mask)
        age = state.step - self.started
        if not closed and self.met and age >= _VISITS and age & (age - 1) == 0:
            self._keep(number, mask)  # it may have begun on the way to what comes back
        self.moved |= as_mask(mask)
        return closed

    def _close(self, number: int, mask: Mask | None) -> bool:
        state = self.state
        back = self.snapshot.same(number, mask) & self.moved
        if not back.any():
            return False
        local = (self.memories.local.words == self.local).all(axis=0)
        back = back & local.reshape(self.memories.local.shape)
        groups = state.groups | {number: mask}
        running = {n: as_mask(self.splits.leaders(n, groups)) for n in groups}
        if not self.met:  # nobody depends on anybody
            self.returned |= back
            return all((self.returned | ~lanes).all() for lanes in running.values())
        # Lanes that meet depend on each other: all have to be back at one time.
        if number != self.snapshot.number or set(state.groups) | {number} != set(
            self.snapshot.groups
        ):
            return False
        for group, lanes in groups.items():
            before = np.broadcast_to(as_mask(self.snapshot.groups[group]), self.moved.shape)
            same = np.array_equal(before, np.broadcast_to(as_mask(lanes), self.moved.shape))
            moved = (self.snapshot.same(group, lanes) & self.moved) | ~running[group]
            if not (same and moved.all()):
                return False
        blocked = self._blocked_lanes()
        return blocked.keys() == self.blocked_at_start.keys() and all(
            np.array_equal(lanes, self.blocked_at_start[group])
            and (self.snapshot.equal(lanes) | ~lanes).all()
            for group, lanes in blocked.items()
        )


class SpinningLanes:
    """Lanes that poll memory and need not run until something is written.

    They have returned to the poll with all registers and all memory unchanged and have met no other
    lane.

    Attributes:
        lanes: Mask of these lanes; ``None``: none.
    """

    def __init__(
        self, state: LaneState, memories: AddressSpaces, clocks: SpecialRegisters, keep: Keep
    ) -> None:
        self.state, self.memories, self.clocks, self.keep = state, memories, clocks, keep
        self.lanes: Mask | None = None
        self.visited: set[int] = set()
        self._since: tuple[int, ...] = ()
        self._looks: dict[int, list[MachineSnapshot]] = {}

    def look(self, number: int, mask: Mask | None) -> None:
        """Handle lanes that reach a polling block."""
        memories = self.memories
        clock = self.clocks.reads
        now = (memories.writes, memories.local_writes, self.state.meets, clock)
        if now != self._since:
            self._since = now
            self._looks.clear()
            self.visited = {number}
        looks = self._looks.setdefault(number, [])
        for snapshot in looks:
            same = snapshot.same(number, mask)
            if same.any():
                self.lanes = same if self.lanes is None else self.lanes | same
        del looks[: -_VISITS + 1]
        looks.append(self.keep(number, mask))

    def runnable(self, groups: Groups) -> Groups:
        """Return the groups without spinning lanes."""
        if self._since[0] != self.memories.writes:
            self.lanes = None
            return groups
        assert self.lanes is not None
        found = {number: as_mask(mask) & ~self.lanes for number, mask in groups.items()}
        return {number: mask for number, mask in found.items() if mask.any()}


class LivelockWatch:
    """Searches for livelocks, at growing intervals.

    Attributes:
        next_look: Step of the next search.
        turns: Whether groups have to take turns now.
    """

    def __init__(
        self, state: LaneState, splits: Splits, sync: SyncState, flow: ControlFlowMap,
        memories: AddressSpaces,
        clocks: SpecialRegisters, keep: Keep, step_limit: int, others_to_come: bool,
    ) -> None:  # fmt: skip
        self.state, self.splits, self.sync = state, splits, sync
        self.memories, self.clocks, self.keep = memories, clocks, keep
        self.pollers = flow.pollers if flow.may_wait else frozenset[int]()
        self.step_limit, self.others_to_come = step_limit, others_to_come
        self._begin_round = functools.partial(
            _Round, state, splits, sync, memories, flow.blocks, keep
        )
        self.next_keep = _FIRST_LOOK
        self.next_look = min(_FIRST_LOOK, step_limit)
        self.snapshot: MachineSnapshot | None = None
        self.round: _Round | None = None
        self.polled = self.later = False

    @property
    def turns(self) -> bool:
        """Whether groups have to take turns now."""
        return self.round is not None

    def look(self, number: int, mask: Mask | None) -> None:
        """Search for a livelock; called before a block, from step ``next_look`` on.

        Raises:
            Stuck: The state cannot change any more, or the step limit is reached.
        """
        state = self.state
        if state.step >= self.step_limit:
            raise self._stuck("limit", number, mask)
        if self.round is not None:
            self._go_round(number, mask)
        elif self.snapshot is not None:
            self._watch(number, mask)
        elif state.step >= self.next_keep:
            self.next_keep = state.step * 2
            self.snapshot, self.polled = self.keep(number, mask), False
            self.clocks.stop()
        watching = self.round or self.snapshot
        self.next_look = state.step + 1 if watching else min(self.next_keep, self.step_limit)

    def _watch(self, number: int, mask: Mask | None) -> None:
        """Start a proof round if some lane is back in its recorded state."""
        assert self.snapshot is not None
        state, snapshot = self.state, self.snapshot
        self.polled |= number in self.pollers
        if number == snapshot.number:
            snapshot.visits += 1
            if snapshot.same(number, mask).any():
                self.snapshot, self.round = None, self._begin_round(number, mask)
                self.round.proves(number, mask)
                return
            if self.clocks.reads != snapshot.clock and not snapshot.visits & (snapshot.visits - 1):
                self.snapshot = self.keep(number, mask)  # it had read them while they ran
                self.snapshot.take_place(snapshot)
                snapshot = self.snapshot
        enough = state.step - snapshot.step >= _VISITS + snapshot.step // 8
        if (
            snapshot.visits > _VISITS and enough
        ) or state.step - snapshot.step > snapshot.step // 2:
            self.snapshot = None
            if self.polled and self.others_to_come:
                self.round = self._begin_round(number, mask)
                self.round.proves(number, mask)
            else:
                self._go_on()

    def _go_round(self, number: int, mask: Mask | None) -> None:
        """End the proof round if every group has had a turn."""
        assert self.round is not None
        state, started = self.state, self.round.started
        closed = self.round.proves(number, mask)
        late = state.step - started > max(4096, started // 2)
        if late and closed is False and self.others_to_come and self.polled:
            raise self._stuck("idle", number, mask)
        if closed:
            clocks = self.clocks
            if clocks.reads != self.round.snapshot.clock and not self.later:
                clocks.stop(_LATER)
                self.later, self.round, self.next_keep = True, None, state.step + _VISITS
                self.memories.watched = False
                return
            if self.sync.barriers.release(loose=True):
                pass
            elif self.sync.gates.waiting:
                self.sync.gates.force()
            elif not self.splits.free(state.groups | {number: mask}):
                raise self._stuck("repeats", number, mask)
        if closed or (closed is None and self.round.starved):
            # Lanes go on, and may wait again: patience that doubles would double at each wait.
            self.next_keep = state.step + _FIRST_LOOK
        if closed is not False or late:
            self.round = None
            self.memories.watched = False
            self._go_on()

    def _go_on(self) -> None:
        """Resume after a failed proof; clocks run again."""
        self.clocks.stopped, self.later = None, False

    def _stuck(self, why: str, number: int, mask: Mask | None) -> NoProgress:
        state = self.state
        self.memories.watched = False
        visited = self.round.visited if self.round else None
        spinning = {**state.groups, number: mask}
        return NoProgress(why, self.sync.never(), spinning, state.step, visited)
