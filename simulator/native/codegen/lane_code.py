"""Code for one lane: registers in the warp's frame, operands, and computing steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...compile.ir import Compute, CountLanes, IrOp, Move
from ...compile.ir_values import (
    Constant,
    Parameter,
    Register,
    ResultValue,
    SourceValue,
    SpecialRegisterValue,
    Temporary,
)
from ...isa.decoded import OWN
from .. import layout
from ..forms.catalog import native_form
from ..forms.table import Operand
from ..layout import LANE_WORD
from ..lines import Lines, bits_of


class NotNative(Exception):
    """The program uses a feature without native code, which the message names."""


class FrameSlot(NamedTuple):
    """The place of a register in a frame: a value for each of 32 lanes, side by side."""

    offset: int
    bits: int


class Frame:
    """Where the registers of a program lie in the frame of a warp.

    Attributes:
        nbytes: Of a frame; ``slots``: by number of a register.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.slots: dict[int, FrameSlot] = {}

    def slot(self, register: Register) -> FrameSlot:
        """Return the place of a register."""
        found = self.slots.get(register.number)
        if found is None:
            bits = bits_of(register.carrier)
            found = self.slots[register.number] = FrameSlot(self.nbytes, bits)
            self.nbytes += -(-max(bits, 8) * 4 // 64) * 64
        return found


_COORDINATES = {
    f"%{word}.{axis}": f"{name}_{axis.upper()}"
    for word, name in (("ctaid", "BLOCK"), ("nctaid", "GRID"), ("clusterid", "BLOCK"),
                       ("nclusterid", "GRID"))
    for axis in "xyz"
}  # fmt: skip
_BELOW = {"%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge"}


class LaneCode:
    """Code of a run of steps for one lane.

    Registers are read from the frame when they are first needed; at the end those are written back
    that later code reads.

    Args:
        lines: Where the code goes.
        frame: Of the program; ``block_shape``: threads of a block.
        lane: The lane's number, an LLVM value of 64 bits.
        active: Whether the lane keeps what it computes, an LLVM value of one bit; empty: it does.

    Attributes:
        lanes_guarded: Bits of the lanes gathered by ``guard``, an LLVM value of 64 bits.
    """

    def __init__(
        self, lines: Lines, frame: Frame, block_shape: tuple[int, int, int], lane: str,
        active: str = "",
    ) -> None:  # fmt: skip
        self.lines, self.frame, self.shape, self.lane = lines, frame, block_shape, lane
        self.active = active
        self.known: dict[int, str] = {}
        self.temporaries: dict[int, str] = {}
        self.dirty: dict[int, Register] = {}
        self.lanes_guarded = "0"

    def guard(self, condition: str) -> None:
        """Gather the lane if a condition holds: for an access, or a branch."""
        on = self.lines.value(f"zext i1 {condition} to i64")
        bit = self.lines.value(f"shl i64 {on}, {self.lane}")
        self.lanes_guarded = self.lines.value(f"or i64 {self.lanes_guarded}, {bit}")

    # -- memory of a value for each lane -------------------------------------------

    def lane_pointer(self, base: str, offset: int, bits: int) -> str:
        """Return a pointer to the lane's value in a row of 32."""
        start = self.lines.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.lines.value(f"getelementptr i{max(bits, 8)}, ptr {start}, i64 {self.lane}")

    def load_lane(self, base: str, offset: int, bits: int) -> str:
        """Return the lane's value in a row of 32."""
        pointer = self.lane_pointer(base, offset, bits)
        found = self.lines.value(f"load i{max(bits, 8)}, ptr {pointer}")
        return self.lines.value(f"trunc i8 {found} to i1") if bits == 1 else found

    def store_lane(self, base: str, offset: int, bits: int, value: str) -> None:
        """Write the lane's value in a row of 32."""
        pointer = self.lane_pointer(base, offset, bits)
        if bits == 1:
            value = self.lines.value(f"zext i1 {value} to i8")
        self.lines.emit(f"store i{max(bits, 8)} {value}, ptr {pointer}")

    def scratch(self, area: int) -> int:
        """Return the offset of an area of the scratch memory."""
        return area * LANE_WORD

    # -- registers -----------------------------------------------------------------

    def read(self, register: Register | Temporary) -> str:
        """Return the lane's value of a register."""
        if isinstance(register, Temporary):
            return self.temporaries[register.number]
        if register.number not in self.known:
            slot = self.frame.slot(register)
            self.known[register.number] = self.load_lane("%frame", slot.offset, slot.bits)
        return self.known[register.number]

    def put(self, target: ResultValue, value: str, guard: str | None) -> None:
        """Write a result; ``guard``: whether the lane executes the instruction."""
        register = target.register
        have, want = bits_of(target.type), bits_of(register.carrier)
        value = self.lines.resized(value, have, want, target.type[0] == "s")
        if isinstance(register, Temporary):
            self.temporaries[register.number] = value
            return
        guards = [g for g in (guard, self.source(target.under) if target.under else None) if g]
        for condition in guards:
            before = self.read(register)
            value = self.lines.value(f"select i1 {condition}, i{want} {value}, i{want} {before}")
        self.known[register.number] = value
        self.dirty[register.number] = register

    def write_back(self, later: Iterable[int]) -> None:
        """Write changed registers to the frame, of those that are read later."""
        wanted = set(later)
        for number, register in self.dirty.items():
            if number in wanted:
                slot, value = self.frame.slot(register), self.known[number]
                if self.active:
                    before = self.load_lane("%frame", slot.offset, slot.bits)
                    kind = f"i{slot.bits}"
                    value = self.lines.value(
                        f"select i1 {self.active}, {kind} {value}, {kind} {before}"
                    )
                self.store_lane("%frame", slot.offset, slot.bits, value)

    # -- operands ------------------------------------------------------------------

    def source(self, source: SourceValue) -> str:
        """Return the lane's value of an operand, as wide as its type."""
        value = source.value
        match value:
            case Register() | Temporary():
                found, have = self.read(value), value.carrier
            case Constant():
                return _constant(value.value, source.type)
            case Parameter():
                found, have = self.parameter(value), value.carrier
            case SpecialRegisterValue():
                found, have = self.special(value.name), value.carrier
        if source.negated:
            found = self.lines.value(f"xor i1 {found}, true")
        return self.lines.resized(found, bits_of(have), bits_of(source.type), True)

    def operand(self, source: SourceValue) -> Operand:
        """Return an operand as a form takes it."""
        return Operand(self.source(source), source.type)

    def parameter(self, value: Parameter) -> str:
        """Return a piece of the kernel's parameters."""
        at = self.lines.value(f"getelementptr i8, ptr %parameters, i64 {value.offset}")
        bits = bits_of(value.carrier)
        found = self.lines.value(f"load i{max(bits, 8)}, ptr {at}, align 1")
        return self.lines.value(f"trunc i8 {found} to i1") if bits == 1 else found

    def special(self, name: str) -> str:
        """Return a special register.

        Raises:
            NotNative: It is not known natively.
        """
        x, shape = self.lines, dict(zip("xyz", self.shape, strict=True))
        word, _, axis = name.partition(".")
        if word == "%tid" and axis:
            thread = x.value(f"add i64 {self.first_thread()}, {self.lane}")
            at = x.value(f"getelementptr i32, ptr %thread_{axis}, i64 {thread}")
            return x.value(f"load i32, ptr {at}")
        if word == "%ntid" and axis:
            return str(shape[axis])
        if name in _COORDINATES:
            field = getattr(layout, _COORDINATES[name])
            return x.value(f"trunc i64 {x.word('%x', field)} to i32")
        if name == "%laneid":
            return x.value(f"trunc i64 {self.lane} to i32")
        if name == "%warpid":
            return x.value(f"trunc i64 {x.word('%x', layout.WARP)} to i32")
        if name == "%nwarpid":
            return str(-(-shape["x"] * shape["y"] * shape["z"] // 32))
        if name in ("%nsmid", "%cluster_nctarank", "%cluster_nctaid.x", "%cluster_nctaid.y",
                    "%cluster_nctaid.z"):  # fmt: skip
            return "1"
        if name in (OWN, "%cluster_ctarank", "%cluster_ctaid.x", "%cluster_ctaid.y",
                    "%cluster_ctaid.z"):  # fmt: skip
            return "0"
        if name in _BELOW:
            return self.lane_mask(name)
        raise NotNative(f"the special register {name}")

    def lane_mask(self, name: str) -> str:
        """Return bits of the lanes below or above this one."""
        x = self.lines
        own = x.value(f"shl i64 1, {self.lane}")
        below = x.value(f"sub i64 {own}, 1")
        upto = x.value(f"or i64 {own}, {below}")
        found = {
            "%lanemask_eq": own, "%lanemask_lt": below, "%lanemask_le": upto,
        }.get(name)  # fmt: skip
        if found is None:
            found = x.value(f"xor i64 {upto if name == '%lanemask_gt' else below}, -1")
        return x.value(f"trunc i64 {found} to i32")

    def first_thread(self) -> str:
        """Return the number in its block of the warp's first thread."""
        return self.lines.value(f"shl i64 {self.lines.word('%x', layout.WARP)}, 5")

    # -- steps ---------------------------------------------------------------------

    def step(self, step: IrOp) -> None:
        """Emit a step that has to do with registers alone.

        Raises:
            NotNative: There is no such form natively.
        """
        if isinstance(step, CountLanes):
            self.count_lane(step)
            return
        guard = self.source(step.guard) if step.guard else None
        if isinstance(step, Move):
            values = [self.source(source) for source in step.sources]
        elif isinstance(step, Compute):
            emit = native_form(step.instruction, step.op)
            if emit is None:
                raise NotNative(step.instruction.name)
            values = emit(self.lines, [self.operand(source) for source in step.sources])
        else:
            raise NotNative(step.instruction.name)
        for target, value in zip(step.targets, values, strict=True):
            if target:
                self.put(target, value, guard)

    def count_lane(self, step: CountLanes) -> None:
        """Add the lane to the tally of a guarded instruction."""
        assert step.guard
        x = self.lines
        on = self.source(step.guard)
        if self.active:
            on = x.value(f"and i1 {on}, {self.active}")
        on = x.value(f"zext i1 {on} to i64")
        table = x.value(f"inttoptr i64 {x.word('%x', layout.TALLIES)} to ptr")
        x.add_to(x.word_at(table, step.number), on)


def _constant(value: np.generic, type: str) -> str:
    """A constant's bits, as a number of the type's width."""
    bits = bits_of(type)
    if bits == 1:
        return "true" if value else "false"
    raw = int.from_bytes(value.tobytes(), "little", signed=True)
    raw &= (1 << bits) - 1
    return str(raw - (1 << bits) if raw >> (bits - 1) else raw)
