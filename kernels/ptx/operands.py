"""Operands of PTX instructions: registers, constants, vectors, addresses."""

import re

import numpy as np

from .constants import ConstantParser
from .lexer import Cursor
from .module import Address, Imm, Operand, Pair, Reg, Special, Symbol, Vector
from .scopes import NameScopes

_PART = re.compile("b[0-7]{1,4}|h[0-3]{1,2}")
_SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyzw]"
    r"|cluster_ctarank|cluster_nctarank|is_explicit_cluster|laneid|warpid|nwarpid|smid|nsmid|gridid"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock(?:_hi|64)?|globaltimer(?:_lo|_hi)?|pm\d+|envreg\d+"
    r"|total_smem_size|reserved_smem_offset_\w+|aggr_smem_size|dynamic_smem_size|current_graph_exec)"
)


class OperandParser:
    """Reads operands from a cursor; names resolve through the scopes that are open."""

    def __init__(self, cursor: Cursor, names: NameScopes) -> None:
        self.cursor, self.names = cursor, names
        self.constants = ConstantParser(cursor)

    def operands(self) -> list[Operand | None]:
        """Return all operands, up to the semicolon."""
        found: list[Operand | None] = []
        if self.cursor.accept(";"):
            return found
        while True:
            found.append(self.operand())
            if self.cursor.accept(";"):
                return found
            self.cursor.expect(",")

    def operand(self) -> Operand | None:
        """Return one operand, perhaps a pair."""
        first = self.single()
        if self.cursor.accept("|"):
            return Pair(first, self.single())
        return first

    def single(self) -> Operand | None:
        """Return one operand that is not a pair."""
        token = self.cursor.tokens[self.cursor.at]
        if self.cursor.accept("{"):
            items: list[Operand | None] = []
            while not self.cursor.accept("}"):
                if self.cursor.peek == "{":
                    self.cursor.fail("a vector in a vector")
                items.append(self.single())
                self.cursor.accept(",")
            return Vector(tuple(items))
        if self.cursor.accept("["):
            return self.address()
        if self.constants.begins_constant:
            return self.constants.constant()
        if self.cursor.accept("!"):
            return Reg(self.names.resolve(self.cursor.name()), True)
        if token.text == "-" and self.cursor.tokens[self.cursor.at + 1].kind == "word":
            self.cursor.next()
            found = self.single()
            if isinstance(found, Reg):
                return Reg(found.name, found.negated, f"-{found.part}")
            self.cursor.fail("a sign in front of no register")
        if token.kind != "word":
            self.cursor.fail(f"expected an operand, found {token.text!r}")
        self.cursor.next()
        if token.text == "_":
            return None
        if _SPECIAL.fullmatch(token.text):
            name, dot, _ = token.text.partition(".")
            if self.names.is_register(self.names.resolve(name)):
                if not dot:
                    return Reg(self.names.resolve(name))
                self.cursor.fail(f"{token.text} is read, but {name} is a register declared here")
            return Special(token.text)
        name = self.names.resolve(token.text)
        whole, _, part = token.text.rpartition(".")
        if _PART.fullmatch(part) and self.names.is_register(self.names.resolve(whole)):
            return Reg(self.names.resolve(whole), part=part)
        if token.text.startswith("%") or self.names.is_register(name):
            return Reg(name)
        if self.cursor.peek == "[":
            self.cursor.fail(f"an element of {name}: write its address in bytes, as in [{name}+8]")
        return Symbol(name, self.offset())

    def results(self) -> tuple[str, ...]:
        """Return the names that a call gives its results to, behind the opening parenthesis."""
        found: list[str] = []
        while not self.cursor.accept(")"):
            if found:
                self.cursor.expect(",")
            found.append(self.names.resolve(self.cursor.name()))
        return tuple(found)

    def passed(self) -> tuple[Operand, ...]:
        """Parse the arguments or results of a call."""
        found: list[Operand] = []
        while not self.cursor.accept(")"):
            if found:
                self.cursor.expect(",")
            one = self.single()
            if isinstance(one, Imm | Reg | Symbol) and not _in_part(one):
                found.append(one)
            else:
                self.cursor.fail("a call passes .param variables, registers and constants")
        return tuple(found)

    def address(self) -> Address:
        """Parse an address in brackets."""
        token = self.cursor.tokens[self.cursor.at]
        base: Reg | Symbol | Imm
        if token.kind == "word":
            self.cursor.next()
            name = self.names.resolve(token.text)
            known = token.text.startswith("%") or self.names.is_register(name)
            base = Reg(name) if known else Symbol(name)
        else:
            base = Imm("int", self.constants.whole())
        offset = self.offset()
        if self.cursor.accept(","):
            where = self.single()
            if isinstance(where, Vector) and self.cursor.accept("]"):
                return Address(base, offset, where.items)
            self.cursor.fail("cannot read the coordinates of an address")
        if not self.cursor.accept("]"):
            self.cursor.fail(f"cannot read the address at {self.cursor.peek!r}")
        return Address(base, offset)

    def offset(self) -> int:
        """Return the bytes added to an address: ``+`` and a constant, a negative one, or zero."""
        return self.constants.whole() if self.cursor.accept("+") or self.cursor.peek == "-" else 0


def _in_part(operand: Imm | Reg | Symbol) -> bool:
    """Whether it is a negated register or a piece of one, or no variable's first byte."""
    return not isinstance(operand, Imm) and operand != type(operand)(operand.name)


def float_constant(imm: Imm, kind: str) -> Imm:
    """Return a constant converted to another floating type."""
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
