"""What an instruction does to values, as a function of bit patterns (Python integers).

``meaning(ins)`` gives the types of its sources and destinations, and the function.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kernels.ptx.module import Instruction

WIDTH = {
    "pred": 1, "f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32, "f32": 32, "f64": 64,
    "s16x2": 32, "u16x2": 32, "tf32": 32,
} | {f"{sign}{bits}": bits for sign in "bsu" for bits in (8, 16, 32, 64)}  # fmt: skip


class NotModelled(Exception):
    """An instruction or a form that the reference does not have."""


class Meaning(NamedTuple):
    """Source types, destination types, and the function between their bit patterns."""

    sources: tuple[str, ...]
    results: tuple[str, ...]
    fn: Callable[..., Any]


Builder = Callable[[Instruction], Meaning]
BUILDERS: dict[str, Builder] = {}


def opcode(*names: str) -> Callable[[Builder], Builder]:
    """Register a builder."""

    def register(build: Builder) -> Builder:
        for name in names:
            BUILDERS[name] = build
        return build

    return register


def meaning(ins: Instruction) -> Meaning:
    """The meaning of an instruction that computes values.

    Raises:
        NotModelled: There is none.
    """
    from tests.oracles.interpreter import bits, conversion, floating, integers  # noqa: F401  (they fill the table)

    build = BUILDERS.get(ins.opcode)
    if build is None:
        raise NotModelled(ins.name)
    return build(ins)


def with_nan(
    kind: str, fn: Callable[..., int], nan: Callable[[int, str], int]
) -> Callable[..., int]:
    """A function with results of a type; for each NaN it gives ``nan`` of bits and type."""
    from tests.simulator.isa.floats import FORMATS

    part = kind.removesuffix("x2").replace("tf32", "f32")
    form = FORMATS.get(part)
    if form is None:
        return fn

    def one(x: int) -> int:
        return nan(x, part) if form.is_nan(x) else x

    every = halves(one) if kind.endswith("x2") else one
    return lambda *args: every(fn(*args))


def mask(bits: int) -> int:
    return (1 << bits) - 1


def number(x: int, kind: str) -> int:
    """The integer that some bits stand for."""
    bits = WIDTH[kind]
    return x - (1 << bits) if kind[0] == "s" and x >> (bits - 1) else x


def clamp(x: int, kind: str) -> int:
    """The nearest number of a type."""
    low, high = limits(kind)
    return min(max(x, low), high)


def limits(kind: str) -> tuple[int, int]:
    bits = WIDTH[kind]
    return (-(1 << (bits - 1)), mask(bits - 1)) if kind[0] == "s" else (0, mask(bits))


def type_of(ins: Instruction) -> str:
    """The last modifier, which is the type."""
    kind = ins.modifiers[-1] if ins.modifiers else ""
    if kind not in WIDTH:
        raise NotModelled(ins.name)
    return kind


def halves(fn: Callable[..., int]) -> Callable[..., int]:
    """A function of 16-bit patterns on both halves of a word."""

    def both(*words: int) -> int:
        return fn(*(w & 0xFFFF for w in words)) | fn(*(w >> 16 for w in words)) << 16

    return both
