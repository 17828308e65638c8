"""Compiler from PTX to Python: each basic block becomes one generated function.

Instructions are translated to IR operations (``lower``), passes rewrite these (``counting``,
``tracing``, ``guards``), and Python is generated (``emit``).

A block's function has two forms. ``converged`` runs if every live thread is at this block: results
replace registers. ``diverged`` runs if some are elsewhere: results that outlive the block are
merged under the mask.

Set ``TILESCOPE_DUMP`` to a folder to read the generated code.
"""

import functools
import os
from collections.abc import Iterator, Sequence

from kernels.errors import PtxError
from kernels.ptx.module import Module

from ..isa import DTYPES, parse
from ..isa.architectures import number
from ..isa.memory.stack import STACK_BYTES
from ..memory.addressing.provenance import set_object_bounds
from ..memory.storage.layout import MODULE_VARIABLES, lay_out
from .cfg.basic_blocks import Block, compute_liveness, reachable, split
from .cfg.cfg import order_for_reconvergence
from .codegen.liveness import LiveRegisters
from .context import CompileContext
from .ir import Compute, IrOp, Lowered
from .lower.lowering import Lowering
from .passes.counting import counted
from .passes.definedness import DefinednessPass
from .passes.tracing import Tracing, loaded_data
from .passes.wgmma_dataflow import Flights
from .program import CompiledBlock, Program

CHECKED = "TILESCOPE_CHECK_WRITES"
"""Set in the environment to have generated code check the dtype of every register it writes."""


def compile_ptx(
    text: str, entry: str, arch: int = 0, stack: int = STACK_BYTES,
    first_variable: int = MODULE_VARIABLES, traced: bool = False, shadowed: bool = False,
) -> Program:  # fmt: skip
    """Parse and compile one entry of a PTX text.

    ``arch``: architecture number; 0: the text's own target. ``stack``: bytes of a thread's stack,
    for recursive functions. ``first_variable``: see ``layout.lay_out``. ``traced``: with trace
    probes. ``shadowed``: with V bits.

    Raises:
        PtxError: The text cannot be parsed, or uses an unsupported instruction.
    """
    checked = not (traced or shadowed) and bool(os.environ.get(CHECKED))
    return _compiled(text, entry, checked, traced, arch, shadowed, stack, first_variable)


@functools.lru_cache(maxsize=48)
def _compiled(
    text: str, entry: str, checked: bool, traced: bool, arch: int, shadowed: bool, stack: int,
    first_variable: int,
) -> Program:  # fmt: skip
    module = parse(text)
    return Compiler(module, entry, checked, traced, arch, shadowed, stack, first_variable).program()


def compile_shadowed(text: str, entry: str, like: Program) -> Program:
    """Compile an entry again, with V bits, for the architecture and memory of a program."""
    return compile_ptx(text, entry, like.arch, like.stack, like.first_variable, shadowed=True)


class Compiler:
    """Compiles the functions that an entry reaches.

    ``checked``: generated code checks its results' dtypes (see ``CHECKED``). ``traced``: it has
    trace probes. ``shadowed``: it computes V bits. ``arch``: architecture number; 0: the PTX's
    target.
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
        first_variable: int = MODULE_VARIABLES,
    ) -> None:
        if entry not in module.functions:
            raise PtxError(f"no body for the entry {entry!r} in this PTX")
        self.checked = checked
        functions = reachable(module, entry)
        layout = lay_out(module, functions, stack, first_variable)
        arch = arch or number(module.target)
        self.context = CompileContext(module, functions, layout, arch, traced, shadowed)
        self.result = Program(
            module.functions[entry], module, layout, sites=self.context.sites,
            params=self.context.params, arch=arch, stack=stack, first_variable=first_variable,
        )  # fmt: skip
        if traced:
            self.result.watched = []

    def program(self) -> Program:
        """Return the compiled program."""
        context, result = self.context, self.result
        first = 0
        blocks: list[Block] = []
        for function in context.functions:
            own = order_for_reconvergence(split(function, first))
            compute_liveness(own)
            optimised = not context.module.unoptimised
            context.flights |= Flights(own, result.flights, optimised).numbers
            context.entries[function.name] = first
            first += len(own)
            blocks += own
        if context.is_traced:
            result.data = loaded_data(context, blocks)
        for block in blocks:
            result.blocks.append(self.compiled(Lowering(context, block).lower()))
        set_object_bounds(context.layout, context.functions, context.sites)
        result.by_arch = context.depends_on_arch
        result.start = context.entries[result.entry.name]
        result.registers = [DTYPES[r.carrier].type(0) for r in context.registers.values()]
        simple = len(context.functions) == 1 and not context.flights
        if simple and not (context.is_shadowed or context.is_traced):
            numbers = {name: r.number for (_, name), r in context.registers.items()}
            result.needed = LiveRegisters(blocks, result.entry.registers, numbers)
        self.settle_recursions()
        return result

    def settle_recursions(self) -> None:
        """Assign frames of local memory to recursive functions."""
        layout, result = self.context.layout, self.result
        stride = -(-layout.local_bytes // 16) * 16
        for group in self.context.recursions.values():
            group.settle(stride, result.stack)
            layout.local_bytes = max(layout.local_bytes, stride * (group.max_depth + 1))
            for register, address in group.addresses.items():
                result.registers[register.number] = DTYPES["s64"].type(address)

    def compiled(self, lowered: Lowered) -> CompiledBlock:
        """Run the passes that number what they insert, and return the block."""
        context, result, number = self.context, self.result, lowered.block.number
        if context.is_shadowed:
            lowered = DefinednessPass(context, lowered, result.uses).lowered()
        numbers = lowered.numbers
        steps: Sequence[IrOp] = lowered.steps
        if result.watched is not None:
            steps = Tracing(lowered, result.watched, result.data, numbers).steps()
        steps = counted(steps, number, result.arithmetic)
        for step in steps:
            if isinstance(step, Compute):
                result.approximate |= step.op.approximate
        made = CompiledBlock(lowered, steps, numbers, self.checked, context.is_shadowed)
        made.forgets = tuple(self.forgotten(lowered))
        return made

    def forgotten(self, lowered: Lowered) -> Iterator[range]:
        """Yield the bytes of local memory that become undefined at a call or return.

        These are a function's variables and its structure parameters. Recursive functions have
        frames instead.
        """
        end = lowered.end
        if end is None or end.how not in ("call", "return"):
            return
        begins = end.how == "call"
        name = end.instruction.targets[0] if begins else lowered.block.function.name
        function = self.context.module.functions[name]
        if name in self.context.recursions:
            return
        own = [name for name, v in function.variables.items() if v.space == "local"]
        names = [*own, *(p.name for p in function.results)]
        for variable in names if begins else [p.name for p in function.params]:
            placed = self.context.layout.placed.get((function.name, variable))
            if placed and placed.variable.space == "local":
                yield range(placed.address, placed.address + placed.variable.nbytes)
