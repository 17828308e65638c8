"""A loop over the lanes of a warp in LLVM IR."""

from __future__ import annotations

from .lines import Lines


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
