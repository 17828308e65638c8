"""``min`` and ``max`` of magnitudes, and double precision's coarse approximations."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import pytest

from .floats import FORMATS
from .harness import Case, check_edges

F32, F64 = FORMATS["f32"], FORMATS["f64"]
COARSE = Fraction(1, 1 << 19)
"""Of 20 fraction bits the last may be off; the manual states no bound."""


def extremes() -> list[Case]:
    cases = []
    for name in ("min", "max"):
        for nan in ("", ".NaN"):
            for ftz in ("", ".ftz"):

                def signed(
                    a: int, b: int, least: bool = name == "min", nan: str = nan, ftz: str = ftz
                ) -> int:
                    if ftz:
                        a, b = F32.flush(a), F32.flush(b)
                    result = F32.extreme(least, F32.magnitude(a), F32.magnitude(b), bool(nan))
                    return result if F32.is_nan(result) else result | (a ^ b) & F32.sign_bit

                label = f"{name}{ftz}{nan}.xorsign.abs.f32"
                cases.append(Case(label, ("f32",), ("f32", "f32"), signed))
    return cases


def reciprocal(x: int) -> Fraction:
    return 1 / Fraction(F64.value(x), 1 << -F64.lowest)


def reciprocal_root(x: int) -> Fraction:
    """To some 200 bits."""
    inverse = 1 / Fraction(F64.value(x), 1 << -F64.lowest)
    scale = 1 << 2600
    return Fraction(isqrt(inverse.numerator * scale // inverse.denominator), 1 << 1300)


def special(x: int, root: bool) -> int | None:
    """The result where it is not a number's approximation."""
    x = F64.flush(x)
    if F64.is_nan(x) or (root and F64.negative(x) and F64.magnitude(x)):
        return 0x7FFFFFFF00000000
    sign = x & F64.sign_bit
    if F64.is_inf(x):
        return sign
    return None if F64.magnitude(x) else sign | F64.inf


def coarse(name: str, exact: Callable[[int], Fraction], root: bool) -> Case:
    def close(row: tuple[int, ...], got: int, _: int) -> bool:
        x = row[0] & ~0xFFFFFFFF  # the lower half is not looked at (H200)
        wanted = special(x, root)
        if wanted is not None:
            return got == wanted
        value = abs(exact(x))
        if value < Fraction(1, 1 << 1022):
            return F64.magnitude(got) == 0
        found = Fraction(abs(F64.value(got)), 1 << -F64.lowest)
        return got & 0xFFFFFFFF == 0 and abs(found / value - 1) <= COARSE

    # The model's 1 is no result: the judge above sees every lane.
    return Case(f"{name}.approx.ftz.f64", ("f64",), ("f64",), lambda a: 1, close=close)


CASES = [*extremes(), coarse("rcp", reciprocal, False), coarse("rsqrt", reciprocal_root, True)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_edges(case: Case) -> None:
    check_edges(case)
