"""Integer arithmetic, comparison and selection."""

from typing import Any

from kernels.ptx.module import Instruction
from tests.oracles.interpreter import floating
from tests.oracles.interpreter.values import (
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
        *values, carry = args if ins.opcode.endswith("c") else (*args, base == "sub")
        if base == "sub":
            total = values[0] - values[1] - 1 + carry
            out = int(total >= 0)
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
