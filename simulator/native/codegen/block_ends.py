"""How basic blocks end: lanes go on, part, call, return, wait at a barrier, or exit."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...compile.cfg.basic_blocks import EXIT
from ...compile.ir import BarrierOp, SyscallOp, Terminator
from ...compile.ir_values import Constant, Register, SourceValue
from ...execute.sync.barrier_divergence import is_aligned
from ...execute.sync.convergence_regions import NEW
from .. import layout
from .lane_code import LaneCode, NotNative
from .warp_code import WarpCode


class BlockEnds(WarpCode):
    """Code that ends basic blocks."""

    def end(self, end: Terminator | None) -> None:
        """Send the lanes on."""
        block = self.block.block
        if end is None:
            self.go_all(block.follow)
        elif isinstance(end, BarrierOp):
            self.barrier(end)
        elif end.how == "goto":
            self.go_all(block.targets[0] if block.targets else block.follow)
        elif end.how == "branch" and end.guard is None:
            self.go_all(block.targets[0])
        elif end.how in ("branch", "exit"):
            target = block.targets[0] if end.how == "branch" else EXIT
            if end.guard is None:
                self.go_all(target)
            else:
                self.part(target, block.follow, end.how == "branch")
        elif end.how == "call":
            self.call()
        elif end.how == "return":
            self.leave_function(end)
        elif end.how == "switch":
            self.switch(end)
        elif end.how == "trap" or isinstance(end, SyscallOp):
            self.stop(end)
        else:
            raise NotNative(end.how)

    def stop(self, end: Terminator) -> None:
        """Give up if any lane reaches a trap, or calls the system."""
        x = self.lines
        if end.guard:
            some, none = x.label(), x.label()
            lanes = x.value(f"and i64 {self.mask()}, {x.value('load i64, ptr %guard_at')}")
            x.emit(f"br i1 {x.value(f'icmp eq i64 {lanes}, 0')}, label %{none}, label %{some}")
            x.begin(none)
            self.go_all(self.block.block.follow)
            x.begin(some)
        self.give_up(layout.STOPPED)

    def switch(self, end: Terminator) -> None:
        """Send each lane to the target of its index, which is held to the table's bounds."""
        x, targets = self.lines, self.block.block.targets
        (index,), mask = end.sources, self.mask()
        for target in dict.fromkeys(targets):
            ways = [i for i, to in enumerate(targets) if to == target]
            self.loops.some_lanes(functools.partial(self.guard_way, index, ways, len(targets)))
            some, on = x.label(), x.label()
            lanes = x.value(f"and i64 {mask}, {x.value('load i64, ptr %guard_at')}")
            x.emit(f"br i1 {x.value(f'icmp eq i64 {lanes}, 0')}, label %{on}, label %{some}")
            x.begin(some)
            self.go(target, lanes)
            x.emit(f"br label %{on}")
            x.begin(on)
        x.emit("br label %pick")

    def guard_way(
        self, source: SourceValue, ways: Sequence[int], count: int, code: LaneCode
    ) -> None:
        """Gather a lane whose index is one of some places of a table."""
        x = self.lines
        index = x.pure("smin", "i32", code.source(source), str(count - 1))
        index = x.pure("smax", "i32", index, "0")
        found = "false"
        for way in ways:
            found = x.value(f"or i1 {found}, {x.value(f'icmp eq i32 {index}, {way}')}")
        code.guard(found)

    def call(self) -> None:
        """All lanes go into a function; they note where they go on behind the call."""
        block = self.block
        self.forget()
        place = self.frame.slot(Register(block.return_register, "s32")).offset
        follow = str(block.block.follow)
        self.loops.some_lanes(lambda code: code.store_lane("%frame", place, 32, follow))
        self.go_all(block.call_entry)

    def leave_function(self, end: Terminator) -> None:
        """Lanes go back to where their function was called from; the others go on."""
        x, block = self.lines, self.block
        if end.guard:
            raise NotNative("a guarded return")
        self.forget()
        place = self.frame.slot(Register(block.return_register, "s32")).offset
        for follow in self.returns():
            self.loops.some_lanes(functools.partial(self.guard_return, place, follow))
            some, on = x.label(), x.label()
            lanes = x.value("load i64, ptr %guard_at")
            x.emit(f"br i1 {x.value(f'icmp eq i64 {lanes}, 0')}, label %{on}, label %{some}")
            x.begin(some)
            self.go(follow, lanes)
            x.emit(f"br label %{on}")
            x.begin(on)
        x.emit("br label %pick")

    def guard_return(self, place: int, follow: int, code: LaneCode) -> None:
        """Gather a lane that goes back to a basic block."""
        to = code.load_lane("%frame", place, 32)
        code.guard(self.lines.value(f"icmp eq i32 {to}, {follow}"))

    def returns(self) -> list[int]:
        """Basic blocks behind the calls of the function that ends here."""
        blocks, own = self.program.blocks, self.block.block.function
        entry = min(b.number for b in blocks if b.block.function is own)
        return sorted(
            {
                b.block.follow
                for b in blocks
                if b.terminator_kind == "call" and b.call_entry == entry
            }
        )

    def forget(self) -> None:
        """Nothing has written the local variables of a function that begins or ends."""
        for places in self.block.forgets:
            self.runtime("forget", self.mask(), str(places.start), str(len(places)))

    def part(self, target: int, follow: int, counts: bool) -> None:
        """Send the lanes whose guard holds to one block, the others to another."""
        x = self.lines
        mask = self.mask()
        taking = x.value(f"and i64 {mask}, {x.value('load i64, ptr %guard_at')}")
        staying = x.value(f"xor i64 {mask}, {taking}")
        all_go, some, none_goes, both = (x.label() for _ in range(4))
        x.emit(f"br i1 {x.value(f'icmp eq i64 {staying}, 0')}, label %{all_go}, label %{some}")
        x.begin(all_go)
        self.go_all(target)
        x.begin(some)
        x.emit(f"br i1 {x.value(f'icmp eq i64 {taking}, 0')}, label %{none_goes}, label %{both}")
        x.begin(none_goes)
        self.go_all(follow)
        x.begin(both)
        if counts:
            x.add_to(x.word_at(self.table(layout.PARTED), self.block.number), "1")
        self.go(follow, staying)
        self.go(target, taking)
        x.emit("br label %pick")

    def go_all(self, to: int) -> None:
        """Send all lanes of the mask to one block; they run it at once if no other may go first."""
        x = self.lines
        if to == EXIT:
            self.go(to, self.mask())
            x.emit("br label %pick")
            return
        alone, others = x.label(), x.label()
        count = x.word("%x", layout.OTHERS)
        x.emit(f"br i1 {x.value(f'icmp eq i64 {count}, 0')}, label %{alone}, label %{others}")
        x.begin(alone)
        self.pass_edge(to, self.mask())
        x.emit(f"br label %B{to}")
        x.begin(others)
        self.go(to, self.mask())
        x.emit("br label %pick")

    def go(self, to: int, lanes: str) -> None:
        """Send lanes to a block; at ``EXIT`` they end."""
        if to == EXIT:
            self.runtime("leave", lanes)
            return
        self.pass_edge(to, lanes)
        self.runtime("join", str(to), lanes)

    def pass_edge(self, to: int, lanes: str) -> None:
        """Give lanes that go to a block the tokens that they have there."""
        what = self.facts.edges.get((self.block.number, to))
        if what == NEW:
            self.runtime("renew", lanes)
        elif what is not None:
            self.runtime("restore", str(self.points[what]), lanes)

    def barrier(self, end: BarrierOp) -> None:
        """Leave native code at a block barrier that all lanes of the warp have come to."""
        zeros = all(
            isinstance(source.value, Constant) and int(source.value.value) == 0
            for source in end.sources
        )
        if end.guard or end.reduction or end.cluster or not end.waits or not zeros:
            raise NotNative(f"{end.instruction.name} with a count, a number or a reduction")
        x, number = self.lines, self.block.number
        missing = x.value(f"xor i64 {self.mask()}, {x.word('%x', layout.ALIVE)}")
        missing = x.value(f"or i64 {missing}, {x.word('%x', layout.OTHERS)}")
        self.give_up_if(x.value(f"icmp ne i64 {missing}, 0"), layout.BARRIER_APART)
        x.add_to(x.word_at(self.table(layout.RELEASED), number), "1")
        if not is_aligned(self.block):
            raise NotNative("a barrier that is not aligned")
        if self.block.block.follow == EXIT:
            raise NotNative("a barrier at the end of a function")
        x.emit(f"ret i64 {number}")
