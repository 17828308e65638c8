"""The instruction table: one row says all there is to know of an opcode.

A row is a builder: it gets the parsed instruction and returns an ``Op``, the
NumPy function with the types it takes and gives. Control flow, memory and
barriers are rows too, of a ``kind`` that the compiler knows how to place; their
meaning stands in ``machine`` and ``memory``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES


@dataclass(frozen=True)
class Op:
    """What one instruction does to values.

    Attributes:
        fn: Takes arrays (or NumPy scalars) of the ``inputs`` types that broadcast to
            each other, gives one array of the ``outputs`` type (a tuple if several).
            It never raises and is defined for every bit pattern.
        inputs: PTX type of each source operand.
        outputs: PTX type of each destination operand.
        count: Name of the counter it adds one to per thread (``fma_f32`` ...), if any.
        flops: Floating-point operations a thread.
        warp: ``fn`` looks across lanes: it gets the warp view as its first argument.
        approximate: PTX promises an error bound only, not the bits.
    """

    fn: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    count: str | None = None
    flops: int = 0
    warp: bool = False
    approximate: bool = False


class Unsupported(Exception):
    """Raised by a builder for a variant of its opcode that it does not have."""


Builder = Callable[[Instruction], Op]


@dataclass(frozen=True)
class Row:
    """One opcode.

    Attributes:
        opcode: Its name without modifiers.
        kind: ``value`` (has a builder), ``load``, ``store``, ``atomic``, ``branch``,
            ``call``, ``exit``, ``barrier``, ``warp-sync`` (has a builder and waits for
            the lanes its mask names), ``address``, ``nothing``, ``trap``, ``later`` (an
            instruction of PTX that the simulator does not execute).
        section: Where the PTX ISA defines it.
        forms: Its modifiers, types and operands, in the notation of ``grammar``.
        later: Forms of PTX that the simulator does not execute, with what they are about.
        build: The builder of a ``value`` or ``warp-sync`` row.
    """

    opcode: str
    kind: str
    section: str
    forms: tuple[str, ...] = ()
    later: tuple[tuple[str, str], ...] = ()
    build: Builder | None = None


TABLE: dict[str, Row] = {}
"""Every opcode of PTX that the simulator knows."""


def plain(
    *opcodes: str,
    section: str,
    kind: str,
    forms: str = "",
    later: str = "",
    build: Builder | None = None,
) -> None:
    """Register opcodes; ``forms`` and ``later`` are lines (``grammar``)."""
    ways = tuple(line.strip() for line in forms.splitlines() if line.strip())
    not_yet = [line.partition(" : ") for line in later.splitlines() if line.strip()]
    missing = tuple((form.strip(), about.strip()) for form, _, about in not_yet)
    for opcode in opcodes:
        TABLE[opcode] = Row(opcode, kind, section, ways, missing, build)


def row(
    *opcodes: str, section: str, forms: str, kind: str = "value", later: str = ""
) -> Callable[[Builder], Builder]:
    """Register a builder under its opcodes."""

    def register(build: Builder) -> Builder:
        plain(*opcodes, section=section, kind=kind, forms=forms, later=later, build=build)
        return build

    return register


def scalar_type(ins: Instruction, index: int = -1) -> str:
    """The instruction's type suffix (the last one unless said otherwise)."""
    types = ins.types
    if not types:
        raise Unsupported("no type")
    return types[index]


def width(kind: str) -> int:
    """Bits of a PTX type."""
    return int(DTYPES[kind].itemsize) * 8


def require(ins: Instruction, *allowed: str) -> str:
    """The type suffix if it is one of ``allowed``."""
    kind = scalar_type(ins)
    if kind not in allowed:
        raise Unsupported(f"type .{kind}")
    return kind


def signed(kind: str) -> str:
    """The signed type of the same width: where sign does not matter, views are saved."""
    return f"s{width(kind)}"


def unsigned(kind: str) -> str:
    """The unsigned type of the same width."""
    return f"u{width(kind)}"


INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
BITS = ("b16", "b32", "b64")
