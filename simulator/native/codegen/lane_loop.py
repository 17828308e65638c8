"""Loops over the lanes of a warp in LLVM IR."""

from __future__ import annotations

from collections.abc import Callable

from ...core.geometry import WARP
from ..lines import Lines
from .lane_code import Frame, LaneCode

FEW = 6
"""Lanes up to which they run one by one."""


class LaneLoop:
    """A loop over lanes, which gathers those whose guards hold.

    Attributes:
        head, before, again: Labels; ``lanes``: the lanes gathered before this round.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.before, self.head = lines.label(), lines.label()
        self.again, self.lanes = f"again_{self.head}", f"%lanes_{self.head}"

    def begin(self, counter: str) -> None:
        """Begin the loop; ``counter``: what tells its rounds apart."""
        x = self.lines
        x.emit(f"br label %{self.before}")
        x.begin(self.before)
        x.emit(f"br label %{self.head}")
        x.begin(self.head)
        x.emit(counter)
        gathered = f"[ %gathered_{self.head}, %{self.again} ]"
        x.emit(f"{self.lanes} = phi i64 [ 0, %{self.before} ], {gathered}")

    def close(self, lanes: str) -> None:
        """Begin the loop's last basic block, with the lanes gathered so far."""
        self.lines.emit(f"br label %{self.again}")
        self.lines.begin(self.again)
        self.lines.emit(f"%gathered_{self.head} = add i64 {lanes}, 0")

    def end(self, done: str) -> None:
        """End the loop, where a condition holds; leave the lanes in ``%guard_at``."""
        x, after = self.lines, self.lines.label()
        x.emit(f"br i1 {x.value(done)}, label %{after}, label %{self.head}")
        x.begin(after)
        x.emit(f"store i64 %gathered_{self.head}, ptr %guard_at")


class LaneLoops:
    """Loops over the lanes of the mask that runs, ``%mask_at``.

    Args:
        lines: Where the code goes.
        frame: Of the program; ``block_shape``: threads of a block.
    """

    def __init__(self, lines: Lines, frame: Frame, block_shape: tuple[int, int, int]) -> None:
        self.lines, self.frame, self.shape = lines, frame, block_shape
        self.few = block_shape[0] * block_shape[1] * block_shape[2] < WARP

    def mask(self) -> str:
        """Return the lanes that run."""
        return self.lines.value("load i64, ptr %mask_at")

    def each_lane(self, body: Callable[[LaneCode], None]) -> None:
        """Emit a loop over the lanes of the mask.

        If there are many, all 32 lanes compute, which LLVM can vectorise, and only those of the
        mask keep what comes out; no form traps, whatever its operands are. The lanes for which
        ``body`` calls ``LaneCode.guard`` are in ``%guard_at`` behind it.
        """
        if self.few:
            self.some_lanes(body)
            return
        x = self.lines
        many, part, after = x.label(), x.label(), x.label()
        count = x.call("llvm.ctpop.i64", "i64", ("i64", self.mask()))
        is_many = x.value(f"icmp ugt i64 {count}, {FEW}")
        x.emit(f"br i1 {is_many}, label %{many}, label %{part}")
        x.begin(many)
        self.all_lanes(body)
        x.emit(f"br label %{after}")
        x.begin(part)
        self.some_lanes(body)
        x.emit(f"br label %{after}")
        x.begin(after)

    def all_lanes(self, body: Callable[[LaneCode], None]) -> None:
        """Emit a loop over 32 lanes."""
        mask = self.lines.value(f"trunc i64 {self.mask()} to i32")
        loop = LaneLoop(self.lines)
        lane = f"%lane_{loop.head}"
        loop.begin(f"{lane} = phi i64 [ 0, %{loop.before} ], [ %next_{loop.head}, %{loop.again} ]")
        number = self.lines.value(f"trunc i64 {lane} to i32")
        bit = self.lines.value(f"lshr i32 {mask}, {number}")
        self.lane_body(loop, lane, body, self.lines.value(f"trunc i32 {bit} to i1"))
        self.lines.emit(f"%next_{loop.head} = add nuw nsw i64 {lane}, 1")
        loop.end(f"icmp eq i64 %next_{loop.head}, 32")

    def some_lanes(self, body: Callable[[LaneCode], None]) -> None:
        """Emit a loop over the bits of the mask."""
        x, mask = self.lines, self.mask()
        loop = LaneLoop(x)
        rest = f"%rest_{loop.head}"
        loop.begin(
            f"{rest} = phi i64 [ {mask}, %{loop.before} ], [ %next_{loop.head}, %{loop.again} ]"
        )
        x.declared.add("declare i64 @llvm.cttz.i64(i64, i1)")
        lane = x.value(f"call i64 @llvm.cttz.i64(i64 {rest}, i1 true)")
        self.lane_body(loop, lane, body)
        less = x.value(f"sub i64 {rest}, 1")
        x.emit(f"%next_{loop.head} = and i64 {rest}, {less}")
        loop.end(f"icmp eq i64 %next_{loop.head}, 0")

    def lane_body(
        self, loop: LaneLoop, lane: str, body: Callable[[LaneCode], None], active: str = ""
    ) -> None:
        """Emit what one lane does, up to the loop's last basic block; ``active``: if it is on."""
        code = LaneCode(self.lines, self.frame, self.shape, lane, active)
        code.lanes_guarded = loop.lanes
        body(code)
        loop.close(code.lanes_guarded)
