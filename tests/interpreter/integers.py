"""Integer arithmetic, logic, shifts and bit fields."""

from __future__ import annotations

from typing import Any

from kernels.ptx.module import Imm, Instruction

from . import floating
from .values import (
    WIDTH,
    Meaning,
    NotModelled,
    clamp,
    halves,
    mask,
    number,
    opcode,
    type_of,
)  # fmt: skip

FLOATS = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")


def plain(kind: str, count: int, fn: Any, result: str = "") -> Meaning:
    """A function of numbers, wrapped to the result's width."""
    out = result or kind
    bits = mask(WIDTH[out])
    return Meaning((kind,) * count, (out,), lambda *a: fn(*(number(x, kind) for x in a)) & bits)


@opcode("add", "sub", "min", "max", "abs", "neg", "mul", "div", "fma", "mad")
def arithmetic(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    if kind in FLOATS:
        return floating.arithmetic(ins)
    name = ins.opcode
    if ins.has("cc"):
        return carried(ins)
    if kind in ("s16x2", "u16x2"):
        one = kind[:3]

        def half(a: int, b: int) -> int:
            x, y = number(a, one), number(b, one)
            r = {"add": x + y, "min": min(x, y), "max": max(x, y)}[name]
            return (max(r, 0) if ins.has("relu") else r) & 0xFFFF

        return Meaning(("b32", "b32"), ("b32",), halves(half))
    if name == "add" or name == "sub":
        sign = 1 if name == "add" else -1
        if ins.has("sat"):
            return plain(kind, 2, lambda a, b: clamp(a + sign * b, kind))
        return plain(kind, 2, lambda a, b: a + sign * b)
    if name in ("min", "max"):
        pick = min if name == "min" else max
        if ins.has("relu"):
            return plain(kind, 2, lambda a, b: max(pick(a, b), 0))
        return plain(kind, 2, pick)
    if name == "abs":
        return plain(kind, 1, abs)
    if name == "neg":
        return plain(kind, 1, lambda a: -a)
    if name == "div":
        return plain(kind, 2, lambda a, b: truncated(a, b) if b else -1)
    bits = WIDTH[kind]
    result = f"{kind[0]}{2 * bits}" if ins.has("wide") else kind
    down = bits if ins.has("hi") else 0
    if name == "mul":
        return plain(kind, 2, lambda a, b: a * b >> down, result)
    if name != "mad":
        raise NotModelled(ins.name)

    def mad(a: int, b: int, c: int) -> int:
        high = number((number(a, kind) * number(b, kind) >> down) & mask(WIDTH[result]), result)
        total = high + number(c, result)
        return (clamp(total, kind) if ins.has("sat") else total) & mask(WIDTH[result])

    return Meaning((kind, kind, result), (result,), mad)


def truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


@opcode("rem")
def rem(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    return plain(kind, 2, lambda a, b: a - truncated(a, b) * b if b else -1)


@opcode("sad")
def sad(ins: Instruction) -> Meaning:
    return plain(type_of(ins), 3, lambda a, b, c: c + abs(a - b))


@opcode("mul24", "mad24")
def mul24(ins: Instruction) -> Meaning:
    kind = type_of(ins)

    def product(a: int, b: int) -> int:
        x, y = a & mask(24), b & mask(24)
        if kind == "s32":
            x, y = x - (x >> 23 << 24), y - (y >> 23 << 24)
        p = x * y
        return number((p >> 16 if ins.has("hi") else p) & mask(32), kind)

    if ins.opcode == "mul24":
        return plain(kind, 2, product)
    if ins.has("sat"):
        return plain(kind, 3, lambda a, b, c: clamp(product(a, b) + c, kind))
    return plain(kind, 3, lambda a, b, c: product(a, b) + c)


@opcode("addc", "subc", "madc")
def carried(ins: Instruction) -> Meaning:
    """The carry is the last source (of ``addc`` ...) and the second result (of ``.cc``)."""
    kind = type_of(ins)
    bits = WIDTH[kind]
    base = ins.opcode.removesuffix("c")

    def fn(*args: int) -> Any:
        *values, carry = args if ins.opcode.endswith("c") else (*args, 0)
        if base == "sub":
            total = values[0] - values[1] - carry
            out = int(total < 0)
        else:
            first = values[0]
            if base == "mad":
                product = number(values[0], kind) * number(values[1], kind)
                first = (product >> (bits if ins.has("hi") else 0)) & mask(bits)
            total = first + values[-1] + carry
            out = total >> bits
        result = total & mask(bits)
        return (result, out) if ins.has("cc") else result

    count = 3 if base == "mad" else 2
    reads = ("pred",) if ins.opcode.endswith("c") else ()
    return Meaning((kind,) * count + reads, (kind, "pred") if ins.has("cc") else (kind,), fn)


@opcode("dp4a", "dp2a")
def dot(ins: Instruction) -> Meaning:
    a_type, b_type = ins.types
    out = "s32" if "s32" in (a_type, b_type) else "u32"
    high = 2 if ins.has("hi") else 0

    def part(x: int, kind: str, at: int, bits: int) -> int:
        return number(x >> at & mask(bits), f"{kind[0]}{bits}")

    def fn(a: int, b: int, c: int) -> int:
        total = number(c, out)
        for i in range(4 if ins.opcode == "dp4a" else 2):
            if ins.opcode == "dp4a":
                total += part(a, a_type, 8 * i, 8) * part(b, b_type, 8 * i, 8)
            else:
                total += part(a, a_type, 16 * i, 16) * part(b, b_type, 8 * (i + high), 8)
        return total & mask(32)

    return Meaning((a_type, b_type, out), (out,), fn)


# -- bits -------------------------------------------------------------------------------


@opcode("and", "or", "xor", "not", "cnot")
def logic(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    fn = {
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a, "cnot": lambda a: int(a == 0),
    }[ins.opcode]  # fmt: skip
    count = 1 if ins.opcode in ("not", "cnot") else 2
    return Meaning((kind,) * count, (kind,), lambda *a: fn(*a) & mask(WIDTH[kind]))


@opcode("lop3")
def lop3(ins: Instruction) -> Meaning:
    table = ins.operands[4]
    if not isinstance(table, Imm):
        raise NotModelled(ins.name)

    def word(a: int, b: int, c: int) -> int:
        return sum(
            (table.value >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i
            for i in range(32)
        )

    words = ("b32",) * 4
    if not ins.has("or", "and"):
        return Meaning(words, ("b32",), lambda a, b, c, _: word(a, b, c))

    def both(a: int, b: int, c: int, _: int, q: int) -> tuple[int, int]:
        d = word(a, b, c)
        return d, (d != 0) | q if ins.has("or") else (d != 0) & q

    return Meaning((*words, "pred"), ("b32", "pred"), both)


@opcode("shl", "shr")
def shift(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    bits = WIDTH[kind]
    if ins.opcode == "shl":
        return Meaning((kind, "u32"), (kind,), lambda a, n: a << min(n, bits) & mask(bits))
    fn = lambda a, n: number(a, kind) >> min(n, bits) & mask(bits)  # noqa: E731
    return Meaning((kind, "u32"), (kind,), fn)


@opcode("shf")
def funnel(ins: Instruction) -> Meaning:
    def fn(a: int, b: int, c: int) -> int:
        n = c & 31 if ins.has("wrap") else min(c, 32)
        pair = b << 32 | a
        return (pair << n >> 32 if ins.has("l") else pair >> n) & mask(32)

    return Meaning(("b32", "b32", "u32"), ("b32",), fn)


@opcode("popc", "clz", "brev", "bfind")
def counts(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    bits = WIDTH[kind]

    def find(a: int) -> int:
        x = number(a, kind)
        at = (~x if x < 0 else x).bit_length() - 1
        if at < 0:
            return mask(32)
        return bits - 1 - at if ins.has("shiftamt") else at

    fn: Any = {
        "popc": lambda a: a.bit_count(), "clz": lambda a: bits - a.bit_length(),
        "brev": lambda a: int(f"{a:0{bits}b}"[::-1], 2), "bfind": find,
    }[ins.opcode]  # fmt: skip
    return Meaning((kind,), (kind if ins.opcode == "brev" else "u32",), fn)


def field(x: int, bits: int) -> int:
    """Positions and lengths: a byte in 32-bit forms, all of the word in 64-bit ones (H200)."""
    return x & 255 if bits == 32 else min(x, 255)


@opcode("bfe", "bfi")
def bit_field(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    bits = WIDTH[kind]

    def extract(a: int, b: int, c: int) -> int:
        position, length = field(b, bits), field(c, bits)
        if not length:
            return 0
        wide = number(a, kind) >> position  # Python's integers go on for ever, by sign
        part = wide & mask(length)
        if kind[0] == "s":
            sign = a >> min(position + length - 1, bits - 1) & 1
            if length < bits:
                part = part & mask(length) | (-1 << length if sign else 0)
        return part & mask(bits)

    def insert(a: int, b: int, c: int, d: int) -> int:
        position, length = field(c, bits), field(d, bits)
        hole = mask(length) << position & mask(bits)
        return b & ~hole | a << position & hole

    if ins.opcode == "bfe":
        return Meaning((kind, "u32", "u32"), (kind,), extract)
    return Meaning((kind, kind, "u32", "u32"), (kind,), insert)


@opcode("bmsk")
def bmsk(ins: Instruction) -> Meaning:
    def fn(a: int, b: int) -> int:
        if ins.has("wrap"):
            a, b = a & 31, b & 31
        return mask(min(b, 32)) << min(a, 32) & mask(32)

    return Meaning(("u32", "u32"), ("b32",), fn)


@opcode("szext")
def szext(ins: Instruction) -> Meaning:
    kind = type_of(ins)

    def fn(a: int, b: int) -> int:
        n = b & 31 if ins.has("wrap") else min(b, 32)
        if not n:
            return 0
        part = a & mask(n)
        return (part - (1 << n) if kind == "s32" and part >> (n - 1) else part) & mask(32)

    return Meaning((kind, "u32"), (kind,), fn)


@opcode("fns")
def fns(ins: Instruction) -> Meaning:
    def fn(word: int, base: int, offset: int) -> int:
        n = number(offset, "s32")
        if n == 0:
            return base if word >> base & 1 else mask(32)
        if n == -(1 << 31):
            return 0  # it has no absolute value (H200)
        at, left = base, abs(n)
        while 0 <= at < 32:
            left -= word >> at & 1
            if not left:
                return at
            at += 1 if n > 0 else -1
        return mask(32)

    return Meaning(("b32", "u32", "s32"), ("b32",), fn)


@opcode("prmt")
def prmt(ins: Instruction) -> Meaning:
    mode = ins.modifiers[-1]

    def picks(c: int) -> list[int]:
        s = c & 3
        return {
            "f4e": [s, s + 1, s + 2, s + 3],
            "b4e": [s, (s + 7) % 8, (s + 6) % 8, (s + 5) % 8],
            "rc8": [s, s, s, s],
            "ecl": [max(s, i) for i in range(4)],
            "ecr": [min(s, i) for i in range(4)],
            "rc16": [0, 1, 0, 1] if s % 2 == 0 else [2, 3, 2, 3],
        }.get(mode) or [c >> 4 * i & 15 for i in range(4)]

    def fn(a: int, b: int, c: int) -> int:
        result = 0
        for i, pick in enumerate(picks(c)):
            byte = (b << 32 | a) >> 8 * (pick & 7) & 255
            if pick & 8:
                byte = 255 if byte & 128 else 0
            result |= byte << 8 * i
        return result

    return Meaning(("b32", "b32", "b32"), ("b32",), fn)


# -- comparison and selection of integers, and what has no arithmetic -------------------


@opcode("setp", "set")
def compare(ins: Instruction) -> Meaning:
    return floating.compare(ins)


@opcode("selp")
def selp(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    return Meaning((kind, kind, "pred"), (kind,), lambda a, b, p: a if p else b)


@opcode("slct")
def slct(ins: Instruction) -> Meaning:
    kind, by = ins.types

    def fn(a: int, b: int, c: int) -> int:
        if by == "s32":
            return a if number(c, by) >= 0 else b
        return a if floating.at_least_zero(c, ins.has("ftz")) else b

    return Meaning((kind, kind, by), (kind,), fn)


@opcode("mov")
def mov(ins: Instruction) -> Meaning:
    kind = type_of(ins)
    return Meaning((kind,), (kind,), lambda a: a)
