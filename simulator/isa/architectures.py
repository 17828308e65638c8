"""Architectures of GPUs: what their tensor cores do."""

import re
from typing import NamedTuple

MEASURED = (90,)
"""Those whose hardware this program's tensor cores, and its approximate functions, were held to."""


def number(target: str) -> int:
    """Return the number in the target of a PTX text; 0 without one."""
    found = re.search(r"sm_(\d+)", target)
    return int(found[1]) if found else 0


class SumRounding(NamedTuple):
    """Rounding of sums of products in tensor cores.

    Attributes:
        step: Number of products summed at once, together with the accumulator.
        fraction: Fraction bits relative to the largest exponent.
        fraction_bits: Fraction bits of an f32 result.
        own: Whether 8-bit floats have exponents of their own instead of those of f16.
    """

    step: int
    fraction: int
    fraction_bits: int = 23
    own: bool = False


def sums(arch: int, kind: str, warpgroup: bool = False) -> SumRounding:
    """Return the rounding of f16, bf16, tf32 or 8-bit products; ``warpgroup``: by ``wgmma``."""
    small = kind in ("e4m3", "e5m2")
    if arch < 75:
        return SumRounding(4, 23)
    if small and (warpgroup or arch == 89):
        return SumRounding(32, 13, 13, own=True)
    if arch < 90:
        return SumRounding(4 if kind == "tf32" else 8, 24)
    if small and arch > 90:
        return SumRounding(32, 25, own=True)
    return SumRounding(8 if kind == "tf32" else 16, 25)
