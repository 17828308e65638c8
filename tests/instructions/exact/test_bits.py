"""Logic, shifts and bit fields, bit by bit."""

from __future__ import annotations

import random

import pytest

from .lanes import Case, bits, check, covered, edges, mask, number, to_signed

AMOUNTS = [*range(68), 127, 128, 255, 256, 257, 287, 288, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
FEW = [0, 1, 2, 7, 8, 15, 16, 30, 31, 32, 33, 62, 63, 64, 65, 255, 256, 264, 0x80000000, 0xFFFFFFFF]


def logic(kind: str) -> list[Case]:
    w = 1 if kind == "pred" else bits(kind)
    made = [
        Case(f"and.{kind}", (kind,), (kind, kind), lambda a, b: a & b),
        Case(f"or.{kind}", (kind,), (kind, kind), lambda a, b: a | b),
        Case(f"xor.{kind}", (kind,), (kind, kind), lambda a, b: a ^ b),
        Case(f"not.{kind}", (kind,), (kind,), lambda a: a ^ mask(w)),
    ]
    if kind != "pred":
        made.append(Case(f"cnot.{kind}", (kind,), (kind,), lambda a: int(a == 0)))
    return made


def lop3(table: int) -> Case:
    def model(a: int, b: int, c: int) -> int:
        return sum(
            (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
            for i in range(32)
        )

    text = f"lop3.b32 {{o}}, {{0}}, {{1}}, {{2}}, {table};"
    return Case(
        "lop3.b32", ("b32",), ("b32",) * 3, model, text, most=20, random=20, tail=f" {table:#x}"
    )


def shifts(kind: str) -> list[Case]:
    w = bits(kind)
    made = []
    if kind[0] == "b":
        made.append(
            Case(
                f"shl.{kind}", (kind,), (kind, "u32"),
                lambda a, n: a << min(n, w) & mask(w), values=(None, AMOUNTS),
            )
        )  # fmt: skip
        made += [
            Case(
                f"shl.{kind}", (kind,), (kind,), lambda a, n=n: a << min(n, w) & mask(w),
                f"shl.{kind} {{o}}, {{0}}, {n};", random=20, tail=f" by {n}",
            )
            for n in (0, 1, w - 1, w, w + 1, 1000)
        ]  # fmt: skip
    made.append(
        Case(
            f"shr.{kind}", (kind,), (kind, "u32"),
            lambda a, n: number(a, kind) >> min(n, w) & mask(w), values=(None, AMOUNTS),
        )
    )  # fmt: skip
    made += [
        Case(
            f"shr.{kind}", (kind,), (kind,), lambda a, n=n: number(a, kind) >> min(n, w) & mask(w),
            f"shr.{kind} {{o}}, {{0}}, {n};", random=20, tail=f" by {n}",
        )
        for n in (0, 1, w - 1, w, w + 1, 1000)
    ]  # fmt: skip
    return made


def funnel(side: str, mode: str) -> Case:
    def model(a: int, b: int, c: int) -> int:
        n = c & 31 if mode == "wrap" else min(c, 32)
        pair = b << 32 | a
        return (pair << n >> 32 if side == "l" else pair >> n) & mask(32)

    types = ("b32", "b32", "u32")
    return Case(f"shf.{side}.{mode}.b32", ("b32",), types, model, values=(None, None, AMOUNTS))


def counts(kind: str) -> list[Case]:
    w = bits(kind)
    return [
        Case(f"popc.{kind}", ("u32",), (kind,), lambda a: bin(a).count("1")),
        Case(f"clz.{kind}", ("u32",), (kind,), lambda a: w - a.bit_length()),
        Case(f"brev.{kind}", (kind,), (kind,), lambda a: int(f"{a:0{w}b}"[::-1], 2)),
    ]


def find(kind: str, shift: bool) -> Case:
    w = bits(kind)

    def model(a: int) -> int:
        x = number(a, kind)
        at = (~x if x < 0 else x).bit_length() - 1
        return at & mask(32) if at < 0 or not shift else w - 1 - at

    name = f"bfind{'.shiftamt' if shift else ''}.{kind}"
    return Case(name, ("u32",), (kind,), model)


def field(x: int, w: int) -> int:
    """Positions and lengths: a byte in 32-bit forms, all of the word in 64-bit ones (H200)."""
    return x & 255 if w == 32 else min(x, 255)


def extract(kind: str) -> Case:
    w = bits(kind)

    def model(a: int, b: int, c: int) -> int:
        # PTX ISA's own loop
        position, length = field(b, w), field(c, w)
        top = w - 1
        if kind[0] == "u" or length == 0:
            sign = 0
        else:
            sign = a >> min(position + length - 1, top) & 1
        result = 0
        for i in range(w):
            inside = i < length and position + i <= top
            result |= (a >> (position + i) & 1 if inside else sign) << i
        return result

    return Case(f"bfe.{kind}", (kind,), (kind, "u32", "u32"), model, values=(None, FEW, FEW))


def insert(kind: str) -> Case:
    w = bits(kind)

    def model(a: int, b: int, c: int, d: int) -> int:
        position, length = field(c, w), field(d, w)
        for i in range(length):
            if position + i < w and i < w:
                at = position + i
                b = b & ~(1 << at) | (a >> i & 1) << at
        return b

    types = (kind, kind, "u32", "u32")
    return Case(f"bfi.{kind}", (kind,), types, model, values=(None, None, FEW, FEW))


def ones(mode: str) -> Case:
    def model(a: int, b: int) -> int:
        if mode == "wrap":
            a, b = a & 31, b & 31
        return sum(1 << i for i in range(32) if a <= i < a + b)

    return Case(f"bmsk.{mode}.b32", ("b32",), ("u32", "u32"), model, values=(AMOUNTS, FEW))


def extended(mode: str, kind: str) -> Case:
    def model(a: int, b: int) -> int:
        n = b & 31 if mode == "wrap" else min(b, 32)
        kept = a & mask(n)
        if kind == "s32" and n and kept >> (n - 1):
            kept |= mask(32) ^ mask(n)
        return kept

    return Case(f"szext.{mode}.{kind}", (kind,), (kind, "u32"), model, values=(None, AMOUNTS))


def nth(mask_bits: int, base: int, offset: int) -> int:
    offset = to_signed(offset, 32)
    if offset == 0:
        return base if mask_bits >> base & 1 else mask(32)
    if offset == -(2**31):  # it has no absolute value: 0 on an H200
        return 0
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    hits = [i for i in places if mask_bits >> i & 1]
    return hits[abs(offset) - 1] if abs(offset) <= len(hits) else mask(32)


def permuted(mode: str) -> Case:
    # The table of PTX ISA, "prmt": selector value to source bytes, most significant first.
    tables = {
        "f4e": ("3210", "4321", "5432", "6543"),
        "b4e": ("5670", "6701", "7012", "0123"),
        "rc8": ("0000", "1111", "2222", "3333"),
        "ecl": ("3210", "3211", "3222", "3333"),
        "ecr": ("0000", "1110", "2210", "3210"),
        "rc16": ("1010", "3232", "1010", "3232"),
    }

    def model(a: int, b: int, c: int) -> int:
        source = (b << 32 | a).to_bytes(8, "little")
        if mode:
            chosen = [int(digit) for digit in reversed(tables[mode][c & 3])]
        else:
            chosen = [c >> 4 * i & 15 for i in range(4)]
        picked = [source[i & 7] if i < 8 else 255 * (source[i & 7] >> 7) for i in chosen]
        return int.from_bytes(bytes(picked), "little")

    rng = random.Random(7)
    selectors = [0, 1, 2, 3, 4, 0x3210, 0x7654, 0xFEDC, *(rng.getrandbits(32) for _ in range(40))]
    name = f"prmt.b32{'.' + mode if mode else ''}"
    return Case(name, ("b32",), ("b32",) * 3, model, values=(None, None, selectors))


CASES = [
    *(case for kind in ("pred", "b16", "b32", "b64") for case in logic(kind)),
    *map(lop3, range(256)),
    *(
        case
        for kind in ("b16", "b32", "b64", "s16", "u16", "s32", "u32", "s64", "u64")
        for case in shifts(kind)
    ),
    *(funnel(side, mode) for side in "lr" for mode in ("clamp", "wrap")),
    *(case for kind in ("b32", "b64") for case in counts(kind)),
    *(find(kind, shift) for kind in ("s32", "u32", "s64", "u64") for shift in (False, True)),
    *map(extract, ("s32", "u32", "s64", "u64")),
    *map(insert, ("b32", "b64")),
    *map(ones, ("clamp", "wrap")),
    *(extended(mode, kind) for mode in ("clamp", "wrap") for kind in ("s32", "u32")),
    Case(
        "fns.b32", ("b32",), ("b32", "b32", "s32"), nth,
        values=(
            [*edges("b32"), 0xFFFFFFFF, 0x80000001, 0x0F0F0F0F],
            list(range(32)),
            [0, 1, 2, 3, 16, 31, 32, 33, *(-i & mask(32) for i in (1, 2, 3, 16, 32, 33, 2**31))],
        ),
    ),
    *map(permuted, ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
]  # fmt: skip
COVERED = covered(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_bits(case: Case) -> None:
    check(case)
