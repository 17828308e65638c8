"""Code of one warp: its words, calls of the runtime, and giving up."""

from __future__ import annotations

from ...compile.program import CompiledBlock, Program
from ...execute.sync.branch_history import ControlFlowMap
from .. import layout
from ..lines import Lines
from .lane_code import Frame
from .lane_loop import LaneLoops


class WarpCode:
    """Code that a warp runs, under construction.

    Attributes:
        lines: Where the code goes.
        frame: Where registers lie.
        points: Numbers of convergence points by basic block.
        block: Basic block whose code is made.
    """

    def __init__(
        self, program: Program, flow: ControlFlowMap, block_shape: tuple[int, int, int]
    ) -> None:
        self.program, self.facts, self.shape = program, flow.convergence, block_shape
        self.frame, self.lines = Frame(), Lines()
        saved = sorted({p for points in self.facts.saves.values() for p in points})
        self.points = {point: number for number, point in enumerate(saved)}
        self.loops = LaneLoops(self.lines, self.frame, block_shape)
        self.block: CompiledBlock

    def mask(self) -> str:
        """Return the lanes that run."""
        return self.lines.value("load i64, ptr %mask_at")

    def table(self, word: int) -> str:
        """Return the pointer that a word of the context is."""
        return self.lines.value(f"inttoptr i64 {self.lines.word('%x', word)} to ptr")

    def runtime(self, name: str, *arguments: str) -> str:
        """Call a function of the runtime with the context and other words."""
        return self.lines.call(
            name, "i64", ("i64", "%context"), *(("i64", value) for value in arguments)
        )

    def check(self, result: str) -> None:
        """Give up if the runtime did."""
        x, on = self.lines, self.lines.label()
        bad = x.value(f"icmp ne i64 {result}, 0")
        x.emit(f"br i1 {bad}, label %bail, label %{on}")
        x.begin(on)

    def give_up_if(self, bad: str, why: int) -> None:
        """Give up if a condition holds."""
        x, yes, no = self.lines, self.lines.label(), self.lines.label()
        x.emit(f"br i1 {bad}, label %{yes}, label %{no}")
        x.begin(yes)
        self.give_up(why)
        x.begin(no)

    def give_up(self, why: int) -> None:
        """Note why, and give up."""
        x = self.lines
        x.emit(f"store i64 {why}, ptr {x.word_at('%x', layout.WHY)}")
        x.emit(f"store i64 -1, ptr {x.word_at('%x', layout.WHERE)}")
        x.emit("br label %bail")
