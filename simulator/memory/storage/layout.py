"""Layout: addresses of all variables that a PTX text declares."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kernels.errors import PtxError
from kernels.ptx.module import (
    Address,
    Function,
    Instruction,
    Module,
    Special,
    Symbol,
    Variable,
    Vector,
)
from kernels.ptx.types import TYPE_SIZES

from ...core.geometry import Addresses
from ...isa.decoded import STACK, STACK_END, roles
from ...isa.memory.address_windows import ARRAY_BITS, MIDDLE
from ...isa.memory.stack import STACK_BYTES

MAX_GLOBAL = 1 << 29
"""Bytes of all ``.global`` and ``.const`` variables of a module."""
RESERVED = 1024
"""Bytes of a block's shared memory that are the system's (an H200's; CUDA guide, "Technical
Specifications per Compute Capability")."""
MAX_ARRAY = MIDDLE
"""Bytes of a global array: it begins in the middle of its range of addresses."""
HEAP = 9_997
WORKSPACE = 9_998
PARAMETERS = 9_999
MODULE_VARIABLES = 10_000
FUNCTIONS = 100_000
"""Array numbers of the heap, a grid's barrier, the parameter buffer, the first module
variable and the first function's address (where nothing can be read); arguments are below."""


def array_address(number: int) -> int:
    """Return the generic base address of a global array."""
    return (number + 1 << ARRAY_BITS) + MIDDLE


def function_addresses(functions: Iterable[str]) -> dict[str, int]:
    """Return the generic addresses that represent a module's functions, by name."""
    return {name: array_address(FUNCTIONS + number) for number, name in enumerate(functions)}


_Address = TypeVar("_Address", int, Addresses)


def array_number(address: _Address) -> _Address:
    """Return the number of the global array whose range contains an address."""
    return (address >> ARRAY_BITS) - 1


@dataclass
class Placed:
    """A variable and its offset in its space."""

    variable: Variable
    address: int


@dataclass
class Layout:
    """Addresses by (function name or ``""``, variable name), and the spaces' sizes in bytes.

    ``reserved``: zero bytes of the system at the start of shared memory. They exist if the program
    queries their address, as cooperative groups of several warps do.
    """

    placed: dict[tuple[str, str], Placed] = field(default_factory=dict)
    shared_bytes: int = 0
    reserved: int = 0
    dynamic_offset: int = 0
    local_bytes: int = 0

    def named(self, function: str, name: str) -> Placed | None:
        """Return the variable that a name denotes in a function, its own or the module's."""
        return self.placed.get((function, name)) or self.placed.get(("", name))

    def address(self, function: Function, name: str) -> int:
        """Return a variable's address in its own space.

        Raises:
            PtxError: There is no such variable.
        """
        if found := self.named(function.name, name):
            return found.address
        raise PtxError(f"{function.name} uses {name!r}, which is not declared")

    def variable(self, space: str, address: int) -> Placed | None:
        """Return the shared or local variable at an offset."""
        inside = [
            p
            for p in self.placed.values()
            if p.variable.space == space
            and p.address <= address
            and (address < p.address + p.variable.nbytes or p.variable.external)
        ]
        return max(inside, key=lambda p: p.address, default=None)

    def add(self, scope: str, variable: Variable, end: int) -> int:
        """Place a variable at the next aligned offset; return the new end."""
        start = -(-end // variable.align) * variable.align
        self.placed[scope, variable.name] = Placed(variable, start)
        return start + variable.nbytes


def lay_out(
    module: Module, functions: list[Function], stack: int = STACK_BYTES,
    first_variable: int = MODULE_VARIABLES,
) -> Layout:  # fmt: skip
    """Place the variables of a module and of the reachable functions.

    ``stack``: stack bytes of each recursive function. ``first_variable``: array number of the
    first ``.global`` or ``.const`` variable; the module's own come before those of functions.
    """
    layout = Layout()
    if any(_asks_for_reserved(ins) for function in functions for ins in function.body):
        layout.shared_bytes = layout.reserved = RESERVED
    for function in functions:
        if any("stack" in roles(ins).form.read for ins in function.body):
            function.variables[STACK] = Variable(STACK, "local", "b8", (stack,), 16)
            function.variables[STACK_END] = Variable(STACK_END, "local", "b8", (0,), 1)
    scopes = [("", list(module.variables.values()))]
    scopes += [(f.name, list(f.variables.values())) for f in functions]
    copied = {f.name: f.copy_of for f in functions if f.copy_of}
    mentioned = _mentioned(functions)
    dynamic: list[tuple[str, Variable]] = []
    numbered, total = first_variable, 0
    for scope, variables in scopes:
        for variable in variables:
            if variable.space == "shared":
                if variable.external or variable.nbytes == 0:
                    dynamic.append((scope, variable))
                elif scope or variable.name in mentioned:
                    layout.shared_bytes = layout.add(scope, variable, layout.shared_bytes)
            elif variable.space in ("global", "const"):
                total += variable.nbytes
                if total > MAX_GLOBAL or numbered == FUNCTIONS:
                    raise PtxError(
                        f"the variable {variable.name!r} is one too many: a module's variables "
                        f"may have {MAX_GLOBAL:,} bytes here"
                    )
                address = array_address(numbered)
                layout.placed[scope, variable.name] = Placed(variable, address)
                numbered += 1
            elif (copied.get(scope), variable.name) in layout.placed:
                # A thread is in one copy of a function at a time: they share their memory.
                variable.space = "local"
                layout.placed[scope, variable.name] = layout.placed[copied[scope], variable.name]
            elif variable.space in ("local", "param") and scope:
                local = dataclasses.replace(variable, space="local")
                layout.local_bytes = layout.add(scope, local, layout.local_bytes)
    for function in functions:
        for param in (*function.params, *function.results):
            if function.is_entry:
                address = array_address(PARAMETERS) + param.offset
                space = "param"
            elif function.copy_of and (function.copy_of, param.name) in layout.placed:
                same = layout.placed[function.copy_of, param.name]
                layout.placed[function.name, param.name] = same
                continue
            elif param.is_struct:
                layout.local_bytes = -(-layout.local_bytes // param.align) * param.align
                address, space = layout.local_bytes, "local"
                layout.local_bytes += param.nbytes
            else:
                continue
            made = Variable(param.name, space, param.type, (param.count,), param.align)
            layout.placed[function.name, param.name] = Placed(made, address)
    align = max([16, *(v.align for _, v in dynamic)]) if dynamic else 1
    layout.dynamic_offset = -(-layout.shared_bytes // align) * align
    for scope, variable in dynamic:
        layout.placed[scope, variable.name] = Placed(variable, layout.dynamic_offset)
    return layout


def _asks_for_reserved(ins: Instruction) -> bool:
    named = (item.name for item in ins.operands if isinstance(item, Special))
    return any(name.startswith("%reserved_smem_offset") for name in named)


def _mentioned(functions: list[Function]) -> set[str]:
    """Return the names of module variables that functions use."""
    names: set[str] = set()
    for function in functions:
        for ins in function.body:
            for operand in ins.operands:
                items = operand.items if isinstance(operand, Vector) else (operand,)
                for item in items:
                    base = item.base if isinstance(item, Address) else item
                    if isinstance(base, Symbol):
                        names.add(base.name)
    return names


def variable_bytes(layout: Layout, variable: Variable, resolve: dict[str, int]) -> bytes:
    """Return a module variable's initial values; the rest is zero.

    Raises:
        PtxError: An initialiser names an object without address.
    """
    size = TYPE_SIZES[variable.type]
    content = bytearray()
    for value in variable.init:
        if isinstance(value, int):
            number = value
        else:
            if value.name not in resolve:
                raise PtxError(f"the initialiser of {variable.name!r} names {value.name!r}")
            number = resolve[value.name] + value.offset
        content += (number & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    return bytes(content)
