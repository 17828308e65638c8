"""Compiled kernel: basic blocks of generated Python, and their metadata."""

from __future__ import annotations

import functools
import linecache
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast

from kernels.ptx.module import Function, Instruction, Module

from ..core.geometry import Lanes
from ..memory.site import Site
from ..memory.storage.layout import MODULE_VARIABLES, Layout
from .cfg.basic_blocks import EXIT
from .codegen.body import Body
from .codegen.emit import Emitter
from .codegen.liveness import LiveRegisters
from .codegen.substitutes import Substitutes
from .ir import BarrierOp, IrOp, Lowered, SyscallOp
from .passes.fuse_fma_chains import chained
from .passes.group_loads import together
from .passes.predication import predicated
from .passes.wgmma_dataflow import WgmmaRegisterUse
from .probes import Arithmetic, Data, Watched

Fact = TypeVar("Fact")
Code = Callable[..., Any]
"""A block's function: of the registers, which it changes, and the mask; what its end decides."""


class Form(IntEnum):
    """Variants of a block's function.

    ``CONVERGED``: for all live lanes. ``DIVERGED``: for some lanes; takes the live registers of the
    others (``LiveRegisters``). ``JOINED``: for lanes that met others at copies of the block's first
    instruction; also takes the exchanged values. ``ASKED``: returns the function and operands of
    each value that such lanes contribute.
    """

    CONVERGED, DIVERGED, JOINED, ASKED = range(4)


class CompiledBlock:
    """An executable basic block.

    Attributes:
        lowered: Its IR.
        steps: The IR after ``counting`` and ``tracing``.
        terminator_kind: Kind of its terminator (``ir.Terminator.how``).
        gate: Warp synchronisation before it.
        holds: Whether it ends at a barrier that blocks lanes, instead of only counting them.
        cluster: Whether that is the cluster's barrier.
        called: The system function that its terminator calls.
        result: Register of that function's result.
        group: Group of a recursive call.
        saves: Registers that a recursive call saves.
        numbers: Generator of numbers for temporaries.
        checked: Whether results are checked against their registers' dtypes.
        shadowed: Whether it computes V bits.
    """

    def __init__(
        self, lowered: Lowered, steps: list[IrOp], numbers: Iterator[int], checked: bool,
        shadowed: bool = False,
    ) -> None:  # fmt: skip
        self.lowered, self.steps, self.numbers, self.checked = lowered, steps, numbers, checked
        self.shadowed = shadowed
        self.block, self.number = lowered.block, lowered.block.number
        self.gate = lowered.gate
        self.warp_barrier = bool(self.gate and self.gate.barrier)
        end = lowered.end
        self.terminator_kind = end.how if end else "goto"
        self.call_entry = end.call_entry if end else EXIT
        self.return_register = end.return_register if end else -1
        self.group, saves = (end.group, end.saves) if end else (None, ())
        self.saves = tuple(register.number for register in saves)
        self.holds = isinstance(end, BarrierOp) and end.waits
        self.cluster = isinstance(end, BarrierOp) and end.cluster
        self.reduction = end.reduction if isinstance(end, BarrierOp) else None
        self.forgets: tuple[range, ...] = ()
        self.called, self.result = (
            (end.name, end.result) if isinstance(end, SyscallOp) else ("", -1)
        )

    @functools.cached_property
    def body(self) -> Body:
        """Generated statements, shared by all forms; created at the first execution."""
        steps = predicated(self.steps, self.numbers)
        if not self.shadowed:
            steps = together(steps, self.numbers)
        outlives, end = self.lowered.live_out, self.lowered.end
        steps = chained(steps, outlives, end, self.numbers)
        met = self.block.instructions[0] if self.gate and self.gate.members else None
        emitter = Emitter(self.number, self.numbers, self.checked, met)
        return emitter.statements(steps, self.lowered.end)

    def source(self, form: int) -> str:
        """Return the Python source of one form."""
        # Nothing of the PTX's text stands in here, names least of all: they may be anything.
        merge, exchanges = form != Form.CONVERGED, self.body.exchanges
        if form == Form.ASKED:
            calls = "".join(f"({exchange.call}), " for exchange in exchanges)
            reads = sorted({number for exchange in exchanges for number in exchange.reads})
            lines = [f"    r{number} = R[{number}]" for number in reads]
            return "\n".join([f"def block_{self.number}(R):", *lines, f"    return ({calls})\n"])
        lines = [f"    {line}" for line in self.body.lines]
        if form == Form.JOINED:
            for i, exchange in enumerate(exchanges):
                lines[exchange.line] = f"    {exchange.name} = X[{i}]"
        given = "R, M, X=(), K=ALL" if merge else "R, M"
        lines.insert(0, f"def block_{self.number}({given}):")
        for register in self.lowered.live_out:
            index = register.number
            value = f"merge(M, r{index}, R[{index}]) if {index} in K else " if merge else ""
            lines.append(f"    R[{index}] = {value}r{index}")
            if self.checked:
                lines.append(f"    expect(R[{index}], t_{register.carrier})")
        lines.append(f"    return {self.body.returns}")
        return "\n".join(lines) + "\n"


