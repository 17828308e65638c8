"""``cvt`` between all integer and floating types against exact integers."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.simulator.isa.cases import EDGES, WIDTH, Batch, Case, batches
from tests.simulator.isa.floats import FORMATS, Format
from tests.simulator.isa.harness import check

INTEGERS = [f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "su"]
FLOATS = ("f16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")


def limits(t: str) -> tuple[int, int]:
    bits = WIDTH[t]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t[0] == "s" else (0, (1 << bits) - 1)


def clamp(x: int, t: str) -> int:
    low, high = limits(t)
    return min(max(x, low), high)


def rounded(f: Format, x: int, mode: str) -> int:
    """A finite number as an integer."""
    unit = 1 << -f.lowest
    down, rest = divmod(f.value(x), unit)
    up = {"rn": 2 * rest + (down & 1) > unit, "rz": rest > 0 and down < 0, "rm": False,
          "rp": rest > 0}[mode]  # fmt: skip
    return down + up


def nan_between(f: Format, to: Format, x: int) -> int:
    """Double precision passes on sign and payload, made quiet; others give their own NaN."""
    if 64 not in (f.bits, to.bits):
        return to.nan
    sign = to.sign_bit if f.negative(x) else 0
    payload = (x & ((1 << (f.digits - 1)) - 1)) << 52 >> (f.digits - 1)
    payload >>= 53 - to.digits
    return sign | to.inf | payload | 1 << (to.digits - 2)


def integers() -> list[Case]:
    cases = []
    for to in INTEGERS:
        for t in INTEGERS:
            if to == t:
                continue
            cases.append(Case(f"cvt.{to}.{t}", (to,), (t,), lambda a: a))
            if limits(t)[0] < limits(to)[0] or limits(t)[1] > limits(to)[1]:  # or ptxas refuses
                cases.append(Case(f"cvt.sat.{to}.{t}", (to,), (t,), lambda a, to=to: clamp(a, to)))
    return cases


def to_integers() -> list[Case]:
    cases = []
    for t in FLOATS:
        for to in INTEGERS:
            for mode in MODES:
                for sat in ("", ".sat"):
                    model = whole(FORMATS[t], to, mode)
                    cases.append(Case(f"cvt.{mode}i{sat}.{to}.{t}", (to,), (t,), model, **near(t)))
    for to in ("s32", "u64"):
        flat = whole(FORMATS["f32"], to, "rp", True)
        cases.append(Case(f"cvt.rpi.ftz.{to}.f32", (to,), ("f32",), flat, **near("f32")))
    return cases


def whole(f: Format, to: str, mode: str, flush: bool = False) -> Callable[[int], int]:
    def model(x: int) -> int:
        if f.is_nan(x):  # as an H200 has it
            return 1 << (WIDTH[to] - 1) if 64 in (WIDTH[to], f.bits) else 0
        if f.is_inf(x):
            return limits(to)[not f.negative(x)]
        return clamp(rounded(f, f.flush(x) if flush else x, mode), to)

    return model


@functools.cache
def near(t: str) -> dict[str, Any]:
    """Operands of a type at which a conversion to another rounds, or nearly: a case's fields."""
    values = list(EDGES[t])
    if t in FLOATS:
        f, top = FORMATS[t], FORMATS[t].sign_bit
        if t == "f16":
            values += range(0, 1 << 16, 23)
        about = [f.encode(n, -2) for n in range(1, 20)]
        for bits in (7, 8, 15, 16, 31, 32, 63, 64):  # the ends of integers, and half-way to them
            about += [
                f.encode(n, -1, m) for n in ((2 << bits) - 1, 2 << bits) for m in ("rz", "rp")
            ]
        for g in (FORMATS[other] for other in FLOATS):
            for x in (g.inf - 2, g.inf - 1, g.one - 1, g.one, g.one + 1, 1, 2, 3,
                      (1 << g.digits - 1) - 1, 1 << g.digits - 1, 0):  # fmt: skip
                # A quarter, half, three quarters of the way to the next number of that format.
                low, high = g.value(x), g.value(min(x + 1, g.inf - 1))
                high = high if high > low else 2 * low - g.value(x - 1)
                about += [
                    f.encode((4 - n) * low + n * high, g.lowest - 2) for n in range(4) if high
                ]
        values += [x + step & top - 1 | sign for x in about for step in (-1, 0, 1)
                   for sign in (0, top)]  # fmt: skip
    else:
        for digits in (11, 24, 53):
            for high in range(digits, WIDTH[t] + 1):  # half-way between neighbours of 2**high
                half = 1 << high - digits
                odd = (1 << high) + 3 * half
                ties = ((1 << high) + half, odd, (1 << high))
                values += [sign * (tie + step) for tie in ties for step in (-1, 0, 1)
                           for sign in (1, -1)]  # fmt: skip
        values += [65519, 65520, 65535]
    edges = ((0, tuple(dict.fromkeys(v % (1 << WIDTH[t]) for v in values))),)
    return {"edges": edges, "most": 1 << 14, "drawn": 1000 if t in ("f32", "f64") else 300}


