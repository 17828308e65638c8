"""PTX to Python: each basic block becomes one generated function.

Its instructions become steps (``lower``), passes add to the steps (``counting``, ``tracing``,
``guards``), and Python is made of them (``emit``).

A block's function comes in two forms. ``converged`` runs when every thread that is
alive stands at this block: results simply replace registers. ``diverged`` runs when
some wait elsewhere: results that outlive the block are merged under the mask.

Set ``TILESCOPE_DUMP`` to a folder to read what was generated.
"""

import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence

from kernels.errors import PtxError
from kernels.ptx.module import Function, Module, Symbol

from ..isa import DTYPES, Flow, parse
from ..isa.architectures import number
from ..isa.roles import CARRY, HALVES, STACK_POINTER, roles
from ..isa.stack import STACK_BYTES
from ..memory.layout import lay_out
from ..memory.origins import set_rooms
from .blocks import Block, find_live, reachable, split
from .counting import counted
from .flights import Flights
from .flow import in_run_order
from .ir_values import Register, Source
from .lower import RETURN, Lowering
from .needed import Needed
from .program import CompiledBlock, Program
from .recursion import Recursion, check_groups, groups
from .steps import Compute, Lowered, Step
from .tracing import Tracing, loaded_data
from .undefined import Shadowing

_REGISTER_CARRIERS = {
    "pred": "pred", "f32": "f32", "f64": "f64",
    **{f"{sign}{bits}": f"s{bits}" for sign in "bsu" for bits in (8, 16, 32, 64)},
    "f16": "s16", "bf16": "s16", "f16x2": "s32", "bf16x2": "s32",
}  # fmt: skip


_OWN = {CARRY: "pred", RETURN: "u32", STACK_POINTER: "u64"}
"""Registers that no text declares."""
Known = tuple[dict[str, Register], dict[tuple[str, str, bool], Source]]
"""Registers of a function by their names, and what is read of them by name and type."""

CHECKED = "TILESCOPE_CHECK_WRITES"
"""Set in the environment to have generated code check the dtype of every register it writes."""


def compile_ptx(text: str, entry: str, arch: int = 0, stack: int = STACK_BYTES) -> Program:
    """Parse and compile one entry of a PTX text, for an architecture or the text's own target.

    ``stack``: bytes of a thread's stack, for functions that call themselves.

    Raises:
        PtxError: The text cannot be parsed, or has an instruction without a row.
    """
    return _compiled(text, entry, arch, stack, bool(os.environ.get(CHECKED)))


@functools.lru_cache(maxsize=32)
def _compiled(text: str, entry: str, arch: int, stack: int, checked: bool) -> Program:
    return Compiler(parse(text), entry, checked, arch=arch, stack=stack).program()


@functools.lru_cache(maxsize=8)
def compile_traced(text: str, entry: str, arch: int = 0, stack: int = STACK_BYTES) -> Program:
    """As ``compile_ptx``, with blocks that tell a trace what they do."""
    return Compiler(parse(text), entry, traced=True, arch=arch, stack=stack).program()


@functools.lru_cache(maxsize=8)
def compile_shadowed(text: str, entry: str, arch: int = 0, stack: int = STACK_BYTES) -> Program:
    """As ``compile_ptx``, with blocks that know which bits are undefined."""
    return Compiler(parse(text), entry, shadowed=True, arch=arch, stack=stack).program()


