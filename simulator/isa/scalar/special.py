"""Reciprocals, roots and the special-function unit (PTX ISA, "Floating Point Instructions")."""

from kernels.ptx.module import Instruction

from ..numerics.rounding import finished, rounded
from ..table import Op, row, scalar_type
from . import half, mufu

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
    if ins.has("approx"):
        return approximate(ins)
    type = scalar_type(ins)
    return Op(finished(ins, rounded(ins, ins.opcode)), (type,), (type,), None, 1)


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
def approximate(ins: Instruction) -> Op:
    """Function of the special-function unit."""
    type, ftz = scalar_type(ins), ins.has("ftz")
    if type in half.HALF_TYPES:
        word, one = half.carrier(type), type.removesuffix("x2")
        fn = half.lanes(lambda w: mufu.words(ins.opcode, one)[w], type)
        return Op(fn, (word,), (word,), None, 2 if one != type else 1, approximate=True)
    if type == "f64":
        fn = mufu.upper(ins.opcode) if ftz else mufu.rsqrt_f64
    else:
        fn = mufu.single(ins.opcode, ftz)
    return Op(fn, (type,), (type,), None, 1, approximate=True)