@dataclass
class Program:
    """A compiled kernel, independent of any launch.

    Attributes:
        blocks: By number; the callees' blocks come before the entry's.
        start: Number of the entry's first block.
        arch: The architecture's number; ``by_arch``: whether any result depends on it.
        stack: Bytes of a thread's stack, for functions that call themselves.
        first_variable: Array number of the module's first variable.
        registers: Initial value of every register.
        needed: Which registers lanes still need where they wait.
        sites: Every memory access, in the order of their numbers.
        params: Offset and type of the pieces of the kernel's parameters that are read.
        layout: Where module and function variables stand.
        watched: What a trace records; ``None`` if compiled without (``compile_ptx``).
        flights: What has to do with registers of a ``wgmma``.
        uses: Instructions that an undefined value would steer (``compiler.compile_shadowed``).
        facts: What was worked out about it, by the class that did.
        data: What is made of loaded data; for a trace.
        substitutes: Faster functions, for launches that take them.
    """

    entry: Function
    module: Module
    layout: Layout
    blocks: list[CompiledBlock] = field(default_factory=list)
    start: int = 0
    registers: list[Lanes] = field(default_factory=list)
    needed: LiveRegisters = LiveRegisters((), (), {})  # noqa: RUF009 - never changed
    sites: list[Site] = field(default_factory=list)
    params: dict[tuple[int, str], None] = field(default_factory=dict)
    arithmetic: list[Arithmetic] = field(default_factory=list)
    flights: list[WgmmaRegisterUse] = field(default_factory=list)
    approximate: bool = False
    arch: int = 0
    stack: int = 0
    first_variable: int = MODULE_VARIABLES
    by_arch: bool = False
    watched: list[Watched] | None = None
    uses: list[Instruction] = field(default_factory=list)
    data: Data = Data()  # noqa: RUF009 - never changed
    memos: dict[tuple[object, ...], dict[Any, Any]] = field(default_factory=dict)
    facts: dict[object, object] = field(default_factory=dict)
    substitutes: Substitutes = field(default_factory=Substitutes)

    def memo(self, *key: object) -> dict[Any, Any]:
        """Return a bounded cache for results that hold for every launch of a kind."""
        if len(self.memos) > 64:
            self.memos.clear()
        found = self.memos.setdefault(key, {})
        if len(found.get("steps", found)) > 20_000:
            found.clear()
        return found

    def analysis(self, make: Callable[[Program], Fact]) -> Fact:
        """Return ``make(self)``, cached."""
        if make not in self.facts:
            self.facts[make] = make(self)
        return cast(Fact, self.facts[make])

    @functools.cached_property
    def _code(self) -> dict[tuple[int, int], CodeType]:
        return {}

    def function(self, number: int, form: int, names: dict[str, Any]) -> Code:
        """Return the block's Python function in a ``Form``, with free names from ``names``.

        ``names`` gets the block's own, unless it has them (``Substitutes``).
        """
        key = (number, form)
        if key not in self._code:
            self._code[key] = self._compiled(number, form)
        for name, value in self.blocks[number].body.names.items():
            names.setdefault(name, value)
        space: dict[str, Code] = {}
        exec(self._code[key], names, space)
        return space[f"block_{number}"]

    def _compiled(self, number: int, form: int) -> CodeType:
        """Return the block's code, which tracebacks and profilers know, and ``TILESCOPE_DUMP``."""
        source = self.blocks[number].source(form)
        entry = list(self.module.functions).index(self.entry.name)
        where = f"{self.module.digest}.{entry}.{number}{('', 'd', 'j', 'a')[form]}"
        folder = os.environ.get("TILESCOPE_DUMP")
        if folder:
            path = Path(folder) / f"{where}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
            where = str(path)
        else:
            where = f"<block {where}>"
            known = (len(source), None, source.splitlines(keepends=True), where)
            linecache.cache[where] = known
            weakref.finalize(self, _drop_linecache, where, known)
        return compile(source, where, "exec")


def _drop_linecache(where: str, known: tuple[object, ...]) -> None:
    """Take a text out of what tracebacks show; another program's may be there by now."""
    if linecache.cache.get(where) is known:
        del linecache.cache[where]
