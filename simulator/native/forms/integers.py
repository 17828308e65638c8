"""Integer arithmetic, logic and shifts."""

from __future__ import annotations

from kernels.ptx.module import Imm, Instruction

from ...isa import Op
from ..lines import Lines, bits_of
from .table import BITS, INTEGERS, Emit, Operand, form, only


@form("add", "sub")
def add_sub(ins: Instruction, op: Op) -> Emit | None:
    """``add`` and ``sub``, which wrap."""
    if not only(ins, INTEGERS) or len(op.inputs) != 2:
        return None
    bits = bits_of(op.outputs[0])
    return lambda x, a: [x.value(f"{ins.opcode} i{bits} {a[0].name}, {a[1].name}")]


@form("mul", "mad")
def multiply(ins: Instruction, op: Op) -> Emit | None:
    """``mul`` and ``mad`` of the low or high half, or wide."""
    if not only(ins, INTEGERS, ("lo", "hi", "wide")) or not ins.has("lo", "hi", "wide"):
        return None
    type = ins.types[-1]
    bits, signed = bits_of(type), type[0] == "s"
    if bits_of(op.outputs[0]) != (2 * bits if ins.has("wide") else bits):
        return None

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        result, width = "", bits
        if ins.has("lo"):
            result = x.value(f"mul i{bits} {a[0].name}, {a[1].name}")
        else:
            width = 2 * bits
            one, other = (x.resized(v.name, bits, width, signed) for v in a[:2])
            result = x.value(f"mul i{width} {one}, {other}")
            if ins.has("hi"):
                upper = x.value(f"lshr i{width} {result}, {bits}")
                result, width = x.resized(upper, width, bits, False), bits
        if ins.opcode == "mad":
            result = x.value(f"add i{width} {result}, {a[2].name}")
        return [result]

    return emit


@form("addc", "subc", "madc", "add", "sub", "mad")
def with_carry(ins: Instruction, op: Op) -> Emit | None:
    """Sums with a carry flag: one more source where it is read, one more result of ``.cc``."""
    reads = ins.opcode.endswith("c")
    if not only(ins, INTEGERS, ("cc", "lo", "hi")) or not (reads or ins.has("cc")):
        return None
    type = ins.types[0]
    bits, subtracts = bits_of(type), ins.opcode.startswith("sub")

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        *values, carry = [v.name for v in a] if reads else [*(v.name for v in a), "false"]
        if ins.opcode.startswith("mad"):
            width = 2 * bits if ins.has("hi") else bits
            one, other = (x.resized(v, bits, width, type[0] == "s") for v in values[:2])
            product = x.value(f"mul i{width} {one}, {other}")
            upper = x.value(f"lshr i{width} {product}, {bits if ins.has('hi') else 0}")
            values = [x.resized(upper, width, bits, False), values[2]]
        if subtracts:  # the complement is added: the flag says that nothing is borrowed
            values[1] = x.value(f"xor i{bits} {values[1]}, -1")
            carry = carry if reads else "true"
        more = x.value(f"zext i1 {carry} to i{bits}")
        first = x.value(f"add i{bits} {values[0]}, {values[1]}")
        result = x.value(f"add i{bits} {first}, {more}")
        over = x.value(f"icmp ult i{bits} {first}, {values[0]}")
        again = x.value(f"icmp ult i{bits} {result}, {first}")
        return [result, x.value(f"or i1 {over}, {again}")][: len(op.outputs)]

    return emit


