"""Integer arithmetic, extended precision and dot products against Python integers."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulator.isa.cases import EDGES, WIDTH, Batch, Case, batches
from tests.simulator.isa.harness import check

INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
SIGNED = ("s16", "s32", "s64")
WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
MIN32, MAX32 = -(2**31), 2**31 - 1


def clamp32(x: int) -> int:
    return min(max(x, MIN32), MAX32)


def truncated(a: int, b: int) -> int:
    """The quotient towards zero; all ones where there is none."""
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder(a: int, b: int) -> int:
    return a - truncated(a, b) * b if b else -1


def low24(kind: str) -> Callable[[int], int]:
    def narrow(x: int) -> int:
        x &= 0xFFFFFF
        return x - (1 << 24) if kind == "s32" and x >> 23 else x

    return narrow


def basic() -> list[Case]:
    cases = []
    for t in INTEGERS:
        bits = WIDTH[t]
        two: dict[str, Callable[[int, int], int]] = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul.lo": lambda a, b: a * b,
            "mul.hi": lambda a, b, n=bits: a * b >> n,
            "div": truncated,
            "rem": remainder,
            "min": min,
            "max": max,
        }
        cases += [Case(f"{op}.{t}", (t,), (t, t), fn) for op, fn in two.items()]
        three: dict[str, Callable[[int, int, int], int]] = {
            "mad.lo": lambda a, b, c: a * b + c,
            "mad.hi": lambda a, b, c, n=bits: (a * b >> n) + c,
            "sad": lambda a, b, c: c + abs(a - b),
        }
        cases += [Case(f"{op}.{t}", (t,), (t, t, t), fn) for op, fn in three.items()]
        if t in WIDER:
            w = WIDER[t]
            cases.append(Case(f"mul.wide.{t}", (w,), (t, t), lambda a, b: a * b))
            cases.append(Case(f"mad.wide.{t}", (w,), (t, t, w), lambda a, b, c: a * b + c))
        if t in SIGNED:
            cases.append(Case(f"abs.{t}", (t,), (t,), abs))
            cases.append(Case(f"neg.{t}", (t,), (t,), lambda a: -a))
    s = "s32"
    cases += [
        Case("add.sat.s32", (s,), (s, s), lambda a, b: clamp32(a + b)),
        Case("sub.sat.s32", (s,), (s, s), lambda a, b: clamp32(a - b)),
        Case("mad.hi.sat.s32", (s,), (s, s, s), lambda a, b, c: clamp32((a * b >> 32) + c)),
        Case("min.relu.s32", (s,), (s, s), lambda a, b: max(min(a, b), 0)),
        Case("max.relu.s32", (s,), (s, s), lambda a, b: max(a, b, 0)),
        # A constant operand on either side keeps the other's shape.
        Case("div.u32", ("u32",), ("u32",), lambda a: a // 7, tail=", 7"),
        Case("div.s32", (s,), (s,), lambda a: truncated(a, -7), tail=", -7"),
        Case("rem.u64", ("u64",), ("u64",), lambda a: a % 10, tail=", 10"),
        Case("rem.s64", ("s64",), ("s64",), lambda a: remainder(a, 10), tail=", 10"),
        Case("div.u32", ("u32",), ("u32",), lambda a: -1, tail=", 0"),
    ]
    return cases


def packed() -> list[Case]:
    """Two 16-bit integers in a word."""

    def halves(t: str, fn: Callable[[int, int], int]) -> Callable[[int, int], int]:
        def half(x: int, i: int) -> int:
            x = x >> 16 * i & 0xFFFF
            return x - 65536 if t[0] == "s" and x >> 15 else x

        def model(a: int, b: int) -> int:
            low, high = (fn(half(a, i), half(b, i)) & 0xFFFF for i in (0, 1))
            return low | high << 16

        return model

    cases = []
    for t in ("s16x2", "u16x2"):
        for op, fn in (("add", lambda a, b: a + b), ("min", min), ("max", max)):
            cases.append(Case(f"{op}.{t}", ("b32",), ("b32", "b32"), halves(t, fn)))
    for op, pick in (("min", min), ("max", max)):
        model = halves("s16x2", lambda a, b, f=pick: max(f(a, b), 0))
        cases.append(Case(f"{op}.relu.s16x2", ("b32",), ("b32", "b32"), model))
    return cases


def products24() -> list[Case]:
    cases = []
    for t in ("s32", "u32"):
        n = low24(t)
        for half, shift in (("lo", 0), ("hi", 16)):
            mul = lambda a, b, n=n, s=shift: n(a) * n(b) >> s  # noqa: E731
            mad = lambda a, b, c, f=mul: f(a, b) + c  # noqa: E731
            cases.append(Case(f"mul24.{half}.{t}", (t,), (t, t), mul))
            cases.append(Case(f"mad24.{half}.{t}", (t,), (t, t, t), mad))
    n = low24("s32")
    sat = lambda a, b, c: clamp32((n(a) * n(b) >> 16) + c)  # noqa: E731
    cases.append(Case("mad24.hi.sat.s32", ("s32",), ("s32",) * 3, sat))
    return cases


def extended() -> list[Case]:
    """Chains of two words: the carry must travel."""
    cases = []
    for t in ("u32", "s32", "u64", "s64"):
        u, bits = f"u{WIDTH[t]}", WIDTH[t]
        ones = (1 << bits) - 1

        def split(x: int, n: int = bits, ones: int = ones) -> tuple[int, int, int]:
            return x & ones, x >> n & ones, x >> 2 * n & ones

        for op, sign in (("add", 1), ("sub", -1)):

            def chain(
                a: int, b: int, c: int, d: int,
                n: int = bits, sign: int = sign, split: Any = split,
            ) -> tuple[int, int, int]:  # fmt: skip
                total = (a | b << n) + sign * (c | d << n)
                low, high, over = split(total)
                return low, high, over & 1 if sign > 0 else over

            first = f"{op}.cc.{t} {{o0}}, {{v0}}, {{v2}};"
            code = f"{first} {op}c.cc.{t} {{o1}}, {{v1}}, {{v3}}; {op}c.{t} {{o2}}, 0, 0;"
            cases.append(Case(f"{op}.cc.{t} chain", (u, u, u), (u,) * 4, chain, code=code))
            code = f"{first} {op}c.{t} {{o1}}, {{v1}}, {{v3}};"
            ends = lambda *x, chain=chain: chain(*x)[:2]  # noqa: E731
            cases.append(Case(f"{op}c.{t} chain", (u, u), (u,) * 4, ends, code=code))

        def mixed(
            a: int, b: int, c: int, d: int, n: int = bits, ones: int = ones
        ) -> tuple[int, int, int]:
            kept, carried = int(a >= b), a + b >> n
            return (c + d + kept) & ones, (c - d - 1 + carried) & ones, (c * d + c + kept) & ones

        code = (
            f"sub.cc.{t} {{o0}}, {{v0}}, {{v1}}; addc.{t} {{o0}}, {{v2}}, {{v3}}; "
            f"add.cc.{t} {{o1}}, {{v0}}, {{v1}}; subc.{t} {{o1}}, {{v2}}, {{v3}}; "
            f"sub.cc.{t} {{o2}}, {{v0}}, {{v1}}; madc.lo.{t} {{o2}}, {{v2}}, {{v3}}, {{v2}};"
        )
        cases.append(Case(f"sub.cc.{t} addc", (u, u, u), (u,) * 4, mixed, code=code))

        def mad(
            a: int, b: int, c: int, d: int, n: int = bits, t: str = t, ones: int = ones
        ) -> tuple[int, int, int]:
            if t[0] == "s":
                a, b = (x - (1 << n) if x >> (n - 1) else x for x in (a, b))
            product = a * b
            low = (product & ones) + c
            high = (product >> n & ones) + d + (low >> n)
            return low & ones, high & ones, high >> n

        code = (
            f"mad.lo.cc.{t} {{o0}}, {{v0}}, {{v1}}, {{v2}}; "
            f"madc.hi.cc.{t} {{o1}}, {{v0}}, {{v1}}, {{v3}}; addc.{t} {{o2}}, 0, 0;"
        )
        cases.append(Case(f"mad.lo.cc.{t} chain", (u, u, u), (u,) * 4, mad, code=code))

        def mad_high(
            a: int, b: int, c: int, d: int, n: int = bits, t: str = t, ones: int = ones
        ) -> tuple[int, int]:
            if t[0] == "s":
                a, b = (x - (1 << n) if x >> (n - 1) else x for x in (a, b))
            high = (a * b >> n & ones) + c
            low = (a * b & ones) + d + (high >> n)
            return high & ones, low & ones

        code = (
            f"mad.hi.cc.{t} {{o0}}, {{v0}}, {{v1}}, {{v2}}; "
            f"madc.lo.{t} {{o1}}, {{v0}}, {{v1}}, {{v3}};"
        )
        cases.append(Case(f"mad.hi.cc.{t} chain", (u, u), (u,) * 4, mad_high, code=code))

        def low_after_carry(
            a: int, b: int, c: int, d: int, n: int = bits, ones: int = ones
        ) -> tuple[int, int, int]:
            low = (a * b & ones) + c + (a + d >> n)
            return a + d, low, low >> n

        code = (
            f"add.cc.{t} {{o0}}, {{v0}}, {{v3}}; madc.lo.cc.{t} {{o1}}, {{v0}}, {{v1}}, {{v2}}; "
            f"addc.{t} {{o2}}, 0, 0;"
        )
        label = f"madc.lo.cc.{t} chain"
        cases.append(Case(label, (u, u, u), (u,) * 4, low_after_carry, code=code))
        code = (
            f"mad.lo.cc.{t} {{o0}}, {{v0}}, {{v1}}, {{v2}}; "
            f"madc.hi.{t} {{o1}}, {{v0}}, {{v1}}, {{v3}};"
        )
        ends = lambda *x, mad=mad: mad(*x)[:2]  # noqa: E731
        cases.append(Case(f"madc.hi.{t} chain", (u, u), (u,) * 4, ends, code=code))
    return cases


def dots() -> list[Case]:
    def part(x: int, kind: str, at: int, bits: int) -> int:
        x = x >> at & ((1 << bits) - 1)
        return x - (1 << bits) if kind == "s32" and x >> (bits - 1) else x

    edges = (*EDGES["b32"], 0xFF80807F, 0x80808080, 0x7F7F7F7F, 0x80007FFF)
    cases = []
    for a in ("s32", "u32"):
        for b in ("s32", "u32"):
            out = "s32" if "s32" in (a, b) else "u32"

            def dp4a(x: int, y: int, c: int, a: str = a, b: str = b) -> int:
                return c + sum(part(x, a, i, 8) * part(y, b, i, 8) for i in (0, 8, 16, 24))

            e = ((0, edges), (1, edges))
            cases.append(Case(f"dp4a.{a}.{b}", (out,), (a, b, out), dp4a, edges=e))
            for half, start in (("lo", 0), ("hi", 16)):

                def dp2a(x: int, y: int, c: int, a: str = a, b: str = b, start: int = start) -> int:
                    pairs = ((0, start), (16, start + 8))
                    return c + sum(part(x, a, i, 16) * part(y, b, j, 8) for i, j in pairs)

                cases.append(Case(f"dp2a.{half}.{a}.{b}", (out,), (a, b, out), dp2a, edges=e))
    return cases


CASES = basic() + packed() + products24() + extended() + dots()


@pytest.mark.slow_cases("add.cc.u32 chain-to...", "add.cc.u64 chain-to...")
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_integer(batch: Batch) -> None:
    check(batch)
