"""A second emitter: the steps of a program as Python for one thread at a time.

It shares the lowering with the NumPy machine and nothing that comes after it: guards are ``if``
statements, registers are single numbers, and a thread is a generator that stops where it waits
for others. ``scalar_machine`` runs them.
"""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from kernels.ptx.types import DTYPES
from simulator.compile.blocks import EXIT
from simulator.compile.ir_values import Constant, Parameter, Register, Source, Special, Temporary
from simulator.compile.steps import Access, Barrier, Compute, End, Lowered, Move, Step, WarpCompute

Wait = tuple[Any, ...]
"""Why a thread stops: ``warp`` (function, operands, instruction), ``gate`` (instruction,
members) or ``barrier``."""
Code = Callable[[Any], Generator[Wait, Any, int]]


class Emitter:
    """Makes a function of a block: it gets a thread, and returns where that goes next."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.names: dict[str, Any] = {"put": put, "take": take, "parts": parts, "np": np}
        self.lines = ["def block(T):", "    R = T.registers"]

    def code(self) -> Code:
        """The function."""
        block, gate, end = self.lowered.block, self.lowered.gate, self.lowered.end
        if gate and gate.members:
            where = "None" if gate.barrier else self.name(self.alike())
            indent = self.under(gate.guard)
            self.emit(f"yield 'gate', {where}, int({self.source(gate.members)})", indent)
        for step in self.lowered.steps:
            indent = self.under(step.guard)
            self.step(step, indent)
        if end:
            self.end(end, self.under(end.guard))
        self.emit(f"return {block.follow if not block.targets or end.guard else block.targets[0]}")
        self.emit("yield")  # so that it is a generator, whatever it holds
        exec("\n".join(self.lines), self.names)
        made: Code = self.names["block"]
        return made

    def emit(self, line: str, indent: int = 1) -> None:
        self.lines.append("    " * indent + line)

    def under(self, guard: Source | None) -> int:
        """Open the ``if`` of a guard; gives the depth of what stands below it."""
        if guard is None:
            return 1
        self.emit(f"if {self.source(guard)}:")
        return 2

    def name(self, value: object) -> str:
        name = f"n{len(self.names)}"
        self.names[name] = value
        return name

    def source(self, source: Source) -> str:
        match source.value:
            case Register(number=number):
                value = f"R[{number}]"
            case Special(name=name):
                value = f"T.special({self.name(name)})"
            case Parameter(offset=offset, carrier=carrier):
                value = f"T.parameter({offset}, {self.name(carrier)})"
            case Constant(value=constant):
                value = self.name(constant)
            case Temporary(number=number):
                value = f"t{number}"
        value = f"take({value}, {self.name(source.type)})"
        return f"(~{value})" if source.negated else value

    def alike(self) -> str:
        """Of an instruction with a member mask: what its copies elsewhere share."""
        gate = self.lowered.gate
        masked = gate and gate.members
        return self.lowered.block.instructions[0].name if masked else ""

    def step(self, step: Step, indent: int) -> None:
        sources = "".join(f"{self.source(source)}, " for source in step.sources)
        match step:
            case Move():
                call = f"({sources})"
            case WarpCompute(op=op):
                where = self.name(self.alike() or op.fn)
                call = f"parts((yield 'warp', {self.name(op.fn)}, ({sources}), {where}))"
            case Compute(op=op):
                call = f"parts({self.name(op.fn)}({sources}))"
            case Access(site=site, base=base):
                call = f"T.{site.access}({self.name(site)}, {self.source(base)}, ({sources}))"
            case _:  # one thread runs at a time: a fence changes nothing
                call = "()"
        self.emit(f"v = {call}", indent)
        for i, target in enumerate(step.targets):
            if target:
                kinds = f"{self.name(target.type)}, {self.name(target.register.carrier)}"
                where = f"t{target.register.number}"
                if isinstance(target.register, Register):
                    where = f"R[{target.register.number}]"
                self.emit(f"{where} = put(v[{i}], {kinds})", indent)

    def end(self, end: End, indent: int) -> None:
        block = self.lowered.block
        sources = ", ".join(self.source(source) for source in end.sources)
        match end:
            case Barrier(reduction=reduction, waits=waits):
                self.emit(
                    f"v = yield 'barrier', {waits}, {reduction and reduction[0]!r}, {sources}",
                    indent,
                )
                if reduction:
                    self.emit(f"R[{reduction[1]}] = v", indent)
                following = str(block.follow)
            case End(how="switch"):
                following = (
                    f"{block.targets}[min(max(int({sources}), 0), {len(block.targets) - 1})]"
                )
            case End(how="call"):
                self.emit(f"R[{end.return_register}] = np.int32({block.follow})", indent)
                following = str(end.call_entry)
            case End(how="return"):
                following = f"int(R[{end.return_register}])"
            case End(how="exit"):
                following = str(EXIT)
            case _:
                following = str(block.targets[0] if block.targets else block.follow)
        self.emit(f"return {following}", indent)


def take(value: Any, kind: str) -> Any:
    """A register's bits as a value of a type: the lowest ones, or an address with its sign."""
    want = DTYPES[kind]
    if value.dtype.itemsize < want.itemsize:
        return value.astype(want)
    return np.frombuffer(value.tobytes(), want, 1)[0]


def put(value: Any, kind: str, carrier: str) -> Any:
    """A result as its register holds it: extended by sign or by zeros."""
    have, want = DTYPES[kind], DTYPES[carrier]
    value = np.asarray(value)
    assert value.dtype == have
    fill = b"\xff" if kind.startswith("s") and value < 0 else b"\0"
    return np.frombuffer(value.tobytes().ljust(want.itemsize, fill), want)[0]


def parts(results: Any) -> tuple[Any, ...]:
    """Several results, or one."""
    return results if isinstance(results, tuple) else (results,)
