"""V-bit propagation: which result bits depend on undefined operand bits.

A result bit is undefined if it changes with the undefined operand bits, which is tested by
evaluation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from kernels.ptx.module import Instruction
from kernels.ptx.types import DTYPES, TYPE_SIZES

from ..core.geometry import Lanes
from .table import Op, Results

_FILLS = tuple(
    map(np.uint64, (0, ~0 & 2**64 - 1, 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA,
                    0x9E37_79B9_7F4A_7C15, 0x8000_0000_8000_8080))
)  # fmt: skip
"""What undefined bits may hold, an odd number of them and signs alone as well: none of two
operands' the same at a time."""
_EXTREME_PATTERNS = tuple(
    np.uint64(flip ^ ((1 << n) - 1)) for n in range(1, 64) for flip in (0, 2**64 - 1)
)
"""Runs of low bits and their complements, which cover any result of counting or finding bits."""


def bits_of(kind: str) -> str:
    """Return the type of the V bits of a value of a PTX type."""
    return kind if kind == "pred" or kind[0] in "su" else f"b{TYPE_SIZES[kind] * 8}"


def propagate_v_bits(op: Op) -> Callable[..., Results]:
    """Return a function from operands and their V bits to the V bits of the results."""
    dtypes = [DTYPES[bits_of(kind)] for kind in op.outputs]

    def results(warp: tuple[object, ...], operands: tuple[Lanes, ...]) -> list[Lanes]:
        found = op.fn(*warp, *operands)
        several = found if isinstance(found, tuple) else (found,)
        return [value.view(dtype) for value, dtype in zip(several, dtypes, strict=True)]

    def undefined(*given: Lanes) -> Results:
        warp, given = given[: op.warp], given[op.warp :]
        operands, shadows = given[: len(given) // 2], given[len(given) // 2 :]
        found: list[Lanes] = [dtype.type(0) for dtype in dtypes]
        if any(shadow.any() for shadow in shadows):
            usual = results(warp, operands)
            tried = _others(operands, shadows)
            if op.positions:
                (value,), (shadow,) = operands, shadows
                extremes = (
                    (_filled(value, shadow, n.astype(shadow.dtype)),) for n in _EXTREME_PATTERNS
                )
                tried = itertools.chain(tried, extremes)
            for other in tried:
                changed = zip(found, results(warp, other), usual, strict=True)
                found = [bits | (new ^ old) for bits, new, old in changed]
        return tuple(found) if len(found) > 1 else found[0]

    return undefined


def _others(operands: tuple[Lanes, ...], shadows: tuple[Lanes, ...]) -> Iterator[tuple[Lanes, ...]]:
    """Yield alternative operands that differ in undefined bits, a finite selection."""
    for first in range(len(_FILLS)):
        fills = (_FILLS[(first + i) % len(_FILLS)] for i in range(len(operands)))
        yield tuple(
            _filled(value, shadow, fill.astype(shadow.dtype))
            for value, shadow, fill in zip(operands, shadows, fills, strict=True)
        )
    for end in range(2):  # beyond which a threshold may lie
        yield tuple(
            _filled(value, shadow, _type_limits(value.dtype)[end].view(shadow.dtype))
            for value, shadow in zip(operands, shadows, strict=True)
        )
    for more in (0, 1, -1):  # what a comparison asks for, if the defined bits allow it; and beside
        equal = list(operands)
        for i, shadow in enumerate(shadows):
            other = equal[i == 0] if len(equal) > 1 else equal[0]
            if other.dtype.itemsize == shadow.dtype.itemsize:
                fill = other.view(shadow.dtype)
                fill = fill if shadow.dtype == np.bool_ else fill + np.int8(more).astype(fill.dtype)
                equal[i] = _filled(equal[i], shadow, fill)
        yield tuple(equal)


@functools.cache
def _type_limits(dtype: np.dtype[np.generic]) -> tuple[np.generic, np.generic]:
    """Return the largest and the least value of a type."""
    if dtype == np.bool_:
        return np.bool_(True), np.bool_(False)
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)  # type: ignore[type-var]
    return dtype.type(info.max), dtype.type(info.min)


def _filled(value: Lanes, shadow: Lanes, fill: Lanes) -> Lanes:
    """Return a value with other content in its undefined bits."""
    bits: Lanes = value.view(shadow.dtype) & ~shadow | fill & shadow
    return bits.view(value.dtype)


_SHOWS = {"mov", "add", "sub", "xor", "not", "neg", "shfl"}
"""What gives another integer for another operand, whatever others are."""


def hides(ins: Instruction) -> bool:
    """Whether one operand may say that another does not count, as a mask does, or NaN in a sum."""
    return ins.opcode not in _SHOWS or ins.has("sat") or any("f" in kind for kind in ins.types)