class Compiler:
    """Compiles the functions that an entry reaches.

    Generated code that is ``checked`` checks what it writes (see ``CHECKED``); if ``traced``, it
    tells a trace what it does; if ``shadowed``, it knows which bits are undefined. ``arch`` is the
    architecture's number; 0: the PTX's own target.
    """

    def __init__(
        self,
        module: Module,
        entry: str,
        checked: bool = False,
        traced: bool = False,
        arch: int = 0,
        shadowed: bool = False,
        stack: int = STACK_BYTES,
    ) -> None:
        if entry not in module.functions:
            raise PtxError(f"no body for the entry {entry!r} in this PTX")
        self.module = module
        self.checked, self.shadowed = checked, shadowed
        self.functions = reachable(module, entry)
        self.layout = lay_out(module, self.functions, stack)
        self.result = Program(module.functions[entry], module, self.layout)
        self.result.arch, self.result.stack = arch or number(module.target), stack
        self.registers: dict[tuple[str, str], Register] = {}
        self.known: dict[str, Known] = {f.name: ({}, {}) for f in self.functions}
        self.constants: dict[tuple[str, int, str], Source] = {}
        self.entries: dict[str, int] = {}
        self.flights: dict[int, int] = {}
        self.groups = self.recursion()
        self.aliases = {f.name: self.call_aliases(f) for f in self.functions}
        placed = self.layout.placed
        for scope, names in self.aliases.items():
            for name, formal in names.items():  # the caller's stands where the callee's does
                if {(scope, name), formal} <= placed.keys():
                    address = placed[formal].address
                    placed[scope, name] = dataclasses.replace(placed[scope, name], address=address)
        if traced:
            self.result.watched = []

    def program(self) -> Program:
        """The finished program."""
        first = 0
        blocks: list[Block] = []
        for function in self.functions:
            own = in_run_order(split(function, first))
            find_live(own)
            self.flights |= Flights(own, self.result.flights, not self.module.unoptimised).numbers
            self.entries[function.name] = first
            first += len(own)
            blocks += own
        if self.result.watched is not None:
            self.result.data = loaded_data(self, blocks)
        for block in blocks:
            self.result.blocks.append(self.compiled(Lowering(self, block).lower()))
        set_rooms(self.layout, self.functions, self.result.sites)
        self.result.start = self.entries[self.result.entry.name]
        self.result.registers = [DTYPES[r.carrier].type(0) for r in self.registers.values()]
        if len(self.functions) == 1 and not self.flights and not self.shadowed:
            numbers = {name: r.number for (_, name), r in self.registers.items()}
            entry = self.result.entry
            if self.result.watched is None:
                self.result.needed = Needed(blocks, entry.registers, numbers)
        stride = -(-self.layout.local_bytes // 16) * 16
        for group in self.groups.values():
            group.settle(stride, self.result.stack)
            self.layout.local_bytes = max(self.layout.local_bytes, stride * (group.most + 1))
            for register, address in group.addresses.items():
                self.result.registers[register.number] = DTYPES["s64"].type(address)
        return self.result

    def recursion(self) -> dict[str, Recursion]:
        """The groups of functions that can call each other, by each function's name."""
        found = groups(self.functions)
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

    def local(self, function: Function, name: str) -> Register | None:
        """The register with a local variable's address, where it is not always the same."""
        placed = self.layout.placed.get((function.name, name))
        group = self.groups.get(function.name)
        if group is None or placed is None or placed.variable.space != "local":
            return None
        key = function.name, f"address of {name}"
        made = self.registers.setdefault(key, Register(len(self.registers), "s64"))
        group.addresses[made] = placed.address
        return made

    def compiled(self, lowered: Lowered) -> CompiledBlock:
        """A block after the passes that number what they add."""
        result, number = self.result, lowered.block.number
        if self.shadowed:
            lowered = Shadowing(self, lowered, result.uses).lowered()
        numbers = lowered.numbers
        steps: Sequence[Step] = lowered.steps
        if result.watched is not None:
            steps = Tracing(lowered, result.watched, result.data, numbers).steps()
        steps = counted(steps, number, result.arithmetic)
        for step in steps:
            if isinstance(step, Compute):
                result.approximate |= step.op.approximate
        made = CompiledBlock(lowered, steps, numbers, self.checked, self.shadowed)
        made.forgets = tuple(self.forgotten(lowered))
        return made

    def forgotten(self, lowered: Lowered) -> Iterator[range]:
        """The bytes of local memory that hold nothing when a call begins, or is over.

        A function's own variables, and the structures that it takes and gives. (Those that call
        themselves have frames instead.)
        """
        end = lowered.end
        if end is None or end.how not in ("call", "return"):
            return
        begins = end.how == "call"
        name = end.instruction.targets[0] if begins else lowered.block.function.name
        function = self.module.functions[name]
        if name in self.groups:
            return
        own = [name for name, v in function.variables.items() if v.space == "local"]
        names = [*own, *(p.name for p in function.results)]
        for variable in names if begins else [p.name for p in function.params]:
            placed = self.layout.placed.get((function.name, variable))
            if placed and placed.variable.space == "local":
                yield range(placed.address, placed.address + placed.variable.nbytes)

    def call_aliases(self, function: Function) -> dict[str, tuple[str, str]]:
        """A call's ``.param`` variables stand for the callee's parameters themselves."""
        found: dict[str, tuple[str, str]] = {}
        for ins in function.body:
            if roles(ins).flow is not Flow.CALL:
                continue
            callee = self.module.functions[ins.targets[0]]
            given = [operand.name for operand in ins.operands if isinstance(operand, Symbol)]
            formals = [*callee.params, *callee.results]
            for name, param in zip([*given, *ins.results], formals, strict=True):
                target = (callee.name, param.name)
                if found.setdefault(name, target) != target:
                    raise PtxError(f"PTX line {ins.line}: {name!r} serves two different calls")
        return found

    def register(self, function: Function, name: str) -> Register:
        """A register, or a scalar parameter of a function."""
        owner, name = self.aliases[function.name].get(name, (function.name, name))
        key = (owner, name)
        if key not in self.registers:
            type = self.declared(self.module.functions[owner], name)
            self.registers[key] = Register(len(self.registers), _REGISTER_CARRIERS[type])
        return self.registers[key]

    def shadow(self, register: Register) -> Register:
        """The register that holds which bits of another one are undefined."""
        key = ("", str(register.number))
        if key not in self.registers:
            carrier = {"f32": "s32", "f64": "s64"}.get(register.carrier, register.carrier)
            self.registers[key] = Register(len(self.registers), carrier)
        return self.registers[key]

    def declared(self, home: Function, name: str) -> str:
        """The type of a register, a parameter, or what stands for one."""
        type = home.registers.get(name) or _OWN.get(name)
        if name.endswith(HALVES):
            return "b64"
        if not type:
            params = {p.name: p.type for p in (*home.params, *home.results)}
            variable = home.variables.get(name)
            passed = variable.type if variable and not variable.dims else ""
            type = params.get(name, passed)
        if not type:
            raise PtxError(f"the register {name!r} is not declared in {home.name}")
        return type
