"""A kernel as one native function, which runs one warp until a block barrier or its end.

Between memory accesses a basic block is a loop over the lanes of the mask; each access is a call
of the runtime, so the lanes of a warp stay in lockstep. Of a warp's lanes those at the lowest basic
block run first, as in the NumPy engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...compile.ir import (
    Compute,
    FenceOp,
    IrOp,
    MemoryOp,
    Terminator,
    WarpCompute,
)
from ...compile.ir_values import Constant, Register, SourceValue
from ...compile.program import CompiledBlock, Program
from ...execute.sync.branch_history import ControlFlowMap
from .. import layout
from ..access_names import access_name
from ..atomic_classes import orders_matter
from ..forms.across_lanes import across_lanes
from ..layout import ABSENT_LANE, DONE, GAVE_UP, LANE_WORD, PAUSED
from ..lines import bits_of
from ..row_calls import is_called_back
from .block_ends import BlockEnds
from .lane_code import LaneCode, NotNative

WHOLE_WARP = 0xFFFFFFFF
POINTERS = ("x", "frame", "scratch", "parameters", "thread_x", "thread_y", "thread_z")
"""What a kernel's function is given, each of it memory of its own: the context first."""


class Segment(NamedTuple):
    """Steps between two accesses; ``first``: the one whose results are taken before."""

    first: IrOp | None
    steps: list[IrOp]
    last: IrOp | None


