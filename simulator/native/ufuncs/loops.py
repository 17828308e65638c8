"""LLVM IR of a native form's loop over arrays, as NumPy calls the loop of a universal function.

Arrays have strides. The usual ones have a loop of their own, which LLVM vectorises: all arrays are
contiguous, or all but one operand, which is one value for all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernels.ptx.types import DTYPES

from ...compile.ir import Compute
from ..forms.catalog import native_form
from ..forms.table import Emit, Operand
from ..lines import Lines, bits_of

NAME = "loop"
"""The function's."""
UNIT = "@unit_"
"""What names of the runtime's functions begin with that forms may call."""


def types_of(step: Compute) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the PTX types of a step's operands and results."""
    return tuple(source.type for source in step.sources), step.op.outputs


def module_text(step: Compute) -> str | None:
    """Return a module with the function of a step; ``None``: it has no native form."""
    inputs, outputs = types_of(step)
    emit = native_form(step.instruction, step.op)
    if emit is None or len(step.targets) != len(outputs):
        return None
    return _Function(emit, inputs, outputs).text()


class _Function:
    """The function under construction; ``x``: its lines."""

    def __init__(self, emit: Emit, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.emit, self.inputs, self.outputs = emit, inputs, outputs
        self.widths = [int(DTYPES[type].itemsize) for type in (*inputs, *outputs)]
        self.x = Lines()
        self.starts: list[str] = []
        self.count = ""
        self.loops = 0

    def text(self) -> str:
        """Return the module."""
        x = self.x
        x.lines.append(f"define void @{NAME}(ptr %arrays, ptr %lengths, ptr %steps, ptr %data) {{")
        x.begin("entry")
        self.count = x.value("load i64, ptr %lengths")
        places = range(len(self.widths))
        pointers = [x.value(f"getelementptr ptr, ptr %arrays, i64 {place}") for place in places]
        self.starts = [x.value(f"load ptr, ptr {pointer}") for pointer in pointers]
        strides = [x.word("%steps", place) for place in places]
        x.emit(f"br i1 {self._equal(self.count, 0)}, label %end, label %way0")
        one_value = [None, *range(len(self.inputs))]
        for way, place in enumerate(one_value):
            steps = [0 if i == place else width for i, width in enumerate(self.widths)]
            x.begin(f"way{way}")
            fits = "true"
            for stride, step in zip(strides, steps, strict=True):
                fits = x.value(f"and i1 {fits}, {self._equal(stride, step)}")
            x.emit(f"br i1 {fits}, label %before{way}, label %way{way + 1}")
            self._loop([str(step) for step in steps])
        x.begin(f"way{len(one_value)}")
        x.emit(f"br label %before{len(one_value)}")
        self._loop(strides)
        x.begin("end")
        x.emit("ret void")
        x.lines.append("}")
        return "\n".join([*sorted(x.declared), *x.lines, self._metadata()])

    def _equal(self, value: str, number: int) -> str:
        return self.x.value(f"icmp eq i64 {value}, {number}")

    def _loop(self, strides: Sequence[str]) -> None:
        """Add a loop over all lanes, of arrays with some strides in bytes."""
        x, number = self.x, self.loops
        self.loops += 1
        x.begin(f"before{number}")
        x.emit(f"br label %loop{number}")
        x.begin(f"loop{number}")
        lane, after = f"%lane{number}", f"%after{number}"
        x.emit(f"{lane} = phi i64 [ 0, %before{number} ], [ {after}, %loop{number} ]")
        places = []
        for start, stride in zip(self.starts, strides, strict=True):
            offset = x.value(f"mul i64 {lane}, {stride}")
            places.append(x.value(f"getelementptr i8, ptr {start}, i64 {offset}"))
        given = [self._load(*pair) for pair in zip(places, self.inputs, strict=False)]
        found = zip(places[len(given) :], self.outputs, self.emit(x, given), strict=True)
        for place, type, value in found:
            self._store(place, type, value)
        x.emit(f"{after} = add i64 {lane}, 1")
        done = x.value(f"icmp eq i64 {after}, {self.count}")
        x.emit(f"br i1 {done}, label %end, label %loop{number}, !llvm.loop !{number + 2}")

    def _load(self, place: str, type: str) -> Operand:
        bits = bits_of(type)
        how = f"load i{max(bits, 8)}, ptr {place}, align 1, !llvm.access.group !0"
        value = self.x.value(how)
        return Operand(self.x.value(f"trunc i8 {value} to i1") if bits == 1 else value, type)

    def _store(self, place: str, type: str, value: str) -> None:
        bits = bits_of(type)
        if bits == 1:
            value = self.x.value(f"zext i1 {value} to i8")
        where = f"ptr {place}, align 1, !llvm.access.group !0"
        self.x.emit(f"store i{max(bits, 8)} {value}, {where}")

    def _metadata(self) -> str:
        """Say that a loop's rounds are independent.

        NumPy gives operands that overlap results otherwise than element on element as copies
        (``NPY_ITER_OVERLAP_ASSUME_ELEMENTWISE``).
        """
        rounds = range(2, 2 + self.loops)
        lines = [f"!{number} = distinct !{{!{number}, !1}}" for number in rounds]
        parallel = '!1 = !{!"llvm.loop.parallel_accesses", !0}'
        return "\n".join(["!0 = distinct !{}", parallel, *lines, ""])
