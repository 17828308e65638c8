"""Quotients and remainders of integers (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES

from ..geometry import Lanes
from .table import INTEGERS, Function, Op, require, row, unsigned, width

SECTION = "Integer Arithmetic Instructions"


@row("div", section=SECTION, forms=".s16|u16|s32|u32|s64|u64 : t = t t")
def div(ins: Instruction) -> Op:
    """Quotient towards zero; by zero gives all ones, as NVIDIA's GPUs do."""
    kind = require(ins, *INTEGERS)
    return Op(_divide(kind), (kind, kind), (kind,))


@row("rem", section=SECTION, forms=".s16|u16|s32|u32|s64|u64 : t = t t")
def rem(ins: Instruction) -> Op:
    """``a - (a / b) * b``; by zero gives all ones (measured on an H200)."""
    kind = require(ins, *INTEGERS)
    ones = _ones(kind)

    def unsigned_rest(a: Lanes, b: Lanes) -> Lanes:
        if b.ndim == 0 and b:
            return np.remainder(a, b)
        return np.where(b == 0, ones, np.remainder(a, np.where(b == 0, np.ones_like(b), b)))

    def signed_rest(a: Lanes, b: Lanes) -> Lanes:
        safe = np.where((b == 0) | (b == -1), np.ones_like(b), b)
        return np.where(b == 0, ones, np.where(b == -1, np.zeros_like(a), np.fmod(a, safe)))

    return Op(unsigned_rest if kind.startswith("u") else signed_rest, (kind, kind), (kind,))


def _ones(kind: str) -> Lanes:
    """All bits one."""
    return (
        DTYPES[kind].type(-1) if kind.startswith("s") else DTYPES[kind].type(2 ** width(kind) - 1)
    )


def _divide(kind: str) -> Function:
    ones = _ones(kind)

    def unsigned_quotient(a: Lanes, b: Lanes) -> Lanes:
        if b.ndim == 0 and b:
            return np.floor_divide(a, b)
        return np.where(b == 0, ones, np.floor_divide(a, np.where(b == 0, np.ones_like(b), b)))

    def signed_quotient(a: Lanes, b: Lanes) -> Lanes:
        # Through magnitudes: NumPy's floor division rounds down and its MIN / -1 is not the GPU's.
        word = DTYPES[unsigned(kind)]
        ua, ub = np.abs(a).view(word), np.abs(b).view(word)
        quotient = np.floor_divide(ua, np.where(ub == 0, np.ones_like(ub), ub)).view(DTYPES[kind])
        return np.where(b == 0, ones, np.where((a < 0) != (b < 0), -quotient, quotient))

    return unsigned_quotient if kind.startswith("u") else signed_quotient
