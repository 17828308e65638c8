"""Which forms of instructions there are natively."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from kernels.ptx.module import Instruction

from ...isa import Op
from ..lines import Lines


class Operand(NamedTuple):
    """A source operand of one lane; ``type``: the PTX type that it is read as."""

    name: str
    type: str


Emit = Callable[[Lines, list[Operand]], list[str]]
"""Adds the lines of an instruction for one lane; returns a value for each of its results."""
Build = Callable[[Instruction, Op], Emit | None]
"""Returns what emits an instruction; ``None``: there is no such form natively."""

_BUILDERS: dict[str, list[Build]] = {}


def form(*opcodes: str) -> Callable[[Build], Build]:
    """Register what builds forms of some opcodes."""

    def register(build: Build) -> Build:
        for opcode in opcodes:
            _BUILDERS.setdefault(opcode, []).append(build)
        return build

    return register


def native_form(ins: Instruction, op: Op) -> Emit | None:
    """Return what emits an instruction; ``None``: there is no such form natively."""
    if op.warp:
        return None
    for build in _BUILDERS.get(ins.opcode, ()):
        emit = build(ins, op)
        if emit is not None:
            return emit
    return None


def only(ins: Instruction, *allowed: Collection[str]) -> bool:
    """Return whether all modifiers of an instruction are among some."""
    return all(any(word in some for some in allowed) for word in ins.modifiers)


SIGNED = ("s8", "s16", "s32", "s64")
UNSIGNED = ("u8", "u16", "u32", "u64")
PLAIN_BITS = ("b8", "b16", "b32", "b64")
INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
BITS = ("b16", "b32", "b64")
FLOATS = ("f32", "f64")