@form("bfi")
def insert_field(ins: Instruction, op: Op) -> Emit | None:
    """``bfi``: the low bits of one word into another; of 32 bits, the low byte says how many."""
    if not only(ins, BITS):
        return None
    bits = bits_of(op.outputs[0])

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        limits = []
        for value in a[2:]:
            number = x.value(f"and i32 {value.name}, 255") if bits == 32 else value.name
            least = x.pure("umin", "i32", number, str(bits))
            limits.append(x.resized(least, 32, 2 * bits, False))
        ones = x.value(f"shl i{2 * bits} 1, {limits[1]}")
        ones = x.value(f"sub i{2 * bits} {ones}, 1")
        mask = x.value(f"shl i{2 * bits} {ones}, {limits[0]}")
        given = x.resized(a[0].name, bits, 2 * bits, False)
        moved = x.value(f"shl i{2 * bits} {given}, {limits[0]}")
        mask, moved = (x.resized(value, 2 * bits, bits, False) for value in (mask, moved))
        rest = x.value(f"and i{bits} {a[1].name}, {x.value(f'xor i{bits} {mask}, -1')}")
        return [x.value(f"or i{bits} {rest}, {x.value(f'and i{bits} {moved}, {mask}')}")]

    return emit


@form("and", "or", "xor")
def logic(ins: Instruction, op: Op) -> Emit | None:
    """``and``, ``or`` and ``xor``, of predicates too."""
    if not only(ins, BITS, ("pred",)):
        return None
    bits = bits_of(op.outputs[0])
    return lambda x, a: [x.value(f"{ins.opcode} i{bits} {a[0].name}, {a[1].name}")]


@form("not")
def complement(ins: Instruction, op: Op) -> Emit | None:
    """``not``, of a predicate too."""
    if not only(ins, BITS, ("pred",)):
        return None
    bits = bits_of(op.outputs[0])
    return lambda x, a: [x.value(f"xor i{bits} {a[0].name}, -1")]


@form("neg")
def negate(ins: Instruction, op: Op) -> Emit | None:
    """``neg``, which wraps."""
    if not only(ins, INTEGERS):
        return None
    bits = bits_of(op.outputs[0])
    return lambda x, a: [x.value(f"sub i{bits} 0, {a[0].name}")]


@form("abs")
def magnitude(ins: Instruction, op: Op) -> Emit | None:
    """``abs``; of the least number it is that number."""
    if not only(ins, INTEGERS):
        return None
    bits = bits_of(op.outputs[0])

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        negative = x.value(f"icmp slt i{bits} {a[0].name}, 0")
        other = x.value(f"sub i{bits} 0, {a[0].name}")
        return [x.value(f"select i1 {negative}, i{bits} {other}, i{bits} {a[0].name}")]

    return emit


@form("min", "max")
def extreme(ins: Instruction, op: Op) -> Emit | None:
    """``min`` and ``max``."""
    if not only(ins, INTEGERS):
        return None
    bits, letter = bits_of(op.outputs[0]), ins.types[-1][0]
    return lambda x, a: [x.pure(f"{letter}{ins.opcode}", f"i{bits}", a[0].name, a[1].name)]


@form("shl", "shr")
def shift(ins: Instruction, op: Op) -> Emit | None:
    """``shl`` and ``shr``; a count past the width shifts all bits out."""
    if not only(ins, BITS, INTEGERS):
        return None
    bits, count_bits = bits_of(op.outputs[0]), bits_of(op.inputs[1])
    arithmetic = ins.opcode == "shr" and ins.types[-1][0] == "s"

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        count = a[1].name
        beyond = x.value(f"icmp uge i{count_bits} {count}, {bits}")
        inside = x.resized(count, count_bits, bits, False)
        inside = x.value(f"and i{bits} {inside}, {bits - 1}")
        if arithmetic:
            inside = x.value(f"select i1 {beyond}, i{bits} {bits - 1}, i{bits} {inside}")
            return [x.value(f"ashr i{bits} {a[0].name}, {inside}")]
        name = "shl" if ins.opcode == "shl" else "lshr"
        moved = x.value(f"{name} i{bits} {a[0].name}, {inside}")
        return [x.value(f"select i1 {beyond}, i{bits} 0, i{bits} {moved}")]

    return emit


