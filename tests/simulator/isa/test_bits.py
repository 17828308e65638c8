"""Logic, shifts and bit fields against Python integers."""

import itertools
import random
from collections.abc import Callable

import pytest

from tests.simulator.isa.cases import EDGES, WIDTH, Batch, Case, batches
from tests.simulator.isa.harness import check

AMOUNTS = (*range(68), 127, 128, 255, 256, 257, 287, 288, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
FEW = (0, 1, 2, 7, 8, 15, 16, 17, 30, 31, 32, 33, 62, 63, 64, 65, 255, 256, 257, 264, 0x80000000,
       0xFFFFFFFF)  # fmt: skip


def ones(n: int) -> int:
    return (1 << n) - 1


def logic() -> list[Case]:
    cases = []
    for t in ("b16", "b32", "b64", "pred"):
        cases += [
            Case(f"and.{t}", (t,), (t, t), lambda a, b: a & b),
            Case(f"or.{t}", (t,), (t, t), lambda a, b: a | b),
            Case(f"xor.{t}", (t,), (t, t), lambda a, b: a ^ b),
            Case(f"not.{t}", (t,), (t,), (lambda a: not a) if t == "pred" else (lambda a: ~a)),
        ]
        if t != "pred":
            cases.append(Case(f"cnot.{t}", (t,), (t,), lambda a: int(a == 0)))
    code = "and.pred {o0}, {v0}, !{v1}; "
    cases.append(Case("and.pred !", ("pred",), ("pred",) * 2, lambda a, b: a and not b, code=code))

    def table(lut: int) -> Callable[[int, int, int], int]:
        def model(a: int, b: int, c: int) -> int:
            bits = ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1 for i in range(32))
            return sum((lut >> k & 1) << i for i, k in enumerate(bits))

        return model

    b3 = ("b32",) * 3
    for lut in range(256):
        cases.append(Case("lop3.b32", ("b32",), b3, table(lut), tail=f", {lut}", most=60, drawn=20))
    for op, join in (("or", lambda x, q: x or q), ("and", lambda x, q: x and q)):

        def both(
            a: int, b: int, c: int, q: bool, join: Callable[..., bool] = join
        ) -> tuple[int, bool]:
            d = table(0xE8)(a, b, c)
            return d, join(d != 0, q)

        code = f"lop3.{op}.b32 {{o0}}|{{o1}}, {{v0}}, {{v1}}, {{v2}}, 0xe8, {{v3}};"
        ins = (*b3, "pred")
        cases.append(Case(f"lop3.{op}.b32", ("b32", "pred"), ins, both, code=code, most=300))
    return cases


def shifts() -> list[Case]:
    cases = []
    amounts = ((1, AMOUNTS),)
    for t in ("b16", "b32", "b64"):
        n = WIDTH[t]
        left = lambda a, s, n=n: a << s if s < n else 0  # noqa: E731
        cases.append(Case(f"shl.{t}", (t,), (t, "u32"), left, edges=amounts))
        for s in (0, 1, n - 1, n, n + 1, 1000):
            cases.append(
                Case(f"shl.{t}", (t,), (t,), lambda a, s=s, f=left: f(a, s), tail=f", {s}")
            )
    for t in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"):
        n = WIDTH[t]
        right = lambda a, s, n=n: a >> min(s, n)  # noqa: E731
        cases.append(Case(f"shr.{t}", (t,), (t, "u32"), right, edges=amounts))
        for s in (0, 1, n - 1, n, n + 1, 1000):
            cases.append(
                Case(f"shr.{t}", (t,), (t,), lambda a, s=s, f=right: f(a, s), tail=f", {s}")
            )
    for mode in ("clamp", "wrap"):

        def left_funnel(a: int, b: int, c: int, mode: str = mode) -> int:
            n = c & 31 if mode == "wrap" else min(c, 32)
            return (b << 32 | a) << n >> 32

        def right_funnel(a: int, b: int, c: int, mode: str = mode) -> int:
            return (b << 32 | a) >> (c & 31 if mode == "wrap" else min(c, 32))

        e = ((2, AMOUNTS),)
        ins = ("b32", "b32", "u32")
        cases.append(Case(f"shf.l.{mode}.b32", ("b32",), ins, left_funnel, edges=e))
        cases.append(Case(f"shf.r.{mode}.b32", ("b32",), ins, right_funnel, edges=e))
    return cases


