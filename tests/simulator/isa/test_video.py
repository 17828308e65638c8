"""Video instructions on Python integers: the manual's steps, and where an H200 takes others."""

import itertools
import random
from collections.abc import Callable

import pytest

from tests.simulator.isa.cases import EDGES, Batch, Case, batches
from tests.simulator.isa.harness import check

PRIMARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "absdiff": lambda a, b: abs(a - b),
    "min": min, "max": max, "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
SIZES = {"": 32, "h": 16, "b": 8}
TYPES = ("u32", "s32")


def limits(bits: int, kind: str) -> tuple[int, int]:
    return (0, (1 << bits) - 1) if kind[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def extended(x: int, place: int, bits: int, kind: str) -> int:
    """Some bits of a number, by the sign of a type."""
    x = x >> place * bits & (1 << bits) - 1
    return x - (1 << bits) if kind[0] == "s" and x >> bits - 1 else x


def piece(x: int, part: str, kind: str) -> int:
    return extended(x, int(part[1:] or 0), SIZES[part[:1]], kind)


def clamp(x: int, bits: int, kind: str) -> int:
    low, high = limits(bits, kind)
    return min(max(x, low), high)


def put(into: int, x: int, place: int, bits: int) -> int:
    room = (1 << bits) - 1 << place * bits
    return into & ~room | x << place * bits & room


EDGE = tuple(sorted({*EDGES["b32"][::4], 0x80FF7F01, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 40, 33}))
PARTS = ("", "h0", "h1", "b0", "b1", "b2", "b3")


def scalar(op: str, words: list[str], kinds: tuple[str, str, str], name: str,
           parts: tuple[str, str, str], second: str) -> Case:  # fmt: skip
    """An instruction of one value; ``parts``: of the result, and of its sources."""
    into, first, other = parts
    dtype, atype, btype = kinds
    bits = SIZES[into[:1]]

    def model(a: int, b: int, c: int = 0) -> int | None:
        x, y = piece(a, first, atype), piece(b, other, btype)
        if name in ("shl", "shr"):
            y = min(y, 32) if "clamp" in words else y % 32
            found = x << y if name == "shl" else x >> y
        else:
            found = int(PRIMARY[name](x, y))
        if "sat" in words and into:  # the manual has a clamp on either side in all three
            found = min(found % (1 << 64), limits(bits, dtype)[1])
        elif "sat" in words:
            found = max(found, 0) if dtype == "u32" else clamp(found, 32, dtype)
        if second:
            found = PRIMARY[second](found, extended(c, 0, 32, dtype))
        elif into:  # the manual has the lowest bits go there
            found = put(c, found >> (16 if into == "h1" else 0), int(into[1:]), bits)
        return found

    third = bool(second or into)
    label = ".".join([op, *words, *([second] if second else [])])
    dots = [f".{part}" if part else "" for part in parts]
    code = f"{label} {{o0}}{dots[0]}, {{v0}}{dots[1]}, {{v1}}{dots[2]}{', {v2}' * third};"
    ins = ("b32",) * (2 + third)
    return Case(f"{label} {parts}", ("b32",), ins, model, code=code,
                edges=tuple((i, EDGE) for i in range(len(ins))), most=400, drawn=100)  # fmt: skip


def scalars() -> list[Case]:
    """Each opcode with all its types, and parts and second operations of each kind."""
    rng, cases = random.Random(1), []
    ways = [("", ""), ("", "add"), ("", "min"), ("", "max"), ("h1", ""), ("b2", "")]
    for name in ("add", "sub", "absdiff", "min", "max", "shl", "shr"):
        shifts = name.startswith("sh")
        for kinds in itertools.product(TYPES, TYPES, TYPES[:1] if shifts else TYPES):
            for (into, second), sat in itertools.product(ways, ("", "sat")):
                words = [*kinds, *([sat] if sat else [])]
                words += [rng.choice(("clamp", "wrap"))] if shifts else []
                parts = (into, rng.choice(PARTS), rng.choice(PARTS))
                refused = sat and (name == "shl" or (shifts and into))
                if not refused and second not in ("min", "max"):
                    cases.append(scalar(f"v{name}", words, kinds, name, parts, second))
    for compared, atype, btype in itertools.product(COMPARED, TYPES, TYPES):
        into, second = rng.choice(ways)
        parts = (into, rng.choice(PARTS), rng.choice(PARTS))
        kinds = ("u32", atype, btype)
        if second in ("", "add"):
            cases.append(scalar("vset", [atype, btype, compared], kinds, compared, parts, second))
    return cases


def lanes(op: str, words: list[str], kinds: tuple[str, str, str], name: str,
          parts: tuple[str, str, str], adds: bool) -> Case:  # fmt: skip
    """An instruction of two or four values."""
    count = int(op[-1])
    bits, (dtype, atype, btype) = 32 // count, kinds
    usual = ("3210", "3210", "7654") if count == 4 else ("10", "10", "32")
    mask, first, other = (part[1:] or default for part, default in zip(parts, usual, strict=True))

    def model(a: int, b: int, c: int) -> int:
        found, both = c, a | b << 32
        for lane in range(count):
            if str(lane) in mask:
                x = extended(both, int(first[::-1][lane]), bits, atype)
                value = int(PRIMARY[name](x, extended(both, int(other[::-1][lane]), bits, btype)))
                value = clamp(value, bits, dtype) if "sat" in words else value
                found = found + value if adds else put(found, value, lane, bits)
        return found

    label = ".".join([op, *words, *(["add"] if adds else [])])
    dots = [f".{part}" if part else "" for part in parts]
    code = f"{label} {{o0}}{dots[0]}, {{v0}}{dots[1]}, {{v1}}{dots[2]}, {{v2}};"
    return Case(f"{label} {parts}", ("b32",), ("b32",) * 3, model, code=code,
                edges=tuple((i, EDGE) for i in range(3)), most=400, drawn=100)  # fmt: skip


def several() -> list[Case]:
    """Each opcode with all its types, and lanes picked at random."""
    rng, cases = random.Random(2), []

    def parts(count: int) -> tuple[str, str, str]:
        letter, last = ("b", 7) if count == 4 else ("h", 3)
        some = [i for i in range(count)[::-1] if rng.random() < 0.6] or [1]
        picks = ("".join(str(rng.randint(0, last)) for _ in range(count)) for _ in range(2))
        mask = letter + "".join(map(str, some))
        return tuple(rng.choice(("", x)) for x in (mask, *(letter + p for p in picks)))  # type: ignore[return-value]

    for count in (2, 4):
        for name in ("add", "sub", "avrg", "absdiff", "min", "max"):
            for kinds, way in itertools.product(
                itertools.product(TYPES, repeat=3), ("", "sat", "add")
            ):
                words = [*kinds, *(["sat"] if way == "sat" else [])]
                op = f"v{name}{count}"
                cases.append(lanes(op, words, kinds, name, parts(count), way == "add"))
        for compared, atype, btype in itertools.product(COMPARED, TYPES, TYPES):
            kinds, adds = ("u32", atype, btype), rng.random() < 0.5
            words = [atype, btype, compared]
            cases.append(lanes(f"vset{count}", words, kinds, compared, parts(count), adds))
    return cases


def products() -> list[Case]:
    """``vmad`` with all its signs and shifts."""
    rng, cases = random.Random(3), []
    signs = ("", "a", "b", "c", "ab", "abc")
    for kinds in itertools.product(TYPES, repeat=3):
        for minus, shift, sat in itertools.product(
            (*signs, "po"), ("", "shr7", "shr15"), ("", "sat")
        ):
            first, other = (rng.choice(PARTS) if rng.random() < 0.5 else "" for _ in range(2))

            def model(
                a: int, b: int, c: int, kinds: tuple[str, ...] = kinds, minus: str = minus,
                shift: str = shift, sat: str = sat, first: str = first, other: str = other,
            ) -> int:  # fmt: skip
                turned = minus in ("a", "b")
                signed = "s32" in kinds[1:] or turned or "c" in minus
                # The manual has whole operands, too, by their types.
                product = piece(a, first, kinds[1] if first else "s32")
                product *= piece(b, other, kinds[2] if other else "s32")
                third = extended(c, 0, 32, "s32")
                found = (-product if turned else product) + (-third if "c" in minus else third)
                found += minus == "po"
                if shift and not signed:
                    found %= 1 << 64
                found >>= int(shift[3:] or 0)
                return clamp(found, 32, "s32" if signed else "u32") if sat else found

            words = ".".join(w for w in (*kinds, minus if minus == "po" else "", sat, shift) if w)
            a, b, c = ("-" * (x in minus) for x in "abc") if minus != "po" else ("", "", "")
            dots = [f".{part}" if part else "" for part in (first, other)]
            code = f"vmad.{words} {{o0}}, {a}{{v0}}{dots[0]}, {b}{{v1}}{dots[1]}, {c}{{v2}};"
            edges = tuple((i, EDGE) for i in range(3))
            cases.append(Case(f"vmad.{words} {minus}", ("b32",), ("b32",) * 3, model, code=code,
                              edges=edges, most=400, drawn=100))  # fmt: skip
    return cases


CASES = scalars() + several() + products()


@pytest.mark.slow_but("vmax.u32.u32.u32 ('', 'b3'...")
@pytest.mark.parametrize("batch", batches(CASES), ids=str)
def test_video(batch: Batch) -> None:
    check(batch)