@form("div", "rem")
def divide(ins: Instruction, op: Op) -> Emit | None:
    """``div`` and ``rem``; by zero both give all ones."""
    if not only(ins, INTEGERS):
        return None
    bits, signed = bits_of(op.outputs[0]), ins.types[-1][0] == "s"

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        one, other = a[0].name, a[1].name
        zero = x.value(f"icmp eq i{bits} {other}, 0")
        by = x.value(f"select i1 {zero}, i{bits} 1, i{bits} {other}")
        if not signed:
            found = x.value(f"u{ins.opcode} i{bits} {one}, {by}")
        else:  # the least number by -1 overflows: that is its negation, and leaves nothing
            minus = x.value(f"icmp eq i{bits} {other}, -1")
            by = x.value(f"select i1 {minus}, i{bits} 1, i{bits} {by}")
            found = x.value(f"s{ins.opcode} i{bits} {one}, {by}")
            instead = "0" if ins.opcode == "rem" else x.value(f"sub i{bits} 0, {one}")
            found = x.value(f"select i1 {minus}, i{bits} {instead}, i{bits} {found}")
        return [x.value(f"select i1 {zero}, i{bits} -1, i{bits} {found}")]

    return emit


@form("popc", "brev")
def bit_count(ins: Instruction, op: Op) -> Emit | None:
    """``popc`` and ``brev``."""
    if not only(ins, BITS):
        return None
    bits, name = bits_of(op.inputs[0]), {"popc": "ctpop", "brev": "bitreverse"}[ins.opcode]
    wanted = bits_of(op.outputs[0])
    return lambda x, a: [x.resized(x.pure(name, f"i{bits}", a[0].name), bits, wanted, False)]


@form("clz")
def leading_zeros(ins: Instruction, op: Op) -> Emit | None:
    """``clz``."""
    if not only(ins, BITS):
        return None
    bits, wanted = bits_of(op.inputs[0]), bits_of(op.outputs[0])

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        found = x.call(f"llvm.ctlz.i{bits}", f"i{bits}", (f"i{bits}", a[0].name), ("i1", "false"))
        return [x.resized(found, bits, wanted, False)]

    return emit


@form("shf")
def funnel(ins: Instruction, op: Op) -> Emit | None:
    """``shf``: of two words side by side; the count wraps, or is clamped to 32."""
    if not only(ins, ("l", "r", "wrap", "clamp", "b32")):
        return None

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        high = x.value(f"zext i32 {a[1].name} to i64")
        low = x.value(f"zext i32 {a[0].name} to i64")
        high = x.value(f"shl i64 {high}, 32")
        both = x.value(f"or i64 {high}, {low}")
        count = a[2].name
        if ins.has("wrap"):
            count = x.value(f"and i32 {count}, 31")
        else:
            count = x.pure("umin", "i32", count, "32")
        count = x.value(f"zext i32 {count} to i64")
        if ins.has("l"):
            moved = x.value(f"shl i64 {both}, {count}")
            moved = x.value(f"lshr i64 {moved}, 32")
        else:
            moved = x.value(f"lshr i64 {both}, {count}")
        return [x.value(f"trunc i64 {moved} to i32")]

    return emit


@form("lop3")
def lookup(ins: Instruction, op: Op) -> Emit | None:
    """``lop3``: any function of three bits; its table is the fourth operand."""
    if not only(ins, ("b32",)) or len(op.inputs) != 4 or len(op.outputs) != 1:
        return None
    table = ins.operands[4]
    assert isinstance(table, Imm)
    places = [place for place in range(8) if table.value >> place & 1]

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        result = "0"
        for place in places:
            here = "-1"
            for value, bit in zip(a[:3], (4, 2, 1), strict=True):
                word = value.name
                if not place & bit:
                    word = x.value(f"xor i32 {word}, -1")
                here = x.value(f"and i32 {here}, {word}")
            result = x.value(f"or i32 {result}, {here}")
        return [result]

    return emit


