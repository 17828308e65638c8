"""Operands as Python expressions, for one basic block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernels.ptx.module import Imm, Operand, Reg, Special, Symbol
from kernels.ptx.names import variable_name

from ..isa import DTYPES, Unsupported
from .blocks import Block
from .values import immediate

if TYPE_CHECKING:
    from .compiler import Compiler


_WIDE_SPECIALS = ("%clock64", "%globaltimer", "%gridid")


class Operands:
    """Reads and writes of registers, constants and special registers, as expressions."""

    def __init__(self, owner: Compiler, block: Block) -> None:
        self.owner = owner
        self.block = block
        self.function = block.function
        self.lines: list[str] = []
        self.locals: dict[int, str] = {}
        self.written: dict[int, str] = {}
        self.temporary = 0

    def emit(self, line: str) -> None:
        """Add a statement."""
        self.lines.append(line)

    def read(self, name: str) -> tuple[str, str]:
        """Python name and carrier type of a register's value."""
        index, carrier = self.owner.register(self.function, name)
        if index not in self.locals:
            self.locals[index] = f"r{index}"
            self.emit(f"r{index} = R[{index}]")
            self.expect(f"r{index}", carrier)
        return self.locals[index], carrier

    def predicate(self, reg: Reg) -> str:
        """A guard as an expression."""
        name, carrier = self.read(reg.name)
        if carrier != "pred":
            raise Unsupported("a guard that is no predicate")
        return f"~{name}" if reg.negated else name

    def source(self, operand: Operand | None, kind: str) -> str:
        """An expression for a source operand as a value of a PTX type."""
        want = DTYPES[kind]
        if isinstance(operand, Reg):
            name, carrier = self.read(operand.name)
            if operand.negated:
                if carrier != "pred":
                    raise Unsupported("the negation of a register that is no predicate")
                name = f"(~{name})"
            return self.cast(name, carrier, kind)
        if isinstance(operand, Imm):
            return self.owner.constant(immediate(operand, kind))
        if isinstance(operand, Special):
            carrier = "s64" if operand.name in _WIDE_SPECIALS else "s32"
            return self.cast(f"S[{self.owner.special(operand.name)}]", carrier, kind)
        if isinstance(operand, Symbol):
            address = self.symbol(operand.name) + operand.offset
            if want.itemsize < 4:
                raise Unsupported("an address in a narrow register")
            value = np.int64(address).astype(f"i{want.itemsize}").view(want)
            return self.owner.constant(value)
        raise Unsupported("operand of an unexpected form")

    def cast(self, name: str, carrier: str, kind: str) -> str:
        """A register's value as a value of another type of its width, or its low bits."""
        have, want = DTYPES[carrier], DTYPES[kind]
        if have == want:
            return name
        if have == np.bool_ or want == np.bool_:
            raise Unsupported("a predicate for a number")
        if have.itemsize == want.itemsize:
            return f"{name}.view(t_{kind})"
        if have.itemsize > want.itemsize:
            integer = name if have.kind in "iu" else f"{name}.view(t_s{have.itemsize * 8})"
            return f"low({integer}, t_{kind})"
        raise Unsupported(f"a register narrower than .{kind}")

    def write(self, operand: Operand | None, expression: str, kind: str, guard: str = "") -> None:
        """Assign to a destination, extended to its register's width."""
        if operand is None:
            return
        if not isinstance(operand, Reg):
            raise Unsupported("a destination that is not a register")
        index, carrier = self.owner.register(self.function, operand.name)
        have, want = DTYPES[kind], DTYPES[carrier]
        if self.owner.checked:
            result = self.fresh()
            self.emit(f"{result} = {expression}")
            self.expect(result, kind)
            expression = result
        if (have == np.bool_) != (want == np.bool_):
            raise Unsupported("a predicate for a number")
        if have != want:
            if have.itemsize == want.itemsize:
                expression = f"{expression}.view(t_{carrier})"
            elif have.itemsize < want.itemsize:
                # Loads and conversions extend: signed types by sign, all others by zeros.
                if not kind.startswith("s"):
                    expression = f"{expression}.view(t_u{have.itemsize * 8})"
                expression = f"{expression}.astype(t_s{want.itemsize * 8})"
                if want.kind == "f":
                    expression += f".view(t_{carrier})"
            else:
                raise Unsupported(f"a register narrower than .{kind}")
        if guard:
            old, _ = self.read(operand.name)
            expression = f"choose({guard}, {expression}, {old})"
        self.locals[index] = f"r{index}"
        self.written[index] = operand.name
        self.emit(f"r{index} = {expression}")
        self.expect(f"r{index}", carrier)

    def expect(self, name: str, kind: str) -> None:
        """Where writes are checked, hold a value to the dtype of a type."""
        if self.owner.checked:
            self.emit(f"expect({name}, t_{kind})")

    def fresh(self) -> str:
        """A new local name."""
        self.temporary += 1
        return f"v{self.temporary}"

    def symbol(self, name: str) -> int:
        """A variable's address; a call's parameters stand for the callee's."""
        owner, name = self.owner.aliases[self.function.name].get(name, (self.function.name, name))
        if name in self.owner.module.functions:
            raise Unsupported(f"the address of the function {variable_name(name)!r}")
        return self.owner.layout.address(self.owner.module.functions[owner], name)
