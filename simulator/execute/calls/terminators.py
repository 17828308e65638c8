"""Terminators of basic blocks: they move lanes to their successors."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import Lanes, Mask, as_mask
from ...events import Dispatcher
from ...isa.control.control_flow import ASTRAY
from ...memory.storage.word_ops import unique
from ..lane_state import LaneMover, LaneState
from ..schedule import Part
from ..sync.block_barriers import Barriers
from ..sync.branch_history import BranchHistory
from ..sync.cluster_barriers import ClusterBarriers
from .call_frames import Frames
from .syscalls import Syscalls

_STOPS = {"": "trap", "__assertfail": "assert", ASTRAY: "astray"}
"""What stops the kernel, by the function of the system that is called."""


def jump(block: CompiledBlock) -> int:
    """Return the successor of a block with an unconditional terminator."""
    targets = block.block.targets
    return targets[0] if targets else block.block.follow


def split(predicate: Mask, mask: Mask | None) -> tuple[Part, Part]:
    """Return the lanes for which a predicate holds, and the others; ``False``: none."""
    if predicate.ndim == 0:
        return (mask, False) if predicate else (False, mask)
    yes = predicate if mask is None else mask & predicate
    if not yes.any():
        return False, mask
    no = ~predicate if mask is None else mask & ~predicate
    if not no.any():
        return mask, False
    return yes, no


def branch(
    lanes: LaneMover,
    dispatcher: Dispatcher,
    block: CompiledBlock,
    yes: Part,
    no: Part,
    mask: Mask | None,
) -> int | None:
    """Move lanes along both directions of a branch; return the target if all take one."""
    if no is False:
        return block.block.targets[0]
    if yes is False:
        return block.block.follow
    _note_divergence(lanes, dispatcher, block.number, yes, no, mask)
    lanes.go(block.number, block.block.follow, no)
    lanes.go(block.number, block.block.targets[0], yes)
    return None


def _note_divergence(
    lanes: LaneMover, dispatcher: Dispatcher, block: int,
    yes: Mask | None, no: Mask | None, mask: Mask | None,
) -> None:  # fmt: skip
    """Count warps that a branch splits."""
    _, total = lanes.count(mask)
    (_, taking), (_, leaving) = lanes.count(yes), lanes.count(no)
    for callback in dispatcher.diverged:
        callback(block, taking + leaving - total)


class Terminators:
    """Executes branches, switches, calls, returns, barriers and exits for a batch's lanes."""

    def __init__(
        self, state: LaneState, dispatcher: Dispatcher, paths: BranchHistory, frames: Frames,
        system: Syscalls,
        barriers: Barriers, clusters: ClusterBarriers,
    ) -> None:  # fmt: skip
        self.state, self.dispatcher, self.paths = state, dispatcher, paths
        self.frames, self.system = frames, system
        self.barriers, self.clusters = barriers, clusters
        self._decisive = paths.map.branches

    def execute_terminator(
        self, block: CompiledBlock, out: Any, mask: Mask | None, alone: bool
    ) -> int | None:
        """Execute a terminator; return the common successor, or ``None`` if lanes were moved."""
        kind, state = block.terminator_kind, self.state
        if kind == "goto":
            return jump(block)
        if kind == "branch":
            yes, no = split(out, mask)
            if block.number in self._decisive:
                self.record_branch(block.number, yes, no)
            return branch(state, self.dispatcher, block, yes, no, mask)
        if kind == "barrier":
            state.meets += 1
            return self._barrier(block, out, mask, alone)
        if kind == "call":
            if block.group and (full := self.frames.full(block, mask)) is not None:
                self._stop("stack", block, full)
                mask = as_mask(mask) & ~full
                if not mask.any():
                    return None
                self.call(block, mask, False)
                state.go(block.number, block.call_entry, mask)
                return None
            return self.call(block, mask, alone)
        return self._rare(block, out, mask)

    def _barrier(
        self, block: CompiledBlock, out: Any, mask: Mask | None, alone: bool
    ) -> int | None:
        """Execute a guarded barrier; lanes with a false guard pass."""
        state = self.state
        guard, *operands = out
        if guard is not None:
            coming, passing = split(guard, mask)
            self.record_branch(block.number, coming, passing)
            if passing is not False:
                state.go(block.number, block.block.follow, passing)
            if coming is False:
                return None
            if passing is not False:
                mask, alone = coming, False
        if block.cluster:
            return self.clusters.come(block, mask, alone)
        number, count, predicate = operands
        return self.barriers.arrive(block, (number, count, predicate), mask, alone)

    def call(self, block: CompiledBlock, mask: Mask | None, alone: bool) -> int:
        """Execute a call of all lanes; return the callee's first block."""
        state = self.state
        if block.group:
            self.frames.push(block, None if alone else mask)
        self._forget(block, None if alone else mask)
        follow = cast(Lanes, np.int32(block.block.follow))
        index = block.return_register
        old = state.registers[index]
        state.registers[index] = follow if alone else np.where(as_mask(mask), follow, old)
        if block.call_entry in self.paths.map.entries:
            self.paths.call(block.call_entry, None if alone else mask)
        return block.call_entry

    def _forget(self, block: CompiledBlock, lanes: Mask | None) -> None:
        if block.forgets:
            for callback in self.dispatcher.frame_cleared:
                callback(lanes, block.forgets)

    def record_branch(self, number: int, taking: Part, staying: Part) -> None:
        """Record the directions of a branch; ``False``: no lanes."""
        if taking is not False:
            self.paths.went(number, 0, taking)
        if staying is not False:
            self.paths.went(number, 1, staying)

    def _rare(self, block: CompiledBlock, out: Any, mask: Mask | None) -> int | None:
        kind = block.terminator_kind
        if kind == "switch":
            return self._switch(block, out, mask)
        if kind == "return":
            return self._return(block, out, mask)
        # exit, trap, a function of the system: perhaps under a guard
        guard, given = (out[0], out[1:]) if kind == "system" else (out, ())
        gone, staying = split(as_mask(guard), mask)
        if block.number in self._decisive:
            self.record_branch(block.number, gone, staying)
        if gone is False:
            return block.block.follow
        if kind == "system" and block.called not in _STOPS:
            failing = self.system.call(block, given, gone)
            if failing is None:
                return block.block.follow
            self._stop("bad-free", block, failing)
            going = ~failing if mask is None else mask & ~failing
            if going.any():
                self.state.go(block.number, block.block.follow, going)
            return None
        if kind in ("trap", "system"):
            text = self.system.failed(given, gone) if given else ""
            self._stop(_STOPS[block.called], block, gone, text)
        else:
            self.state.exit(gone)
        if staying is not False:
            self.state.go(block.number, block.block.follow, staying)
        return None

    def _stop(self, event: str, block: CompiledBlock, lanes: Mask | None, text: str = "") -> None:
        for callback in self.dispatcher.event:
            callback(event, block, lanes, text)
        self.state.exit(lanes)

    def _switch(self, block: CompiledBlock, index: Lanes, mask: Mask | None) -> int | None:
        targets = block.block.targets
        if index.ndim == 0:
            way = min(max(int(index), 0), len(targets) - 1)
            if block.number in self._decisive:
                self.paths.went(block.number, way, mask)
            return targets[way]
        index = np.clip(index, 0, len(targets) - 1)
        for i, target in enumerate(targets):
            lanes = (index == i) if mask is None else mask & (index == i)
            if lanes.any():
                if block.number in self._decisive:
                    self.paths.went(block.number, i, lanes)
                self.state.go(block.number, target, lanes)
        return None

    def _return(self, block: CompiledBlock, guard: Mask | None, mask: Mask | None) -> int | None:
        leaving, staying = split(as_mask(guard), mask)
        if staying is not False and block.number in self._decisive:
            self.paths.went(block.number, len(self.paths.map.after[block.number]) - 1, staying)
        if leaving is False:
            return block.block.follow
        self._forget(block, leaving)
        to = self.state.registers[block.return_register]
        if staying is False and to.ndim == 0:
            self.frames.pop(int(to), leaving)
            return int(to)
        for number in unique(to).tolist():
            lanes = to == number
            lanes = lanes if leaving is None else leaving & lanes
            if np.any(lanes):
                self.frames.pop(number, lanes)
                self.state.go(block.number, number, lanes)
        if staying is not False:
            self.state.go(block.number, block.block.follow, staying)
        return None