@form("bfe")
def extract(ins: Instruction, op: Op) -> Emit | None:
    """``bfe``: bits from a place on, extended by the highest of them if signed."""
    if not only(ins, ("u32", "s32")):
        return None
    bits, signed = 32, ins.types[-1][0] == "s"

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        start, length = (x.value(f"and i32 {v.name}, 255") for v in a[1:])
        end = x.value(f"add i32 {start}, {length}")
        # The sign is the field's highest bit, or the register's where the field reaches over it.
        top = x.value(f"sub i32 {end}, 1")
        top = x.pure("umin", "i32", top, str(bits - 1))
        top = x.resized(top, 32, bits, False)
        sign = x.value(f"lshr i{bits} {a[0].name}, {top}")
        sign = x.value(f"and i{bits} {sign}, 1")
        sign = x.value(f"sub i{bits} 0, {sign}")
        empty = x.value(f"icmp eq i32 {length}, 0")
        sign = x.value(f"select i1 {empty}, i{bits} 0, i{bits} {sign if signed else 0}")
        beyond = x.value(f"icmp uge i32 {start}, {bits}")
        inside = x.value(f"and i32 {start}, {bits - 1}")
        moved = x.value(f"lshr i{bits} {a[0].name}, {x.resized(inside, 32, bits, False)}")
        moved = x.value(f"select i1 {beyond}, i{bits} 0, i{bits} {moved}")
        whole = x.value(f"icmp uge i32 {length}, {bits}")
        count = x.value(f"and i32 {length}, {bits - 1}")
        field = x.value(f"shl i{bits} 1, {x.resized(count, 32, bits, False)}")
        field = x.value(f"sub i{bits} {field}, 1")
        field = x.value(f"select i1 {whole}, i{bits} -1, i{bits} {field}")
        # Bits of the field that lie beyond the register are copies of the sign, too.
        inner = x.value(f"sub i32 {bits}, {start}")
        inner = x.value(f"select i1 {beyond}, i32 0, i32 {inner}")
        there = x.value(f"and i32 {inner}, {bits - 1}")
        valid = x.value(f"shl i{bits} 1, {x.resized(there, 32, bits, False)}")
        valid = x.value(f"sub i{bits} {valid}, 1")
        full = x.value(f"icmp uge i32 {inner}, {bits}")
        valid = x.value(f"select i1 {full}, i{bits} -1, i{bits} {valid}")
        field = x.value(f"and i{bits} {field}, {valid}")
        low = x.value(f"and i{bits} {moved}, {field}")
        others = x.value(f"xor i{bits} {field}, -1")
        others = x.value(f"and i{bits} {others}, {sign}")
        return [x.value(f"or i{bits} {low}, {others}")]

    return emit


@form("prmt")
def permute(ins: Instruction, op: Op) -> Emit | None:
    """``prmt`` in its default mode: each byte of the result is chosen by four bits."""
    if not only(ins, ("b32",)):
        return None

    def emit(x: Lines, a: list[Operand]) -> list[str]:
        high = x.value(f"zext i32 {a[1].name} to i64")
        low = x.value(f"zext i32 {a[0].name} to i64")
        both = x.value(f"or i64 {x.value(f'shl i64 {high}, 32')}, {low}")
        result = "0"
        for place in range(4):
            chosen = x.value(f"lshr i32 {a[2].name}, {4 * place}")
            byte = x.value(f"and i32 {chosen}, 7")
            byte = x.value(f"zext i32 {byte} to i64")
            byte = x.value(f"mul i64 {byte}, 8")
            value = x.value(f"trunc i64 {x.value(f'lshr i64 {both}, {byte}')} to i8")
            sign = x.value(f"ashr i8 {value}, 7")
            signs = x.value(f"trunc i32 {x.value(f'lshr i32 {chosen}, 3')} to i1")
            value = x.value(f"select i1 {signs}, i8 {sign}, i8 {value}")
            wide = x.value(f"zext i8 {value} to i32")
            result = x.value(f"or i32 {result}, {x.value(f'shl i32 {wide}, {8 * place}')}")
        return [result]

    return emit
