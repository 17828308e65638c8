"""The stack, and policies of the cache (PTX ISA, "Stack Manipulation", "createpolicy").

A function's allocations come from its own variable, of as many bytes as a thread's stack has in
all, and are gone when it returns. What does not fit has an address at
which nothing lies.
"""

from typing import cast

import numpy as np

from kernels.ptx.module import Imm, Instruction

from ...core.geometry import Lanes
from ..table import Op, Unsupported, row, scalar_type

SECTION = "Stack Manipulation Instructions"
STACK_BYTES = 1024
_NOWHERE = np.uint64(0x7FFF_0000)


@row(
    "alloca", section=SECTION,
    forms="""
        .u32|u64 : t SP = t stack end SP
        .u32|u64 : t SP = t imm stack end SP
    """,
)  # fmt: skip
def allocate(ins: Instruction) -> Op:
    """Bytes of the stack, at a multiple of eight or of what is asked for."""
    type, align = scalar_type(ins), 8
    if len(ins.operands) == 3:
        assert isinstance(ins.operands[2], Imm)
        align = ins.operands[2].value
    if align <= 0 or align & (align - 1):
        raise Unsupported("an alignment that is no power of two: use the next one")
    below = np.uint64(align - 1)

    def apply(size: Lanes, *given: Lanes) -> tuple[Lanes, Lanes]:
        start, available, used = given[-3:]
        at = (start + used + below) & ~below
        fits = (at <= available) & (size.astype(np.uint64) <= available - np.minimum(at, available))
        end = at + size.astype(np.uint64) - start
        return np.where(fits, at, _NOWHERE).astype(size.dtype), np.where(fits, end, used)

    inputs = (type, type)[: len(ins.operands) - 1]
    return Op(apply, (*inputs, "u64", "u64", "u64"), (type, "u64"))


@row("stacksave", section=SECTION, forms=".u32|u64 : t = stack SP")
def save(ins: Instruction) -> Op:
    """Return the operation that reads the stack pointer."""
    type = scalar_type(ins)
    size = np.dtype(f"u{int(type[1:]) // 8}")
    return Op(lambda start, used: (start + used).astype(size), ("u64", "u64"), (type,))


@row("stackrestore", section=SECTION, forms=".u32|u64 : SP = t! stack")
def restore(ins: Instruction) -> Op:
    """Build ``stackrestore``, which frees what was allocated since ``stacksave``."""
    return Op(lambda end, start: end - start, (scalar_type(ins), "u64"), ("u64",))


_SECOND = "L2::evict_unchanged|L2::evict_first?"


@row(
    "createpolicy", section="Data Movement and Conversion Instructions",
    forms=f"""
        fractional! L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged \
            {_SECOND} .b64 @80 : u64 =
        fractional! L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged \
            {_SECOND} .b64 @80 : u64 = fraction
        range! global? L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged \
            {_SECOND} .b64 @80 : u64 = @ i32 i32
        cvt! L2 .b64 @80 : u64 = u64
    """,
)  # fmt: skip
def policy(ins: Instruction) -> Op:
    """Build a cache hint, which changes no result: zero."""
    inputs = {"fractional": ("f32",), "range": ("u32", "u32"), "cvt": ("b64",)}[ins.modifiers[0]]
    given = () if len(ins.operands) == 1 else inputs

    def apply(*_: Lanes) -> Lanes:
        return cast(Lanes, np.int64(0))

    return Op(apply, given, ("b64",))
