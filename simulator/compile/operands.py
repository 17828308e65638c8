"""Operands of PTX as typed values, for one function."""

import itertools

import numpy as np

from kernels.ptx import module
from kernels.ptx.module import Imm, Operand, Reg, Symbol

from ..isa import DTYPES, Unsupported
from ..memory.layout import function_addresses
from .blocks import Block
from .context import CompileContext
from .ir_values import Constant, Register, Source, Special, Target
from .values import immediate

_WIDE_SPECIALS = ("%clock64", "%globaltimer", "%gridid")


class Operands:
    """What a block's instructions read and write.

    Attributes:
        written: The registers that it writes, by name, in the order of their writes.
        numbers: Numbers for temporaries.
    """

    def __init__(self, context: CompileContext, block: Block) -> None:
        self.context = context
        self.block = block
        self.function = block.function
        self.written: dict[Register, str] = {}
        self.numbers = itertools.count(1)
        self.known, self.sources = context.operands[block.function.name]

    def register(self, name: str) -> Register:
        """A register, or a scalar parameter."""
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = self.context.register(self.function, name)
        return found

    def guard(self, reg: Reg | None) -> Source | None:
        """The lanes that an instruction's guard lets execute it; ``None`` for all."""
        if reg is None:
            return None
        register = self.register(reg.name)
        if register.carrier != "pred":
            raise Unsupported("a guard that is no predicate: use setp")
        return Source(register, "pred", reg.negated)

    def source(self, operand: Operand | None, type: str) -> Source:
        """A source operand as a value of a PTX type."""
        if isinstance(operand, Reg):
            key = (operand.name, type, operand.negated)
            found = self.sources.get(key)
            if found is None:
                register = self.register(operand.name)
                if operand.negated and register.carrier != "pred":
                    raise Unsupported("the negation of a register that is no predicate: use not")
                _must_fit(register.carrier, type)
                found = self.sources[key] = Source(register, type, operand.negated)
            return found
        if isinstance(operand, Imm):
            return self.constant(operand, type)
        if isinstance(operand, module.Special):
            carrier = "s64" if operand.name in _WIDE_SPECIALS else "s32"
            carrier = "pred" if operand.name == "%is_explicit_cluster" else carrier
            _must_fit(carrier, type)
            return Source(Special(operand.name, carrier), type)
        if isinstance(operand, Symbol):
            want = DTYPES[type]
            if want.itemsize < 4:
                raise Unsupported("an address in a narrow register: use .b32 or .b64")
            held = self.context.local_address(self.function, operand.name)
            if held:
                if operand.offset:
                    raise Unsupported("part of a recursive function's variable: use mov and add")
                return Source(held, type)
            address = np.int64(self.symbol(operand.name) + operand.offset)
            value = address.astype(f"i{want.itemsize}").view(want)
            return Source(Constant(value, operand), type)
        raise Unsupported("such an operand: use a register")

    def constant(self, operand: Imm, type: str) -> Source:
        """A constant: the same object wherever it stands, so that a value is known again."""
        key = (operand.kind, operand.value, type)
        found = self.context.constants.get(key)
        if found is None:
            found = Source(Constant(immediate(operand, type), operand), type)
            self.context.constants[key] = found
        return found

    def target(self, operand: Operand | None, type: str) -> Target | None:
        """A destination operand that gets a value of a PTX type; ``None`` for a sink."""
        if operand is None:
            return None
        if not isinstance(operand, Reg):
            raise Unsupported("such a destination: use a register")
        register = self.register(operand.name)
        if (type == "pred") != (register.carrier == "pred"):
            raise Unsupported("a predicate for a number: use selp or setp")
        if DTYPES[type].itemsize > DTYPES[register.carrier].itemsize:
            raise Unsupported(f"a register narrower than .{type}: use cvt")
        self.written[register] = operand.name
        return Target(register, type)

    def symbol(self, name: str) -> int:
        """A variable's address; a call's parameters stand for the callee's."""
        owner, name = self.context.resolve(self.function, name)
        functions = self.context.module.functions
        if name in functions and name not in self.function.variables:
            return function_addresses(functions)[name]
        return self.context.layout.address(self.context.module.functions[owner], name)


def _must_fit(carrier: str, type: str) -> None:
    """A register is read as a type of its width, or its low bits are."""
    if (carrier == "pred") != (type == "pred"):
        raise Unsupported("a predicate for a number: use selp or setp")
    if DTYPES[carrier].itemsize < DTYPES[type].itemsize:
        raise Unsupported(f"a register narrower than .{type}: use cvt")
