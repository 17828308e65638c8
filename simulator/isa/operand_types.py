"""Operands against the forms of their instruction (PTX ISA, "Operand Type Checking").

What the right-hand half of a form (``grammar``) may hold:

- ``t``, ``t0``, ``2t``: the form's last type, its first, its last at twice the size; or the
  name of a type; ``i32``: an integer register of 32 bits, or a constant;
- ``~``: the register may be wider; ``%``: it may be a special one, ``&``: or a variable, ``*``: or
  ``_``; ``_``: that alone; ``!``: no constant; ``a|b``: two results, ``a|b?``: or one;
- ``v:t``: as many as ``.v2``, ``.v4`` or ``.x4`` says, in braces; ``{t}``: two or four in braces
  that together have ``t``'s size; ``#a``: the registers of the matrix ``a`` (``fragments``);
  ``#d+``: which are read too; ``^``: or a part of a register, ``%r.b0``; ``-``: or a sign;
- ``@``: an address; ``@4af``: and four coordinates, floats (``f``) behind a layer (``a``);
  ``@o``: an object; ``{slope2``, ``{offset2``, ``{pixel2``: two floats, whole numbers, of 16 bits;
  ``where``: a generic address; ``label``; ``members``: a mask of lanes; ``policy``: of a cache;
  ``predicate``: in a register; ``imm``: a constant, ``d8``: from 0 to 255 (or a register), ``d16``,
  ``event``, ``128``, ``copied``, ``bit``, ``quarter``, ``sign`` ...: in their ranges, ``scale``:
  so, or a predicate; ``bar``: a barrier's number, ``threads``: its count, ``registers``: of one;
  ``sixteens``: bytes of a copy in bulk, ``read``: of those of a small one; ``arrivals``: how many.
"""

import functools
from collections.abc import Callable, Sequence

from kernels.ptx.module import (
    Address,
    Imm,
    Instruction,
    Operand,
    Pair,
    Reg,
    Special,
    Symbol,
    Vector,
)

from .grammar import Match
from .matrix.fragments import registers
from .registers import bits, holds, shown

Register = Callable[[str], str | None]
"""The declared type of a register, or ``None``."""


class Wrong(Exception):
    """An operand that does not fit, in words."""


class NotYet(Exception):
    """PTX that the simulator does not execute: what it is, and what to use instead."""


_WIDE_SPECIALS = ("%clock64", "%globaltimer", "%gridid")
_EITHER = ("%gridid",)
_NARROW = ("%tid", "%ntid", "%ctaid", "%nctaid")
_MANY = ("v2", "v4", "v8", "x1", "x2", "x4")
_RANGES = {
    "d8": (0, 255), "event": (0, 15), "d16": (0, 65535), "128": (128, 128), "16": (16, 16),
    "bit": (0, 1), "quarter": (0, 3), "zero": (0, 0), "scale": (0, 1), "sign": (-1, 1),
    "count": (0, 2**63 - 1), "parity": (0, 1), "registers": (24, 256), "sixteens": (0, 2**32 - 1),
    "read": (0, 16), "arrivals": (1, 2**63 - 1),
}  # fmt: skip
"""What some constants may be."""
_MULTIPLES = {"registers": 8, "threads": 32, "sixteens": 16}
_LOOSE = ("d8", "bar", "threads", "scale", "parity", "sixteens", "read", "arrivals")
"""Constants that a register may stand for."""


def check(ins: Instruction, match: Match, register: Register) -> None:
    """Hold an instruction's operands against one of its forms.

    Raises:
        Wrong: They do not fit.
    """
    results, sources = match.form.results, match.form.sources
    operands, count = list(ins.operands), len(results) + len(sources)
    if len(operands) != count:
        raise Wrong(f"{len(operands)} operands, it takes {count}")
    checker = _Checker(ins, match.types, register)
    for spec, operand in zip(results, operands, strict=False):
        checker.result(spec, operand)
    for spec, operand in zip(sources, operands[len(results) :], strict=True):
        checker.source(spec, operand)


