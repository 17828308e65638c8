"""Integer arithmetic, against Python's integers."""

from __future__ import annotations

import pytest

from .lanes import Case, bits, check, covered, mask, number, to_signed

INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}


def wrap(x: int, kind: str) -> int:
    return x & mask(bits(kind))


def clamp32(x: int) -> int:
    return min(max(x, -(1 << 31)), (1 << 31) - 1) & mask(32)


def quotient(a: int, b: int) -> int:
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def divide(a: int, b: int, kind: str) -> int:
    x, y = number(a, kind), number(b, kind)
    return wrap(quotient(x, y) if y else -1, kind)


def remainder(a: int, b: int, kind: str) -> int:
    x, y = number(a, kind), number(b, kind)
    return wrap(x - quotient(x, y) * y if y else -1, kind)


def high(a: int, b: int, kind: str) -> int:
    return (number(a, kind) * number(b, kind)) >> bits(kind)


def basic(kind: str) -> list[Case]:
    """What every integer type has."""
    k, n = kind, number
    two, three = (k, k), (k, k, k)
    return [
        Case(f"add.{k}", (k,), two, lambda a, b: wrap(a + b, k)),
        Case(f"sub.{k}", (k,), two, lambda a, b: wrap(a - b, k)),
        Case(f"mul.lo.{k}", (k,), two, lambda a, b: wrap(a * b, k)),
        Case(f"mul.hi.{k}", (k,), two, lambda a, b: wrap(high(a, b, k), k)),
        Case(f"mad.lo.{k}", (k,), three, lambda a, b, c: wrap(a * b + c, k)),
        Case(f"mad.hi.{k}", (k,), three, lambda a, b, c: wrap(high(a, b, k) + c, k)),
        Case(f"sad.{k}", (k,), three, lambda a, b, c: wrap(c + abs(n(a, k) - n(b, k)), k)),
        Case(f"div.{k}", (k,), two, lambda a, b: divide(a, b, k)),
        Case(f"rem.{k}", (k,), two, lambda a, b: remainder(a, b, k)),
        Case(f"min.{k}", (k,), two, lambda a, b: wrap(min(n(a, k), n(b, k)), k)),
        Case(f"max.{k}", (k,), two, lambda a, b: wrap(max(n(a, k), n(b, k)), k)),
    ]


def wide(kind: str) -> list[Case]:
    w = WIDER[kind]
    return [
        Case(
            f"mul.wide.{kind}", (w,), (kind, kind),
            lambda a, b: wrap(number(a, kind) * number(b, kind), w),
        ),
        Case(
            f"mad.wide.{kind}", (w,), (kind, kind, w),
            lambda a, b, c: wrap(number(a, kind) * number(b, kind) + c, w),
        ),
    ]  # fmt: skip


def by_24(kind: str) -> list[Case]:
    def narrow(x: int) -> int:
        return to_signed(x, 24) if kind == "s32" else x & mask(24)

    def low(a: int, b: int) -> int:
        return narrow(a) * narrow(b)

    def upper(a: int, b: int) -> int:
        return low(a, b) >> 16

    made = []
    for half, product in (("lo", low), ("hi", upper)):
        made += [
            Case(
                f"mul24.{half}.{kind}", (kind,), (kind,) * 2,
                lambda a, b, p=product: p(a, b) & mask(32),
            ),
            Case(
                f"mad24.{half}.{kind}", (kind,), (kind,) * 3,
                lambda a, b, c, p=product: (p(a, b) + c) & mask(32),
            ),
        ]  # fmt: skip
    return made


def saturating() -> list[Case]:
    def s(x: int) -> int:
        return to_signed(x, 32)

    def mad24(a: int, b: int, c: int) -> int:
        product = (to_signed(a, 24) * to_signed(b, 24)) >> 16
        return clamp32(s(product) + s(c))

    t = ("s32",)
    return [
        Case("add.sat.s32", t, t * 2, lambda a, b: clamp32(s(a) + s(b))),
        Case("sub.sat.s32", t, t * 2, lambda a, b: clamp32(s(a) - s(b))),
        Case("mad.hi.sat.s32", t, t * 3, lambda a, b, c: clamp32((s(a) * s(b) >> 32) + s(c))),
        Case("mad24.hi.sat.s32", t, t * 3, mad24),
        Case("min.relu.s32", t, t * 2, lambda a, b: max(0, min(s(a), s(b)))),
        Case("max.relu.s32", t, t * 2, lambda a, b: max(0, s(a), s(b))),
    ]


def signs(kind: str) -> list[Case]:
    return [
        Case(f"abs.{kind}", (kind,), (kind,), lambda a: wrap(abs(number(a, kind)), kind)),
        Case(f"neg.{kind}", (kind,), (kind,), lambda a: wrap(-a, kind)),
    ]