class KernelCode(BlockEnds):
    """The LLVM IR of a kernel for one shape of block.

    Attributes:
        accesses: Names of the runtime's functions for memory that it calls.
        called_back: Steps whose NumPy functions it calls, by number.
        text: The module, once it is made.
        affected: Basic blocks at which lanes may have different tokens.
    """

    def __init__(
        self, program: Program, flow: ControlFlowMap, block_shape: tuple[int, int, int]
    ) -> None:
        super().__init__(program, flow, block_shape)
        self.accesses: set[str] = set()
        self.called_back: list[Compute] = []
        self.text = ""
        self.inner = {head: sorted(flow.heads[head]) for head in sorted(flow.heads)}
        self.heads = {head: number for number, head in enumerate(self.inner)}
        barriers = [b.number for b in program.blocks if b.terminator_kind == "barrier"]
        self.about = {n: sum(1 << self.heads[h] for h in flow.about(n)) for n in barriers}
        self.affected = self.facts.affected
        self.orders_matter = orders_matter(program)
        self.is_head = {
            to for b in program.blocks for to in _ways(b) if 0 <= to <= b.number
        }  # fmt: skip

    def make(self) -> None:
        """Make the module, ``text``.

        Raises:
            NotNative: Something that native code does not know.
        """
        x = self.lines
        pointers = ", ".join(f"ptr noalias %{name}" for name in POINTERS)
        x.lines.append(f"define i64 @kernel({pointers}, i64 %start) nounwind {{")
        x.begin("entry")
        x.emit("%context = ptrtoint ptr %x to i64")
        x.emit("%mask_at = alloca i64")
        x.emit("%guard_at = alloca i64")
        x.emit("%members_at = alloca i64")
        alive = x.word("%x", layout.ALIVE)
        x.emit(f"store i64 {alive}, ptr %mask_at")
        blocks = self.program.blocks
        cases = " ".join(f"i64 {b.number}, label %B{b.number}" for b in blocks)
        behind = " ".join(
            f"i64 {len(blocks) + b.number}, label %B{b.block.follow}"
            for b in blocks
            if b.terminator_kind == "barrier"
        )
        x.emit(f"switch i64 %start, label %pick [{cases} {behind}]")
        x.begin("pick")
        number = x.call("pick", "i64", ("i64", "%context"))
        mask = x.word("%x", layout.MASK)
        x.emit(f"store i64 {mask}, ptr %mask_at")
        x.emit(f"switch i64 {number}, label %done [{cases}]")
        for label, code in (("done", DONE), ("bail", GAVE_UP), ("paused", PAUSED)):
            x.begin(label)
            x.emit(f"ret i64 {code}")
        for block in self.program.blocks:
            self.basic_block(block)
        x.lines.append("}")
        self.text = "\n".join([*sorted(x.declared), *x.lines]) + "\n"

    # -- a basic block ---------------------------------------------------------------

    def basic_block(self, block: CompiledBlock) -> None:
        """Emit one basic block."""
        self.block, x = block, self.lines
        x.begin(f"B{block.number}")
        if block.number in self.is_head:
            self.use_fuel()
        if self.orders_matter:
            self.runtime("step_to", str(block.number))
        if block.number in self.facts.yields:
            self.wait_for_others()
        has_tokens = self.facts.edges or self.facts.yields
        if has_tokens:
            x.add_to(x.word_at("%x", layout.STEP), "1")
        if block.gate:
            self.gate()
        if has_tokens:
            for point in self.facts.saves.get(block.number, ()):
                self.runtime("save", str(self.points[point]), self.mask())
        self.count_block()
        if block.number in self.heads:
            self.runtime("begin_round", str(self.heads[block.number]), self.mask())
            for inner in self.inner[block.number]:
                self.runtime("forget_rounds", str(self.heads[inner]), self.mask())
        segments = self.segments()
        for place, segment in enumerate(segments):
            later = {r.number for r in block.lowered.live_out}
            if block.lowered.end:
                sources = (source.value for source in block.lowered.end.sources)
                later.update(s.number for s in sources if isinstance(s, Register))
            later.update(*(_reads(other) for other in segments[place + 1 :]))
            self.segment(segment, later)
            if isinstance(segment.last, MemoryOp):
                self.access(segment.last)
            elif isinstance(segment.last, WarpCompute):
                self.warp_instruction(segment.last)
            elif isinstance(segment.last, Compute):
                self.call_back(segment.last)
        self.end(block.lowered.end)

    def use_fuel(self) -> None:
        """At a loop's head, return to Python from time to time."""
        x = self.lines
        at = x.word_at("%x", layout.FUEL)
        rest = x.value(f"sub i64 {x.value(f'load i64, ptr {at}')}, 1")
        x.emit(f"store i64 {rest}, ptr {at}")
        empty, on = x.label(), x.label()
        over = x.value(f"icmp slt i64 {rest}, 0")
        x.emit(f"br i1 {over}, label %{empty}, label %{on}")
        x.begin(empty)
        self.runtime("put_back", str(self.block.number), self.mask())
        x.emit("br label %paused")
        x.begin(on)

    def wait_for_others(self) -> None:
        """At a waiting loop, let others of the warp go first; give up if that is not known."""
        x = self.lines
        known, unknown, on = x.label(), x.label(), x.label()
        lets_go = x.value(f"icmp ne i64 {x.word('%x', layout.LETS_GO)}, 0")
        x.emit(f"br i1 {lets_go}, label %{known}, label %{unknown}")
        x.begin(unknown)
        at = x.word_at("%x", layout.TURNS)
        rest = x.value(f"sub i64 {x.value(f'load i64, ptr {at}')}, 1")
        x.emit(f"store i64 {rest}, ptr {at}")
        over = x.value(f"icmp slt i64 {rest}, 0")
        others = x.value(f"icmp ne i64 {x.word('%x', layout.OTHERS)}, 0")
        self.give_up_if(x.value(f"or i1 {over}, {others}"), layout.WAITS)
        x.emit(f"br label %{on}")
        x.begin(known)
        self.runtime("start_waiting", self.mask())
        x.emit(f"br label %{on}")
        x.begin(on)

    def gate(self) -> None:
        """Hold lanes until all of the warp have come."""
        gate, x = self.block.gate, self.lines
        assert gate
        if gate.guard or gate.group:
            raise NotNative("a guarded warp-synchronous instruction")
        members = str(WHOLE_WARP)
        if gate.members and isinstance(gate.members.value, Constant):
            members = str(int(gate.members.value.value) & WHOLE_WARP)
        elif gate.members:
            members = self.common_members(gate.members)
        number = self.block.number
        orders = str(int(self.block.warp_barrier))
        through = self.runtime("gate", str(number), self.mask(), members, orders)
        wrong, right, on = x.label(), x.label(), x.label()
        bad = x.value(f"icmp slt i64 {through}, 0")
        x.emit(f"br i1 {bad}, label %{wrong}, label %{right}")
        x.begin(wrong)
        self.give_up(ABSENT_LANE)
        x.begin(right)
        none = x.value(f"icmp eq i64 {through}, 0")
        x.emit(f"br i1 {none}, label %pick, label %{on}")
        x.begin(on)
        x.emit(f"store i64 {through}, ptr %mask_at")

    def common_members(self, source: SourceValue) -> str:
        """Return the lanes that each lane of the mask names, as a word."""
        x = self.lines
        x.emit(f"store i64 {WHOLE_WARP}, ptr %members_at")

        def body(code: LaneCode) -> None:
            named = x.value(f"zext i32 {code.source(source)} to i64")
            before = x.value("load i64, ptr %members_at")
            x.emit(f"store i64 {x.value(f'and i64 {before}, {named}')}, ptr %members_at")

        self.loops.some_lanes(body)
        return x.value("load i64, ptr %members_at")

    def count_block(self) -> None:
        """Count the threads and the warp that execute the block."""
        x, number = self.lines, self.block.number
        threads = x.call("llvm.ctpop.i64", "i64", ("i64", self.mask()))
        for word, more in ((layout.THREADS_RUN, threads), (layout.WARPS_RUN, "1")):
            x.add_to(x.word_at(self.table(word), number), more)

    def segments(self) -> list[Segment]:
        """Cut the block's steps at those that all lanes have to come to."""
        found: list[Segment] = []
        first: IrOp | None = None
        steps: list[IrOp] = []
        for step in self.block.steps:
            if isinstance(step, FenceOp):
                if step.proxy:
                    raise NotNative(step.instruction.name)
            elif isinstance(step, (MemoryOp, WarpCompute)) or is_called_back(step):
                found.append(Segment(first, steps, step))
                first, steps = step, []
            else:
                steps.append(step)
        end = self.block.lowered.end
        found.append(Segment(first, steps, end if end and end.guard else None))
        return found

    def segment(self, segment: Segment, later: set[int]) -> None:
        """Emit what each lane does between two accesses."""
        takes = segment.first and any(segment.first.targets)
        if not (takes or segment.steps or segment.last):
            return

        def body(code: LaneCode) -> None:
            if segment.first:
                self.take_results(code, segment.first)
            for step in segment.steps:
                code.step(step)
            if segment.last:
                self.give_operands(code, segment.last)
            code.write_back(later)

        self.loops.each_lane(body)

    def take_results(self, code: LaneCode, step: IrOp) -> None:
        """Put the results of an access into registers."""
        guard = code.source(step.guard) if step.guard else None
        for place, target in enumerate(step.targets):
            if target:
                bits, at = bits_of(target.type), (layout.RESULTS_AT + place) * LANE_WORD
                code.put(target, code.load_lane("%scratch", at, bits), guard)

    def give_operands(self, code: LaneCode, step: IrOp) -> None:
        """Write the operands of an access to the scratch memory."""
        if isinstance(step, MemoryOp):
            code.store_lane("%scratch", layout.ADDRESS_AT * LANE_WORD, 64, code.source(step.base))
        if not isinstance(step, Terminator):
            for place, source in enumerate(step.sources):
                at = (layout.VALUES_AT + place) * LANE_WORD
                code.store_lane("%scratch", at, bits_of(source.type), code.source(source))
        if step.guard:
            code.guard(code.source(step.guard))

    # -- what all lanes do together ----------------------------------------------------

    def access(self, step: MemoryOp) -> None:
        """Call the runtime to access memory."""
        x, site = self.lines, step.site
        name = access_name(site)
        self.accesses.add(name)
        mask = self.mask()
        if step.guard:
            mask = x.value(f"and i64 {mask}, {x.value('load i64, ptr %guard_at')}")
        record = x.value(
            f"add i64 {x.word('%x', layout.SITES)}, {site.number * layout.SITE_WORDS * 8}"
        )
        scratch = x.value("ptrtoint ptr %scratch to i64")
        areas = (
            x.value(f"add i64 {scratch}, {area * LANE_WORD}")
            for area in (layout.ADDRESS_AT, layout.VALUES_AT, layout.RESULTS_AT)
        )
        arguments = ("%context", record, mask, *areas)
        self.check(x.call(name, "i64", *(("i64", value) for value in arguments)))

    def warp_instruction(self, step: WarpCompute) -> None:
        """Call the runtime for an instruction that looks across lanes."""
        x, found = self.lines, across_lanes(step.instruction)
        if found is None or step.guard:
            raise NotNative(step.instruction.name)
        scratch = x.value("ptrtoint ptr %scratch to i64")
        self.check(self.runtime(found.function, str(found.mode), self.mask(), scratch))

    def call_back(self, step: Compute) -> None:
        """Call the NumPy function of a step that has no native form, for all lanes at once."""
        x, number = self.lines, len(self.called_back)
        self.called_back.append(step)
        function = self.table(layout.CALLBACK)
        # Given the memory that it changes: LLVM takes for granted that nothing else does.
        scratch = x.value("ptrtoint ptr %scratch to i64")
        self.check(x.value(f"call i64 {function}(i64 {number}, i64 {scratch})"))


def _ways(block: CompiledBlock) -> Sequence[int]:
    return (*block.block.targets, block.block.follow)


def _reads(segment: Segment) -> set[int]:
    """Numbers of the registers that a segment reads."""
    found: set[int] = set()
    for step in [*([segment.first] if segment.first else []), *segment.steps,
                 *([segment.last] if segment.last else [])]:  # fmt: skip
        sources = [*step.sources, *([step.guard] if step.guard else [])]
        sources += [step.base] if isinstance(step, MemoryOp) else []
        sources += [t.under for t in step.targets if t and t.under]
        found |= {s.value.number for s in sources if isinstance(s.value, Register)}
        found |= {t.register.number for t in step.targets if t and isinstance(t.register, Register)}
    return found
