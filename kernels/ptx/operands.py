"""Operands of PTX instructions: registers, constants, vectors, addresses."""

import re

import numpy as np

from .constants import ConstantParser
from .module import Address, Function, Imm, Operand, Pair, Reg, Special, Symbol, Vector

_PART = re.compile("b[0-7]{1,4}|h[0-3]{1,2}")
_SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyzw]"
    r"|cluster_ctarank|cluster_nctarank|is_explicit_cluster|laneid|warpid|nwarpid|smid|nsmid|gridid"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock(?:_hi|64)?|globaltimer(?:_lo|_hi)?|pm\d+|envreg\d+"
    r"|total_smem_size|reserved_smem_offset_\w+|aggr_smem_size|dynamic_smem_size|current_graph_exec)"
)


class OperandParser(ConstantParser):
    """Reads operands; names resolve through the scopes that are open."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.scopes: list[dict[str, str]] = []
        self.current = Function("", False, (), ())

    def resolve(self, name: str) -> str:
        """The unique name that a name stands for here."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def operands(self) -> list[Operand | None]:
        """All operands, up to the semicolon."""
        found: list[Operand | None] = []
        if self.accept(";"):
            return found
        while True:
            found.append(self.operand())
            if self.accept(";"):
                return found
            self.expect(",")

    def operand(self) -> Operand | None:
        """One operand, perhaps a pair."""
        first = self.single()
        if self.accept("|"):
            return Pair(first, self.single())
        return first

    def single(self) -> Operand | None:
        """One operand that is not a pair."""
        token = self.tokens[self.at]
        if self.accept("{"):
            items: list[Operand | None] = []
            while not self.accept("}"):
                if self.peek == "{":
                    self.fail("a vector in a vector")
                items.append(self.single())
                self.accept(",")
            return Vector(tuple(items))
        if self.accept("["):
            return self.address()
        if self.begins_constant:
            return self.constant()
        if self.accept("!"):
            return Reg(self.resolve(self.name()), True)
        if token.text == "-" and self.tokens[self.at + 1].kind == "word":
            self.next()
            found = self.single()
            if isinstance(found, Reg):
                return Reg(found.name, found.negated, f"-{found.part}")
            self.fail("a sign in front of no register")
        if token.kind != "word":
            self.fail(f"expected an operand, found {token.text!r}")
        self.next()
        if token.text == "_":
            return None
        if _SPECIAL.fullmatch(token.text):
            name, dot, _ = token.text.partition(".")
            if self.is_register(self.resolve(name)):
                if not dot:
                    return Reg(self.resolve(name))
                self.fail(f"{token.text} is read, but {name} is a register declared here")
            return Special(token.text)
        name = self.resolve(token.text)
        whole, _, part = token.text.rpartition(".")
        if _PART.fullmatch(part) and self.is_register(self.resolve(whole)):
            return Reg(self.resolve(whole), part=part)
        if token.text.startswith("%") or self.is_register(name):
            return Reg(name)
        if self.peek == "[":
            self.fail(f"an element of {name}: write its address in bytes, as in [{name}+8]")
        return Symbol(name, self.offset())

    def results(self) -> tuple[str, ...]:
        """The names that a call gives its results to, behind the opening parenthesis."""
        found: list[str] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(self.resolve(self.name()))
        return tuple(found)

    def passed(self) -> tuple[Operand, ...]:
        """What a call passes, likewise."""
        found: list[Operand] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            one = self.single()
            if isinstance(one, Imm | Reg | Symbol) and not _in_part(one):
                found.append(one)
            else:
                self.fail("a call passes .param variables, registers and constants")
        return tuple(found)

    def is_register(self, name: str) -> bool:
        """Registers of inline assembly need no percent sign; only a variable has an address."""
        return name in self.current.registers

    def address(self) -> Address:
        """What stands between brackets."""
        token = self.tokens[self.at]
        base: Reg | Symbol | Imm
        if token.kind == "word":
            self.next()
            name = self.resolve(token.text)
            known = token.text.startswith("%") or self.is_register(name)
            base = Reg(name) if known else Symbol(name)
        else:
            base = Imm("int", self.whole())
        offset = self.offset()
        if self.accept(","):
            where = self.single()
            if isinstance(where, Vector) and self.accept("]"):
                return Address(base, offset, where.items)
            self.fail("cannot read the coordinates of an address")
        if not self.accept("]"):
            self.fail(f"cannot read the address at {self.peek!r}")
        return Address(base, offset)

    def offset(self) -> int:
        """Bytes that are added to an address, if any: ``+``, and a constant; or a negative one."""
        return self.whole() if self.accept("+") or self.peek == "-" else 0


def _in_part(operand: Imm | Reg | Symbol) -> bool:
    """Whether it is a negated register or a piece of one, or no variable's first byte."""
    return not isinstance(operand, Imm) and operand != type(operand)(operand.name)


def float_constant(imm: Imm, kind: str) -> Imm:
    """A constant converted to another floating type."""
    if imm.kind == "int":
        value = float(imm.value)
    elif imm.kind == "f32":
        value = float(np.uint32(imm.value).view(np.float32))
    else:
        value = float(np.uint64(imm.value).view(np.float64))
    if kind == "f32":
        with np.errstate(over="ignore"):
            return Imm(kind, int(np.float32(value).view(np.uint32)))
    return Imm(kind, int(np.float64(value).view(np.uint64)))