def find(kind: str, shift: bool) -> Callable[[int], int]:
    def model(a: int) -> int:
        top = (a if a >= 0 else ~a).bit_length() - 1
        return WIDTH[kind] - 1 - top if shift and top >= 0 else top

    return model


def fields() -> list[Case]:
    cases = []
    for t in ("b32", "b64"):
        n = WIDTH[t]
        cases += [
            Case(f"popc.{t}", ("u32",), (t,), lambda a: a.bit_count()),
            Case(f"clz.{t}", ("u32",), (t,), lambda a, n=n: n - a.bit_length()),
            Case(f"brev.{t}", (t,), (t,), lambda a, n=n: int(f"{a:0{n}b}"[::-1], 2)),
        ]
    # In the 32-bit forms the low byte of position and length counts; the manual says so of
    # the 64-bit forms too, where an H200 takes all of the word.
    for t in ("u32", "s32", "u64", "s64"):
        n = WIDTH[t]
        cases.append(Case(f"bfind.{t}", ("u32",), (t,), find(t, False)))
        cases.append(Case(f"bfind.shiftamt.{t}", ("u32",), (t,), find(t, True)))

        def extract(a: int, b: int, c: int, n: int = n, t: str = t) -> int:
            """The manual's loop."""
            position, length = (x & 255 if n == 32 else min(x, 255) for x in (b, c))
            end = min(position + length, n)
            sign = a >> min(position + length - 1, n - 1) & 1 if t[0] == "s" and length else 0
            return sum(
                (a >> position + i if position + i < end else sign) % 2 << i for i in range(n)
            )

        e = ((1, FEW), (2, FEW))
        cases.append(Case(f"bfe.{t}", (t,), (t, "u32", "u32"), extract, edges=e))
    for t in ("b32", "b64"):
        n = WIDTH[t]

        def insert(a: int, b: int, c: int, d: int, n: int = n) -> int:
            position, length = (x & 255 if n == 32 else min(x, 255) for x in (c, d))
            for i in range(min(length, n - position)):
                b = b & ~(1 << position + i) | (a >> i & 1) << position + i
            return b

        e = ((2, FEW), (3, FEW))
        cases.append(Case(f"bfi.{t}", (t,), (t, t, "u32", "u32"), insert, edges=e))
    e = ((0, AMOUNTS), (1, AMOUNTS))
    cases += [
        Case("bmsk.clamp.b32", ("b32",), ("u32", "u32"),
             lambda a, b: ones(min(b, 32)) << min(a, 32), edges=e),
        Case("bmsk.wrap.b32", ("b32",), ("u32", "u32"),
             lambda a, b: ones(b & 31) << (a & 31), edges=e),
    ]  # fmt: skip
    for t in ("u32", "s32"):
        for mode in ("clamp", "wrap"):

            def extend(a: int, b: int, t: str = t, mode: str = mode) -> int:
                n = b & 31 if mode == "wrap" else min(b, 32)
                low = a & ones(n)
                return low - (1 << n) if t == "s32" and n and low >> (n - 1) else low

            cases.append(Case(f"szext.{mode}.{t}", (t,), (t, "u32"), extend, edges=((1, AMOUNTS),)))
    code = "and.b32 %r1, {v1}, 31; fns.b32 {o0}, {v0}, %r1, {v2};"
    more = (0xFFFFFFFF, 0x80000001, 0x0F0F0F0F, 0x00FF00F0)
    offsets = (0, 1, 2, 3, 5, 16, 31, 32, 33, *(2**32 - i for i in (1, 2, 3, 16, 32, 33, 2**31)))
    e = ((0, (*EDGES["b32"], *more)), (1, tuple(range(32))), (2, (*offsets, 2**31 + 1)))
    cases.append(Case("fns.b32", ("b32",), ("b32", "u32", "s32"), nth_set, code=code, edges=e))
    return cases