def from_integers() -> list[Case]:
    cases = []
    for t in INTEGERS:
        for to in FLOATS:
            f = FORMATS[to]
            for mode in MODES:
                number = lambda a, f=f, m=mode: f.encode(a, 0, m) if a else 0  # noqa: E731
                cases.append(Case(f"cvt.{mode}.{to}.{t}", (to,), (t,), number, **near(t)))
    one = lambda a: FORMATS["f32"].one if a > 0 else 0  # noqa: E731
    for t in ("s32", "u64"):
        cases.append(Case(f"cvt.rn.sat.f32.{t}", ("f32",), (t,), one, **near(t)))
    return cases


def between(
    f: Format, to: Format, mode: str = "rn", flush: bool = False, sat: bool = False
) -> Callable[[int], int]:
    """``mode`` rounds to the format, or to an integer if it ends in ``i``."""
    to = replace(to, ftz=flush and to.bits == 32)

    def model(x: int) -> int:
        if flush and f.bits == 32:
            x = f.flush(x)
        if flush and to.bits == 64 and f.is_nan(x):
            x = f.nan  # .ftz makes one NaN of all (H200)
        if f.is_nan(x):
            result = nan_between(f, to, x)
        elif mode.endswith("i") and not f.is_inf(x):
            result = f.encode(n, 0) if (n := rounded(f, x, mode[:2])) else x & f.sign_bit
        else:
            result = f.convert(x, to, mode[:2])
        return to.saturate(result) if sat else result

    return model


def floats() -> list[Case]:
    cases = []

    def add(t: str, to: str, mode: str, *tails: str) -> None:
        for tail in tails:
            name = ".".join(filter(None, ("cvt", mode, tail, to, t)))
            model = between(FORMATS[t], FORMATS[to], mode or "rn", "ftz" in tail, "sat" in tail)
            cases.append(Case(name, (to,), (t,), model, **near(t)))

    for mode in MODES:
        add("f64", "f32", mode, "", "sat", "ftz")
        add("f64", "f16", mode, "")
        add("f32", "f16", mode, "")
        add("f32", "f32", f"{mode}i", "", "ftz")
        add("f64", "f64", f"{mode}i", "")
        add("f16", "f16", f"{mode}i", "")
    add("f64", "f16", "rn", "sat")
    add("f32", "f16", "rn", "sat", "ftz")
    add("f16", "f32", "", "", "sat", "ftz")
    add("f16", "f64", "", "", "sat")
    add("f32", "f64", "", "", "sat", "ftz")
    add("f32", "f32", "", "sat", "ftz", "ftz.sat")
    add("f64", "f64", "", "sat")
    return cases


def packs() -> list[Case]:
    cases = []
    for t in ("s16", "u16", "s8", "u8", "s4", "u4", "s2", "u2"):
        bits = int(t[1:])
        low, high = (0, 2**bits - 1) if t[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

        def pack(
            a: int, b: int, c: int = 0, bits: int = bits, low: int = low, high: int = high
        ) -> int:
            x, y = (min(max(v, low), high) % 2**bits for v in (a, b))
            return c << 2 * bits | x << bits | y

        if bits == 16:
            cases.append(Case(f"cvt.pack.sat.{t}.s32", ("b32",), ("s32",) * 2, pack))
        else:
            ins = ("s32", "s32", "b32")
            cases.append(Case(f"cvt.pack.sat.{t}.s32.b32", ("b32",), ins, pack))
    return cases


CASES = integers() + to_integers() + from_integers() + floats() + packs()


@pytest.mark.slow_cases(
    "cvt.rn.f32.f64-to-cvt.sat.f64.f64", "cvt.rni.f16.f16-to-cvt.sat.f64.f16",
    "cvt.rni.s8.f16-to-cvt.rpi.sat.u64.f16", "cvt.rni.s8.f32-to-cvt.rpi.sat.u64.f32",
    "cvt.rni.s8.f64-to-cvt.rpi.sat.u64.f64", "cvt.rpi.ftz.s32.f32-to-cvt.ftz.sat.f32.f32",
)  # fmt: skip
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_convert(batch: Batch) -> None:
    check(batch)
