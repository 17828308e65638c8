"""Logic, shifts, bit fields and bytes."""

from typing import Any

from kernels.ptx.module import Imm, Instruction
from tests.oracles.interpreter.values import (
    WIDTH,
    Meaning,
    NotModelled,
    mask,
    number,
    opcode,
    type_of,
)


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
