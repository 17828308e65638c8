"""Reciprocals, roots and the special-function unit (PTX ISA, "Floating Point Instructions")."""

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ..geometry import Lanes
from . import arithmetic as ieee
from . import half
from .rounding import finished, rounded
from .table import Function, Op, row, scalar_type

SECTION = "Floating Point Instructions"


@row(
    "rcp", section=SECTION,
    forms="""
        approx|rn|rz|rm|rp ftz? .f32 : t = t
        rn|rz|rm|rp .f64 : t = t
        approx ftz .f64 : t = t
    """,
)  # fmt: skip
@row(
    "sqrt", section=SECTION,
    forms="""
        approx|rn|rz|rm|rp ftz? .f32 : t = t
        rn|rz|rm|rp .f64 : t = t
    """,
)  # fmt: skip
def rcp_sqrt(ins: Instruction) -> Op:
    """Reciprocal and square root, IEEE or ``.approx``."""
    type = scalar_type(ins)
    loose, fn = ins.has("approx"), rounded(ins, ins.opcode)
    fn = _coarse(fn) if type == "f64" and loose else finished(ins, fn)
    return Op(fn, (type,), (type,), None, 1, approximate=loose)


def _coarse(fn: Function) -> Function:
    """``.approx.ftz.f64``: operand and result have their upper 32 bits alone; no subnormals.

    (The operand as measured on an H200: a NaN whose payload is all below counts as infinite.)
    """
    upper = np.uint64(0xFFFFFFFF00000000)

    def apply(a: Lanes) -> Lanes:
        a = (np.asarray(a).view(np.uint64) & upper).view(np.float64)
        result = np.asarray(ieee.flush(fn(ieee.flush(a))))
        nan = np.uint64(0x7FFFFFFF00000000)  # the manual's
        bits = np.where(np.isnan(result), nan, result.view(np.uint64) & upper)
        return bits.view(np.float64)[()]

    return apply


_APPROXIMATE: dict[str, Function] = {
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}


@row("rsqrt", section=SECTION, forms="approx ftz? .f32|f64 : t = t")
@row("lg2", "sin", "cos", section=SECTION, forms="approx ftz? .f32 : t = t")
@row("tanh", section=half.SECTION, forms="approx .f32|f16|f16x2|bf16|bf16x2 : t = t")
@row(
    "ex2", section=half.SECTION,
    forms="""
        approx ftz? .f32 : t = t
        approx .f16|f16x2 : t = t
        approx ftz .bf16|bf16x2 : t = t
    """,
)  # fmt: skip
def transcendental(ins: Instruction) -> Op:
    """The special-function unit's approximations, here in float64 and rounded once."""
    type, exact = scalar_type(ins), _APPROXIMATE[ins.opcode]
    if type in half.HALF_TYPES:
        return half.operation(ins, type, exact, 1, approximate=True)
    dtype = DTYPES[type]

    def apply(a: Lanes) -> Lanes:
        return ieee.canonical(exact(a.astype(np.float64)).astype(dtype))

    fn = _coarse(apply) if type == "f64" and ins.has("ftz") else finished(ins, apply)
    return Op(fn, (type,), (type,), None, 1, approximate=True)
