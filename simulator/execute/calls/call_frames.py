"""Saved registers of recursive calls (``compile/cfg/call_graph.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import Lanes, Mask, as_mask
from ...memory.storage.word_ops import unique
from ..lane_state import LaneState

Saved = dict[tuple[int, int], dict[int, Lanes]]
"""Registers that are put aside, by a group's register of depth and a depth."""


class Frames:
    """Saved registers of a batch's lanes, by call group and depth.

    ``back``: calls within groups, by the block to which they return.
    """

    def __init__(self, state: LaneState, blocks: Iterable[CompiledBlock]) -> None:
        self.state = state
        self.back = {b.block.follow: b for b in blocks if b.group}
        self.saved: Saved = {}

    def full(self, call: CompiledBlock, mask: Mask | None) -> Mask | None:
        """Return the lanes whose stack overflows at one more call, if any."""
        assert call.group is not None
        depth = self.state.registers[call.group.depth.number]
        full: Mask = as_mask(mask) & (depth >= call.group.max_depth)
        return full if full.any() else None

    def push(self, call: CompiledBlock, mask: Mask | None) -> None:
        """Save the caller's live registers at a call."""
        registers = self.state.registers
        for frame, lanes in self._frames(call, mask, 0):
            for number in call.saves:
                frame[number] = _where(lanes, registers[number], frame.get(number))
        self._move(call, mask, 1)

    def pop(self, follow: int, mask: Mask | None) -> None:
        """Restore the saved registers at a return."""
        call = self.back.get(follow)
        if call is None:
            return
        registers = self.state.registers
        for frame, lanes in self._frames(call, mask, 1):
            for number in call.saves:
                registers[number] = _where(lanes, frame[number], registers[number])
        self._move(call, mask, -1)

    def now(self) -> Saved:
        """Return the current frames; arrays are replaced, never modified."""
        return {place: dict(registers) for place, registers in self.saved.items()}

    def equal(self, then: Saved, same: Mask) -> Mask:
        """Return the lanes, at the same depth as then, with equal frames."""
        for (number, depth), old in then.items():
            over = self.state.registers[number] <= depth  # the call that was at this depth
            for register, value in old.items():
                now = self.saved[number, depth][register]
                if now is not value:
                    same = same & (over | (bits(now) == bits(value)))
        return same

    def _frames(
        self, call: CompiledBlock, mask: Mask | None, less: int
    ) -> Iterator[tuple[dict[int, Lanes], Mask | None]]:
        """Yield the frames at the lanes' depths, with the lanes of each."""
        assert call.group is not None
        number = call.group.depth.number
        depth = self.state.registers[number]
        if depth.ndim == 0:
            yield self.saved.setdefault((number, int(depth) - less), {}), mask
            return
        shape = self.state.geometry.shape
        on = np.broadcast_to(as_mask(mask), shape)
        for each in unique(np.broadcast_to(depth, shape)[on]).tolist():
            yield self.saved.setdefault((number, each - less), {}), on & (depth == each)

    def _move(self, call: CompiledBlock, mask: Mask | None, by: int) -> None:
        assert call.group is not None
        registers = self.state.registers
        moves = dict.fromkeys((r.number for r in call.group.addresses), by * call.group.stride)
        for number, step in (moves | {call.group.depth.number: by}).items():
            old = registers[number]
            registers[number] = _where(mask, old + np.int64(step), old)


def bits(value: Lanes) -> Lanes:
    """Return a register in an integer type, so that comparison is bitwise."""
    return value.view(f"u{value.dtype.itemsize}") if value.dtype.kind == "f" else value


def _where(mask: Mask | None, new: Lanes, old: Lanes | None) -> Lanes:
    return new if mask is None or old is None else np.where(mask, new, old)