def index(ins: Instruction, register: Register) -> None:
    """Check the index of ``brx.idx``; its labels were read by the parser."""
    _Checker(ins, (), register).value("i32", ins.operands[0])


@functools.lru_cache(maxsize=4096)
def _many(modifiers: tuple[str, ...]) -> int:
    """Return the number of values of ``.v2`` or ``.x2`` ...; 0 without."""
    return next((int(m[1:]) for m in modifiers if m in _MANY), 0)


class _Checker:
    def __init__(self, ins: Instruction, types: Sequence[str], register: Register) -> None:
        self.ins = ins
        self.types = types
        self.many = _many(ins.modifiers)
        self.register = register

    def type_of(self, spec: str) -> str:
        """Return the type that a form's word stands for here."""
        word = spec.rstrip("~%&*?!^-'")
        if word in ("t", "t0"):
            return self.types[-1 if word == "t" else 0]
        if word == "members":
            return "i32"
        if word == "2t":
            type = self.types[-1]
            return f"{type[0]}{2 * bits(type)}"
        return word

    def declared(self, reg: Reg) -> str:
        """Return the type of a register.

        Raises:
            Wrong: It is not declared.
        """
        found = self.register(reg.name)
        if found is None:
            raise Wrong(f"the register {reg.name!r} is not declared")
        return found

    def into(self, spec: str, operand: Operand | None) -> None:
        """One register that is written."""
        type = self.type_of(spec)
        if not isinstance(operand, Reg) or operand.negated:
            raise Wrong(f"a result needs a register, not {shown(operand)}")
        self.fits(operand, type, spec)

    def fits(self, reg: Reg, type: str, spec: str) -> None:
        """A register for a type; only video instructions take a part of one."""
        if ("-" in reg.part and "-" not in spec) or (reg.part.strip("-") and "^" not in spec):
            raise Wrong(f"a part or a sign of the register {reg.name!r} cannot stand there")
        found = self.declared(reg)
        if "'" in spec and type in ("f32", "f64") and found in (f"s{type[1:]}", f"u{type[1:]}"):
            return  # as ptxas has it in vectors
        if found == "b128" != type:
            raise NotYet("the low bits of a 128-bit register: use mov.b128 to {a, b}")
        if not holds(found, type, "~" in spec):
            raise Wrong(f"the register {reg.name!r} is .{found}, not .{type.replace('i32', 'b32')}")

    def result(self, spec: str, operand: Operand | None) -> None:
        """Check a destination operand."""
        if "|" in spec:
            first, second = spec.rstrip("?").split("|")
            if isinstance(operand, Pair):
                if operand.first is operand.second is None:
                    raise Wrong("'_|_' leaves no result")
                self.result(first, operand.first)
                self.result(second, operand.second)
            elif not spec.endswith("?"):
                raise Wrong("it has two results, 'd|p'")
            else:
                self.result(first, operand)
        elif spec == "_" and operand is not None:
            raise Wrong(f"'_' has to stand there, not {shown(operand)}")
        elif operand is None and ("*" in spec or spec == "_"):
            return
        elif spec[0] in "v#" and operand is not None:
            for one, item in self.items(spec, operand):
                if item is not None or spec.endswith("+"):
                    self.into(one, item)
        elif spec.startswith("{"):
            for part, item in self.parts(operand):
                if item is not None:
                    self.into(part, item)
        else:
            self.into(spec, operand)

    def items(self, spec: str, operand: Operand | None) -> list[tuple[str, Operand | None]]:
        """Return the values of a vector, with their types.

        ptxas looks at the kind of the first alone, or at none where several are mixed: those of
        one size may be, but for floats among integers.
        """
        count, first = self.many, spec[2:]
        if spec[0] == "#":
            count, first = registers(self.ins.modifiers)[spec[1]]
        mixed = self.common_types(getattr(operand, "items", ()))
        wider = "~" if "~" in spec else ""
        if len(mixed) > 1:
            first = f"b{bits(self.type_of(first))}{wider}"
        inside = "'" if self.many else ""
        types = [first + inside] + [f"b{bits(self.type_of(first))}{wider}"] * (count - 1)
        if isinstance(operand, Vector):
            if len(operand.items) != (count or 1):
                raise Wrong(f"{len(operand.items)} values in braces, it takes {count or 1}")
            return list(zip(types, operand.items, strict=True))
        if count:
            raise Wrong(f"{count} values in braces are needed, not {shown(operand)}")
        return [(first, operand)]

    def common_types(self, items: Sequence[Operand | None]) -> set[str]:
        """Return the types of registers in braces: of one size, no floats with integers."""
        mixed = {self.declared(item) for item in items if isinstance(item, Reg)}
        kinds = {t if t == "f16x2" else t[0] for t in mixed} - {"b"}
        if len({bits(t) for t in mixed}) > 1 or (len(kinds) > 1 and kinds != {"u", "s"}):
            raise Wrong(f"registers of several types in braces: .{', .'.join(sorted(mixed))}")
        return mixed

    def parts(self, vector: Operand | None) -> list[tuple[str, Operand | None]]:
        """Return the parts of a packed value, each with its type."""
        if not isinstance(vector, Vector):
            raise Wrong(f"values in braces are needed, not {shown(vector)}")
        self.common_types(vector.items)
        count = len(vector.items)
        if count not in (2, 4):
            raise Wrong(f"{count} values in braces, it takes 2 or 4")
        return [(f"b{bits(self.types[-1]) // count}", item) for item in vector.items]

    def source(self, spec: str, operand: Operand | None) -> None:
        """Check a source operand."""
        if spec[0] == "@" or spec.startswith(("{slope", "{offset", "{pixel")):
            self.coordinates(spec, operand)
        elif spec in _RANGES or spec in ("imm", "bar", "threads", "copied"):
            self.constant(spec, operand)
        elif spec == "where":
            if isinstance(operand, Reg) and self.declared(operand)[0] not in "bus":
                raise Wrong(f"the register {operand.name!r} holds no address")
            self.value("b32~" if isinstance(operand, Reg) else "u64", operand)
        elif spec in ("policy", "predicate"):
            if isinstance(operand, Symbol) or (spec == "predicate" and isinstance(operand, Imm)):
                raise Wrong(f"{shown(operand)} cannot stand there")
            self.value("u64" if spec == "policy" else "pred", operand)
        elif spec == "fraction":
            self.value("f32", operand)
            largest = 0x3FF << 52 if getattr(operand, "kind", "") == "f64" else 0x3F8 << 20
            if isinstance(operand, Imm) and not 0 < operand.value <= largest:
                raise Wrong("the fraction is not above 0 and at most 1")
        elif spec[0] in "v#":
            for one, item in self.items(spec, operand):
                self.value(one, item)
        elif spec.startswith("{"):
            for part, item in self.parts(operand):
                self.value(part + "%", item)
        else:
            self.value(spec, operand)

    def coordinates(self, spec: str, operand: Operand | None) -> None:
        """An address with as many values as the form has behind it, or those in braces."""
        many = int("".join(c for c in spec if c.isdigit()) or 0)
        given = getattr(operand, "at" if spec[0] == "@" else "items", ())
        if spec[-1] in "fos" and isinstance(operand, Address) and operand.offset:
            raise Wrong("an object has no offset")
        if len(given) != many or isinstance(operand, Address) != (spec[0] == "@"):
            needed = f"{many} values in braces" if many else "an address in brackets"
            raise Wrong(f"{needed}: not {shown(operand)}")
        if any(bits(type) > 32 for type in self.common_types(given)):
            raise Wrong("a register of 64 bits is no coordinate")
        floats, whole = "slope" in spec or spec[-1] == "f", "u16" if "pixel" in spec else "i32"
        real = "f32~'" if spec[0] == "@" else "f32"
        for i, item in enumerate(given):
            self.value(real if floats and ("a" not in spec or i) else whole, item)

    def constant(self, spec: str, operand: Operand | None) -> None:
        """A constant in its range, or a register where one may stand."""
        if isinstance(operand, Imm) and operand.kind == "int":
            number = operand.value
            low, high = _RANGES.get(spec, (number, number))
            if not low <= number <= high:
                raise Wrong(f"{number} is not from {low} to {high}")
            if spec == "copied" and number not in (4, 8, 16):
                raise Wrong(f"{number} bytes are copied, not 4, 8 or 16")
            if spec == "sign" and not number:
                raise Wrong("0 is neither -1 nor 1")
            if spec == "bar" and not 0 <= number & 0xFFFFFFFF <= 15:
                raise Wrong(f"there is no barrier {number}, they are 0 to 15")
            if number % _MULTIPLES.get(spec, 1) or (spec == "threads" and number <= 0):
                raise Wrong(f"{number} is not a multiple of {_MULTIPLES[spec]}")
            if spec == "read" and number > getattr(self.ins.operands[2], "value", 16):
                raise Wrong(f"{number} bytes are more than are copied")
        elif spec not in _LOOSE:
            raise Wrong(f"a constant is needed, not {shown(operand)}")
        else:
            self.value("pred" if spec == "scale" else "i32", operand)

    def value(self, spec: str, operand: Operand | None) -> None:
        """A register or constant that is read."""
        type = self.type_of(spec)
        if type == "b128" and isinstance(operand, Imm | Symbol | Special):
            raise NotYet("a constant of 128 bits: use mov.b128 of {a, b}")
        integer = type[0] in "bus" and not type.startswith("bf") and "x" not in type
        if isinstance(operand, Reg):
            if operand.negated and type != "pred":
                raise Wrong("only predicates can be negated")
            self.fits(operand, type, spec)
        elif isinstance(operand, Imm) and "!" not in spec:
            if operand.kind == "int":
                fitting = integer or type in ("pred", "i32")
            else:
                size = "32" if operand.kind == "f32" else "64"
                fitting = type in ("f32", "f64", f"b{size}")
            if not fitting:
                raise Wrong(f"{shown(operand)} for a value of type .{type}")
        elif isinstance(operand, Special):
            self.special(spec, type, operand)
        elif isinstance(operand, Symbol):
            none = "!" in spec or "^" in spec or self.ins.opcode in ("createpolicy", "wgmma")
            none |= self.ins.opcode == "mbarrier" and type != "i32"  # a state is no address
            if none or not ((integer or type == "i32") and ("&" in spec or operand.offset)):
                raise Wrong(f"{shown(operand)} for a value of type .{type.replace('i32', 'b32')}")
        else:
            raise Wrong(f"{shown(operand)} cannot stand there")

    def special(self, spec: str, type: str, operand: Special) -> None:
        """A special register, which only moves and conversions read."""
        if "%" not in spec:
            raise Wrong(f"only mov and cvt read the special register {operand.name}")
        wide = operand.name in _WIDE_SPECIALS
        predicate = operand.name == "%is_explicit_cluster"
        size = bits(type)
        fitting = type[0] in "bus" and type != "bf16" and (size > 8 or "~" in spec)
        if "~" in spec:
            fitting &= size <= (64 if wide else 32)
        else:
            fitting &= (size == 64) == wide or (operand.name in _EITHER and size == 32)
            fitting &= size != 16 or operand.name.split(".")[0] in _NARROW
        if predicate != (type == "pred") or not (fitting or predicate):
            raise Wrong(f"{operand.name} for a value of type .{type}")