def nth_set(mask: int, base: int, offset: int) -> int:
    """The loop that the manual gives, and the H200's 0 where it needs ``|-2**31|``."""
    base &= 31
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    if offset == -(2**31):
        return 0
    position, count = base, abs(offset) - 1
    step = 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return 0xFFFFFFFF


def permutes() -> list[Case]:
    def byte(a: int, b: int, i: int) -> int:
        return (b << 32 | a) >> 8 * i & 255

    def generic(a: int, b: int, c: int) -> int:
        result = 0
        for i in range(4):
            selector = c >> 4 * i & 15
            value = byte(a, b, selector & 7)
            if selector & 8:
                value = 255 if value & 128 else 0
            result |= value << 8 * i
        return result

    # Rows by selector value, the most significant byte first as the manual prints them.
    tables = {
        "f4e": ("3210", "4321", "5432", "6543"),
        "b4e": ("5670", "6701", "7012", "0123"),
        "rc8": ("0000", "1111", "2222", "3333"),
        "ecl": ("3210", "3211", "3222", "3333"),
        "ecr": ("0000", "1110", "2210", "3210"),
        "rc16": ("1010", "3232", "1010", "3232"),
    }
    rng = random.Random(7)
    selectors = (0, 1, 2, 3, 4, 0x3210, 0x7654, 0x0123, 0xFEDC, 0xBA98, 0xFFFFFFFF, 0x89AB4567,
                 *(rng.getrandbits(32) for _ in range(40)))  # fmt: skip
    words = (*EDGES["b32"], 0x03020100, 0x07060504, 0x80FF7F00, 0x8182F3F4)
    e = ((0, words), (1, words), (2, selectors))
    cases = [Case("prmt.b32", ("b32",), ("b32",) * 3, generic, edges=e)]
    for mode, rows in tables.items():

        def fixed(a: int, b: int, c: int, rows: tuple[str, ...] = rows) -> int:
            return sum(byte(a, b, int(d)) << 8 * i for i, d in enumerate(reversed(rows[c & 3])))

        cases.append(Case(f"prmt.b32.{mode}", ("b32",), ("b32",) * 3, fixed, edges=e))
    return cases


def wide() -> list[Case]:
    """A register of 128 bits, made of parts and taken apart."""
    cases = []
    for into, source in itertools.product((2, 4), repeat=2):

        def model(*parts: int, into: int = into) -> tuple[int, ...]:
            bits = 128 // len(parts)
            whole = sum(part << bits * i for i, part in enumerate(parts))
            return tuple(whole >> 128 // into * i & (1 << 128 // into) - 1 for i in range(into))

        ins, out = (f"b{128 // source}",) * source, (f"b{128 // into}",) * into
        given, made = (
            ", ".join(f"{{{x}{i}}}" for i in range(n)) for x, n in (("v", source), ("o", into))
        )
        code = (
            f"{{{{ .reg .b128 %q, %s; mov.b128 %q, {{{{{given}}}}}; mov.b128 %s, %q; "
            f"mov.b128 {{{{{made}}}}}, %s; }}}}"
        )
        cases.append(Case(f"mov.b128 {source} {into}", out, ins, model, code=code, most=300))
    return cases


CASES = logic() + shifts() + fields() + permutes() + wide()


@pytest.mark.slow_cases(
    "lop3.b32, 0-to-lop3.b32, 63", "lop3.b32, 128-to-lop3.b32, 191",
    "lop3.b32, 192-to-lop3.b32, 255", "lop3.b32, 64-to-lop3.b32, 127",
)  # fmt: skip
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_bits(batch: Batch) -> None:
    check(batch)
