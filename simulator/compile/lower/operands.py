"""PTX operands as typed IR values, for one function."""

import itertools

import numpy as np

from kernels.ptx import module
from kernels.ptx.module import Address, Imm, Instruction, Operand, Reg, Symbol

from ...isa import DTYPES, Unsupported
from ...isa.memory.address_windows import WINDOWS
from ...memory.site import Site, make_site
from ...memory.storage.layout import function_addresses
from ..cfg.basic_blocks import Block
from ..context import CompileContext
from ..ir_values import (
    Constant,
    Register,
    ResultValue,
    SourceValue,
    SpecialRegisterValue,
    Temporary,
)
from .values import immediate

_WIDE_SPECIALS = ("%clock64", "%globaltimer", "%gridid")


class Operands:
    """Operands of one block's instructions.

    Attributes:
        written: Registers that the block writes, by name, in order of the writes.
        numbers: Generator of numbers for temporaries.
    """

    def __init__(self, context: CompileContext, block: Block) -> None:
        self.context = context
        self.block = block
        self.function = block.function
        self.written: dict[Register, str] = {}
        self.numbers = itertools.count(1)
        self.known, self.sources = context.operand_caches[block.function.name]

    def register(self, name: str) -> Register:
        """Return a register or a scalar parameter."""
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = self.context.register(self.function, name)
        return found

    def temporary(self, carrier: str) -> Temporary:
        """Return a new temporary."""
        return Temporary(next(self.numbers), carrier)

    def guard(self, reg: Reg | None) -> SourceValue | None:
        """Return an instruction's guard predicate; ``None``: all lanes."""
        if reg is None:
            return None
        register = self.register(reg.name)
        if register.carrier != "pred":
            raise Unsupported("a guard that is no predicate: use setp")
        return SourceValue(register, "pred", reg.negated)

    def source(self, operand: Operand | None, type: str) -> SourceValue:
        """Return a source operand as a value of a PTX type."""
        if isinstance(operand, Reg):
            key = (operand.name, type, operand.negated)
            found = self.sources.get(key)
            if found is None:
                register = self.register(operand.name)
                if operand.negated and register.carrier != "pred":
                    raise Unsupported("the negation of a register that is no predicate: use not")
                _must_fit(register.carrier, type)
                found = self.sources[key] = SourceValue(register, type, operand.negated)
            return found
        if isinstance(operand, Imm):
            return self.constant(operand, type)
        if isinstance(operand, module.Special):
            carrier = "s64" if operand.name in _WIDE_SPECIALS else "s32"
            carrier = "pred" if operand.name == "%is_explicit_cluster" else carrier
            _must_fit(carrier, type)
            return SourceValue(SpecialRegisterValue(operand.name, carrier), type)
        if isinstance(operand, Symbol):
            want = DTYPES[type]
            if want.itemsize < 4:
                raise Unsupported("an address in a narrow register: use .b32 or .b64")
            location = self.context.local_address(self.function, operand.name)
            if location:
                if operand.offset:
                    raise Unsupported("part of a recursive function's variable: use mov and add")
                return SourceValue(location, type)
            address = np.int64(self.symbol(operand.name) + operand.offset)
            value = address.astype(f"i{want.itemsize}").view(want)
            return SourceValue(Constant(value, operand), type)
        raise Unsupported("such an operand: use a register")

    def constant(self, operand: Imm, type: str) -> SourceValue:
        """Return a constant; equal constants are one object, so that caches recognise them."""
        key = (operand.kind, operand.value, type)
        found = self.context.constants.get(key)
        if found is None:
            found = SourceValue(Constant(immediate(operand, type), operand), type)
            self.context.constants[key] = found
        return found

    def target(self, operand: Operand | None, type: str) -> ResultValue | None:
        """Return a destination operand of a PTX type; ``None`` for a sink."""
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
        return ResultValue(register, type)

    def base(self, address: Address | None, site: Site) -> SourceValue:
        """Return the variable part of an address; the constant part belongs to the site."""
        site.operand = address
        if address is None:
            raise Unsupported("no address: use one in brackets")
        if abs(address.offset) >= 1 << 62:
            raise Unsupported(f"an offset of {address.offset}: use add.s64")
        site.offset = address.offset
        if isinstance(address.base, Reg):
            register = self.register(address.base.name)
            if register.carrier not in ("s64", "s32"):
                raise Unsupported("an address in such a register: use .b64")
            return SourceValue(register, "s64")  # with its sign: ``s[-1]`` stays in front of ``s``
        if isinstance(address.base, Imm):
            return SourceValue(Constant(np.int64(address.base.value), address.base), "s64")
        name = address.base.name
        if site.space == "local" and (location := self.context.local_address(self.function, name)):
            return SourceValue(location, "s64")
        start = self.symbol(name)
        if site.space == "generic":  # ptxas makes a generic address of the variable's
            home = (self.function.variables | self.context.module.variables).get(name)
            start += WINDOWS.get(home.space, 0) if home else 0
        site.variable = name
        return SourceValue(Constant(np.int64(start), address.base), "s64")

    def wide(self, operand: Operand | None) -> SourceValue:
        """Return a 32-bit number widened to 64 bits, as for an address."""
        if isinstance(operand, Reg):
            return SourceValue(self.register(operand.name), "b64")
        return self.source(operand, "b64")

    def site(self, ins: Instruction, access: str) -> Site:
        """Return the site of a memory instruction, as the next of the program."""
        sites = self.context.sites
        made = make_site(ins, len(sites), access, self.function, self.block.number)
        sites.append(made)
        return made

    def symbol(self, name: str) -> int:
        """Return a variable's address; call arguments resolve to the callee's parameters."""
        owner, name = self.context.resolve(self.function, name)
        functions = self.context.module.functions
        if name in functions and name not in self.function.variables:
            return function_addresses(functions)[name]
        return self.context.layout.address(self.context.module.functions[owner], name)


def _must_fit(carrier: str, type: str) -> None:
    """Check that a register is read as a type that is not wider than it."""
    if (carrier == "pred") != (type == "pred"):
        raise Unsupported("a predicate for a number: use selp or setp")
    if DTYPES[carrier].itemsize < DTYPES[type].itemsize:
        raise Unsupported(f"a register narrower than .{type}: use cvt")
