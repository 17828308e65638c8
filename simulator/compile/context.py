"""Shared state of one compilation, for lowering and passes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kernels.errors import PtxError
from kernels.ptx.module import Function, Module, Symbol

from ..isa import Flow
from ..isa.decoded import CARRY, HALVES, STACK_POINTER, roles
from ..memory.site import Site
from ..memory.storage.layout import Layout
from .cfg.call_graph import Recursion, check_groups, strongly_connected_components
from .ir_values import Register, SourceValue

RETURN = "%return"
"""The register that holds the block a function returns to."""
_UNDECLARED = {CARRY: "pred", RETURN: "u32", STACK_POINTER: "u64"}
"""Types of the registers that no text declares."""
_REGISTER_CARRIERS = {
    "pred": "pred", "f32": "f32", "f64": "f64",
    **{f"{sign}{bits}": f"s{bits}" for sign in "bsu" for bits in (8, 16, 32, 64)},
    "f16": "s16", "bf16": "s16", "f16x2": "s32", "bf16x2": "s32",
}  # fmt: skip


class OperandCache(NamedTuple):
    """Operands of one function, each created once.

    Attributes:
        registers: Registers by name.
        sources: Register operands by name, type and negation.
    """

    registers: dict[str, Register]
    sources: dict[tuple[str, str, bool], SourceValue]


class CompileContext:
    """State of one compilation, shared by lowering and the passes.

    Args:
        module: The PTX module, including copies of functions for their call sites.
        functions: The entry and its callees, callees first.
        layout: Addresses of variables; call arguments are placed at the callee's parameters.
        arch: Architecture number.

    Attributes:
        is_traced: Whether trace probes are inserted.
        is_shadowed: Whether V bits are computed.
        depends_on_arch: Whether any result depends on the architecture.
        registers: Registers by function and name, in order of their numbers.
        sites: Memory accesses, in order of their numbers.
        params: Offset and type of the parts of kernel parameters that are read.
        aliases: For each function, the callee's parameter of each call variable.
        recursions: Group of each recursive function.
        entries: Number of each function's first block.
        flights: Index in ``Program.flights``, by the instruction's ``id``.
        operand_caches: Operands of each function.
        constants: Constant operands by kind, bits and type.
    """

    def __init__(
        self, module: Module, functions: Sequence[Function], layout: Layout, arch: int,
        is_traced: bool = False, is_shadowed: bool = False,
    ) -> None:  # fmt: skip
        self.module, self.functions, self.layout, self.arch = module, functions, layout, arch
        self.is_traced, self.is_shadowed = is_traced, is_shadowed
        self.depends_on_arch = False
        self.registers: dict[tuple[str, str], Register] = {}
        self.sites: list[Site] = []
        self.params: dict[tuple[int, str], None] = {}
        self.entries: dict[str, int] = {}
        self.flights: dict[int, int] = {}
        self.operand_caches = {function.name: OperandCache({}, {}) for function in functions}
        self.constants: dict[tuple[str, int, str], SourceValue] = {}
        self.recursions = self._recursions()
        self.aliases = {function.name: _call_aliases(module, function) for function in functions}
        self._place_aliases()

    def resolve(self, function: Function, name: str) -> tuple[str, str]:
        """Return the owner of a name, and the name there.

        An argument or result of a call resolves to the callee's parameter.
        """
        return self.aliases[function.name].get(name, (function.name, name))

    def register(self, function: Function, name: str) -> Register:
        """Return a register, or a scalar parameter of a function.

        Raises:
            PtxError: The function declares no such register.
        """
        key = self.resolve(function, name)
        if key not in self.registers:
            owner, own_name = key
            type = _declared_type(self.module.functions[owner], own_name)
            self.registers[key] = Register(len(self.registers), _REGISTER_CARRIERS[type])
        return self.registers[key]

    def shadow(self, register: Register) -> Register:
        """Return the register with another register's V bits."""
        key = ("", str(register.number))
        if key not in self.registers:
            carrier = {"f32": "s32", "f64": "s64"}.get(register.carrier, register.carrier)
            self.registers[key] = Register(len(self.registers), carrier)
        return self.registers[key]

    def local_address(self, function: Function, name: str) -> Register | None:
        """Return the register with a local variable's address, or ``None`` if it is constant.

        Only recursive functions have such registers.
        """
        placed = self.layout.placed.get((function.name, name))
        group = self.recursions.get(function.name)
        if group is None or placed is None or placed.variable.space != "local":
            return None
        key = function.name, f"address of {name}"
        made = self.registers.setdefault(key, Register(len(self.registers), "s64"))
        group.addresses[made] = placed.address
        return made

    def _recursions(self) -> Mapping[str, Recursion]:
        found = strongly_connected_components(self.functions)
        check_groups(self.functions, found)
        made: dict[frozenset[str], Recursion] = {}
        for names in found.values():
            depth = self.registers.setdefault(
                ("", f"depth of {min(names)}"), Register(len(self.registers), "s64")
            )
            own = max(
                sum(v.nbytes for v in f.variables.values() if v.space == "local")
                for f in map(self.module.functions.__getitem__, names)
            )
            made[names] = Recursion(names, depth, own)
        return {name: made[names] for name, names in found.items()}

    def _place_aliases(self) -> None:
        """Place call variables at the callee's parameters, which they represent."""
        placed = self.layout.placed
        for scope, names in self.aliases.items():
            for name, formal in names.items():
                if {(scope, name), formal} <= placed.keys():
                    address = placed[formal].address
                    placed[scope, name] = dataclasses.replace(placed[scope, name], address=address)


def _call_aliases(module: Module, function: Function) -> dict[str, tuple[str, str]]:
    """Return the callees' parameters by the ``.param`` variables of a function's calls.

    Raises:
        PtxError: One variable is an argument of calls of different functions.
    """
    found: dict[str, tuple[str, str]] = {}
    for ins in function.body:
        if roles(ins).flow is not Flow.CALL:
            continue
        callee = module.functions[ins.targets[0]]
        given = [operand.name for operand in ins.operands if isinstance(operand, Symbol)]
        formals = [*callee.params, *callee.results]
        for name, param in zip([*given, *ins.results], formals, strict=True):
            target = (callee.name, param.name)
            if found.setdefault(name, target) != target:
                raise PtxError(f"PTX line {ins.line}: {name!r} serves two different calls")
    return found


def _declared_type(function: Function, name: str) -> str:
    """Return the type of a register, a parameter, or a call variable.

    Raises:
        PtxError: The function declares none of this name.
    """
    type = function.registers.get(name) or _UNDECLARED.get(name)
    if name.endswith(HALVES):
        return "b64"
    if not type:
        params = {p.name: p.type for p in (*function.params, *function.results)}
        variable = function.variables.get(name)
        passed = variable.type if variable and not variable.dims else ""
        type = params.get(name, passed)
    if not type:
        raise PtxError(f"the register {name!r} is not declared in {function.name}")
    return type