def multiword(kind: str) -> list[Case]:
    """Two words at a time, so that the carry that is written is also read."""
    w = bits(kind)

    def pair(low: int, upper: int) -> int:
        return low | upper << w

    def split(x: int) -> tuple[int, int]:
        return x & mask(w), x >> w & mask(w)

    def add(a0: int, a1: int, b0: int, b1: int) -> tuple[int, int]:
        return split(pair(a0, a1) + pair(b0, b1))

    def subtract(a0: int, a1: int, b0: int, b1: int) -> tuple[int, int]:
        return split(pair(a0, a1) - pair(b0, b1))

    def product(a: int, b: int, c0: int, c1: int) -> tuple[int, int]:
        return split(number(a, kind) * number(b, kind) + pair(c0, c1))

    def carry_out(a: int, b: int, c: int) -> tuple[int, int]:
        # a + b, plus the carry of a + c: its own carry is the second result
        first = (a + c) >> w
        return split(a + b + first)

    def borrow_out(a: int, b: int, c: int) -> tuple[int, int]:
        # the borrow of a - c goes into a - b, whose own borrow is taken from 0
        first = int(a < c)
        return (a - b - first) & mask(w), mask(w) if a - b - first < 0 else 0

    def mad_chain(a: int, b: int, c: int) -> tuple[int, int]:
        # madc.lo.cc reads the carry of a + c; the carry of its own sum is the second result
        first = (a + c) >> w
        return split((a * b & mask(w)) + c + first)

    def mad_high(a: int, b: int, c: int) -> tuple[int, int]:
        upper = (number(a, kind) * number(b, kind)) >> w
        return split((upper & mask(w)) + c)

    four = (kind,) * 4
    two = (kind, kind)
    return [
        Case(
            f"add.cc.{kind}", two, four, add,
            f"add.cc.{kind} {{o}}, {{0}}, {{2}}; addc.{kind} {{q}}, {{1}}, {{3}};",
        ),
        Case(
            f"sub.cc.{kind}", two, four, subtract,
            f"sub.cc.{kind} {{o}}, {{0}}, {{2}}; subc.{kind} {{q}}, {{1}}, {{3}};",
        ),
        Case(
            f"mad.lo.cc.{kind}", two, four, product,
            f"mad.lo.cc.{kind} {{o}}, {{0}}, {{1}}, {{2}}; "
            f"madc.hi.{kind} {{q}}, {{0}}, {{1}}, {{3}};",
        ),
        Case(
            f"addc.cc.{kind}", two, (kind,) * 3, carry_out,
            f"add.cc.{kind} {{o}}, {{0}}, {{2}}; addc.cc.{kind} {{o}}, {{0}}, {{1}}; "
            f"addc.{kind} {{q}}, 0, 0;",
        ),
        Case(
            f"subc.cc.{kind}", two, (kind,) * 3, borrow_out,
            f"sub.cc.{kind} {{o}}, {{0}}, {{2}}; subc.cc.{kind} {{o}}, {{0}}, {{1}}; "
            f"subc.{kind} {{q}}, 0, 0;",
        ),
        Case(
            f"madc.lo.cc.{kind}", two, (kind,) * 3, mad_chain,
            f"add.cc.{kind} {{o}}, {{0}}, {{2}}; madc.lo.cc.{kind} {{o}}, {{0}}, {{1}}, {{2}}; "
            f"addc.{kind} {{q}}, 0, 0;",
        ),
        Case(
            f"mad.hi.cc.{kind}", two, (kind,) * 3, mad_high,
            f"mad.hi.cc.{kind} {{o}}, {{0}}, {{1}}, {{2}}; addc.{kind} {{q}}, 0, 0;",
        ),
    ]  # fmt: skip


def dots(a_kind: str, b_kind: str) -> list[Case]:
    def parts(x: int, size: int, count: int, kind: str) -> list[int]:
        fields = [x >> size * i & mask(size) for i in range(count)]
        return [to_signed(f, size) for f in fields] if kind == "s32" else fields

    def four(a: int, b: int, c: int) -> int:
        pairs = zip(parts(a, 8, 4, a_kind), parts(b, 8, 4, b_kind), strict=True)
        return (c + sum(x * y for x, y in pairs)) & mask(32)

    def two(first: int, a: int, b: int, c: int) -> int:
        chosen = parts(b, 8, 4, b_kind)[first : first + 2]
        pairs = zip(parts(a, 16, 2, a_kind), chosen, strict=True)
        return (c + sum(x * y for x, y in pairs)) & mask(32)

    out = "s32" if "s32" in (a_kind, b_kind) else "u32"
    types = (a_kind, b_kind, out)
    tail = f"{a_kind}.{b_kind}"
    return [
        Case(f"dp4a.{tail}", (out,), types, four),
        Case(f"dp2a.lo.{tail}", (out,), types, lambda a, b, c: two(0, a, b, c)),
        Case(f"dp2a.hi.{tail}", (out,), types, lambda a, b, c: two(2, a, b, c)),
    ]


CASES = [
    *(case for kind in INTEGERS for case in basic(kind)),
    *(case for kind in WIDER for case in wide(kind)),
    *(case for kind in ("s32", "u32") for case in by_24(kind)),
    *saturating(),
    *(case for kind in ("s16", "s32", "s64") for case in signs(kind)),
    *(case for kind in ("s32", "u32", "s64", "u64") for case in multiword(kind)),
    *(case for a in ("s32", "u32") for b in ("s32", "u32") for case in dots(a, b)),
]
COVERED = covered(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_integer(case: Case) -> None:
    check(case)
