"""Lane compaction: execute the few active lanes of a divergent loop in a dense array.

In a loop with unequal trip counts most of a batch soon waits at the exit, and NumPy would still
compute on every lane. The active lanes are copied side by side (``CompactLanes``) with the
registers that the loop uses, and copied back at the exit. Schedule and events are unchanged,
because a lane's execution does not depend on its storage.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from ...compile.program import Code, CompiledBlock, Form
from ...core.compact_lanes import CompactLanes
from ...core.geometry import Lanes, Mask, as_mask
from ...events import Dispatcher, all_of
from ...memory.access import Access
from ...memory.compact_access import CompactAccess, CompactLoads, Extent
from ...memory.grouped_loads import AllLoads
from ...memory.memories import AddressSpaces
from ..calls.terminators import branch, jump, split
from ..lane_state import LaneState
from ..schedule import FAIR, Schedule
from ..sync.branch_history import ControlFlowMap
from ..sync.lane_groups import Splits
from ..sync.sync_state import SyncState
from .livelock import LivelockWatch, SpinningLanes

Names = dict[str, object]
"""The free names of generated code."""
LEAST = 2048
"""Lanes of a batch from which on it is worth while: below, calls cost more than what they do."""
SHARE, REPACK_SHARE = 2, 0.75
"""Lanes are picked out if they are at most one in so many of the batch; those that are left are
set closer together when no more than this share of them is."""
SHORT, GIVEN_UP = 4, 8
"""So few blocks at a time do not pay for the way there and back (some 40 microseconds for each
register of 65,536 lanes); of a loop where that happens so often in a row none are picked out."""


class _CompactRegisters(dict[int, Lanes]):
    """Registers of compact lanes, gathered at the first read."""

    def __init__(self, whole: list[Lanes], lanes: CompactLanes) -> None:
        super().__init__()
        self.whole, self.lanes = whole, lanes
        self.read: dict[int, Lanes] = {}

    def __missing__(self, number: int) -> Lanes:
        value = self.lanes.gather(self.whole[number])
        self.read[number] = self[number] = value
        return value

    def written(self) -> Iterable[int]:
        """Return the numbers of the registers with new values."""
        return [number for number, value in self.items() if value is not self.read.get(number)]

    def calm(self, at: Any) -> None:
        """Replace values of lanes that left the loop by ordinary numbers.

        Nothing reads them, but NaNs and subnormals take four times as long.
        """
        for value in self.values():
            if value.ndim and value.dtype.kind == "f" and value.flags.writeable:
                value[..., at] = 0

    def keep(self, lanes: CompactLanes, at: Any) -> None:
        """Repack the registers to the remaining lanes."""
        written = set(self.written())
        self.lanes = lanes
        for number, value in self.items():
            self[number] = value[..., at] if value.ndim else value
        self.read = {number: self[number] for number in self if number not in written}


class _Specials:
    """Special registers of compact lanes."""

    def __init__(self, picking: LaneCompaction, whole: Any) -> None:
        self.picking, self.whole = picking, whole

    def __getitem__(self, name: str) -> Lanes:
        return self.picking.lanes.gather(self.whole[name])


class LaneCompaction:
    """Executes loops for compact lanes, batch after batch.

    ``function``: ``Program.function``. ``whole_names``: free names for whole batches.
    """

    lanes: CompactLanes
    registers: _CompactRegisters
    splits: Splits
    sync: SyncState
    livelock: LivelockWatch
    idle: SpinningLanes

    def __init__(
        self, state: LaneState, flow: ControlFlowMap, function: Callable[[int, int, Names], Code],
        dispatcher: Dispatcher,
        memories: AddressSpaces, schedule: Schedule, whole_names: Names, accesses: Iterable[Access],
    ) -> None:  # fmt: skip
        self.state, self.dispatcher, self.memories = state, dispatcher, memories
        self.blocks, self.function = flow.blocks, function
        self.schedule, self.whole_names = schedule, whole_names
        self.about = flow.own_loops
        self._functions: dict[tuple[int, int], Code] = {}
        self.extents: dict[tuple[int, int], Extent] = {}
        self._in_vain: dict[frozenset[int], int] = {}
        self._accesses = accesses

    def start(
        self, splits: Splits, sync: SyncState, livelock: LivelockWatch, idle: SpinningLanes
    ) -> None:
        """Begin a batch."""
        self.splits, self.sync, self.livelock, self.idle = splits, sync, livelock, idle

    @functools.cached_property
    def names(self) -> Names:
        """Return the free names of the generated code, for compact lanes."""
        tally, specials = all_of(self.dispatcher.arithmetic), _Specials(self, self.whole_names["S"])
        names = dict(self.whole_names) | {
            "S": specials,
            "tally": lambda number, mask: tally(number, self.lanes.spread_mask(mask)),
        }
        picked = [
            CompactAccess(access, self, self.dispatcher.compact_access) for access in self._accesses
        ]
        names |= {f"{a.site.access}_{a.site.number}": getattr(a, a.site.access) for a in picked}
        names["loads"] = CompactLoads(picked, cast(AllLoads, self.whole_names["loads"]))
        return names

    def worth(self, number: int, mask: Mask | None) -> bool:
        """Whether compaction of the lanes at a block of a loop pays."""
        state, livelock = self.state, self.livelock
        g = state.geometry
        return (
            mask is not None
            and g.lanes >= LEAST
            and g.clusters.size == 1
            and type(self.schedule) is Schedule
            and state.step + 1 < livelock.next_look
            and self.idle.lanes is None
            and self.splits.ahead is None
            and not livelock.turns
            and self._in_vain.get(self.about[number], 0) < GIVEN_UP
            and state.count(mask)[0] * SHARE <= g.lanes
        )

    def run(self, number: int, mask: Mask, alone: bool) -> tuple[int, Mask | None] | None:
        """Execute compact lanes of a loop, as ``Machine._advance`` does, until the loop is left.

        It also returns when the machine has other work.

        Returns:
            The successor of all live lanes, if they have the same one.
        """
        state, self.loop = self.state, self.about[number]
        began, groups = state.step, state.groups
        inside = {n: as_mask(groups[n]) for n in groups if n in self.loop}
        shape = state.geometry.shape  # a mask alike in all blocks has one of them alone
        every = np.logical_or.reduce(
            [np.broadcast_to(one, shape) for one in (mask, *inside.values())]
        )
        self.lanes = CompactLanes.those(state.geometry, every)
        self.registers = _CompactRegisters(state.registers, self.lanes)
        self.counts: dict[int, tuple[Mask, tuple[int, int]]] = {}
        self.back: dict[int, Lanes] = {}
        self.has_exits = False
        for n, here in inside.items():
            groups[n] = self.lanes.gather_mask(here)
        following = self._go(number, self.lanes.gather_mask(mask), alone)
        while following is None and (turn := self._turn()) is not None:
            following = self._go(*turn)
            if self.has_exits:
                self._close_up()
        self._finish()
        short = state.step - began < SHORT
        self._in_vain[self.loop] = self._in_vain.get(self.loop, 0) + 1 if short else 0
        return None if following is None else (following, state.alive)

    def _turn(self) -> tuple[int, Mask | None, bool] | None:
        """Return the next group; ``None``: the machine has other work."""
        state, sync, memories = self.state, self.sync, self.memories
        groups, alone = state.groups, sync.alone()
        if not groups or sync.gates.met or state.step + 1 >= self.livelock.next_look:
            return None
        if sync.blocked_lanes() and not alone and state.step % FAIR == 0:
            return None
        number = min(groups)
        if number not in self.loop or (alone and not self.splits.settle(number)):
            return None
        if alone:
            state.together = state.step
        state.ages[number] = state.step
        memories.exact = not alone or memories.watched
        return number, groups.pop(number), alone

    def _go(self, number: int, mask: Mask | None, alone: bool) -> int | None:
        """Execute a block; a single group continues, even out of the loop."""
        state = self.state
        while True:
            state.step += 1
            following = self._execute(self.blocks[number], mask, alone)
            if following is None:
                return None
            if not alone:
                self.go(number, following, mask)
                return None
            if following not in self.loop or state.step + 1 >= self.livelock.next_look:
                self._put_back(mask)
                return following
            number = following

    def _execute(self, block: CompiledBlock, mask: Mask | None, alone: bool) -> int | None:
        number = block.number
        if not alone:
            self.idle.visited.add(number)
        threads, warps = self.count(mask)
        for callback in self.dispatcher.block_executed:
            callback(number, threads, warps)
        # What others than these lanes have is put back already, if no more of them are in the loop.
        others = any(n in self.loop for n in self.state.groups)
        key = number, Form.DIVERGED if others else Form.CONVERGED
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self.function(*key, self.names)
        self.extents.clear()
        out = function(self.registers, mask)
        if block.terminator_kind == "goto":
            return jump(block)
        return branch(self, self.dispatcher, block, *split(out, mask), mask)

    def count(self, mask: Mask | None) -> tuple[int, int]:
        """See ``LaneState``."""
        if mask is None:
            return self.lanes.active(None)
        known = self.counts.get(id(mask))
        if known is None:
            if len(self.counts) > 64:
                self.counts.clear()
            known = self.counts[id(mask)] = mask, self.lanes.active(mask)
        return known[1]

    def go(self, at: int, to: int, mask: Mask | None) -> None:
        """See ``LaneState``."""
        if (at, to) in self.splits.facts.edges:
            self.splits.arrive(at, to, self.lanes.spread_mask(mask))
        self.join(to, mask)

    def join(self, number: int, mask: Mask | None) -> None:
        """See ``LaneState``; lanes that leave the loop are copied back."""
        if number not in self.loop:
            self.registers.calm(self._put_back(mask))
            self.state.join(number, self.lanes.spread_mask(mask))
            self.has_exits = True
        else:
            self.state.join(number, mask)

    def _put_back(self, mask: Mask | None) -> Any:
        """Copy lanes' registers back to the batch; return their compact indices."""
        at = slice(None) if mask is None else np.flatnonzero(mask)
        where = self.lanes.flat[at]
        for number in self.registers.written():
            if number not in self.back:
                whole = np.broadcast_to(self.state.registers[number], self.lanes.of.shape)
                self.back[number] = np.array(whole, order="C")  # one to write through below
            value = self.registers[number]
            picked = value.reshape(-1)[at] if value.ndim else value
            self.back[number].reshape(-1)[where] = picked
        return at

    def _inside(self) -> dict[int, Mask | None]:
        return {n: mask for n, mask in self.state.groups.items() if n in self.loop}

    def _close_up(self) -> None:
        """Repack the remaining lanes if they are few."""
        self.has_exits = False
        inside = self._inside()
        masks = [mask for mask in inside.values() if mask is not None]
        if not masks or len(masks) < len(inside):
            return
        every = np.logical_or.reduce(masks).reshape(-1)
        at = np.flatnonzero(every)
        if len(at) > len(every) * REPACK_SHARE:
            return
        self.lanes = self.lanes.some(at)
        self.registers.keep(self.lanes, at)
        self.counts.clear()
        for number, mask in inside.items():
            here = as_mask(mask)[..., at]
            self.state.groups[number] = None if here.all() else here

    def _finish(self) -> None:
        """Copy all lanes back."""
        for number, mask in self._inside().items():
            self._put_back(mask)
            self.state.groups[number] = self.lanes.spread_mask(mask)
        for number, value in self.back.items():
            self.state.registers[number] = value
