"""Where a trace is told what a step did: accesses, values that come from memory, barriers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernels.errors import PtxError
from kernels.ptx.module import Function

from ..isa import Flow
from ..isa.roles import roles
from .listing import operand_text
from .program import Watched
from .steps import (
    Access,
    Constant,
    Lowered,
    Move,
    Register,
    Source,
    Special,
    Step,
    Target,
    Temporary,
    Watch,
)

if TYPE_CHECKING:
    from .compiler import Compiler


class Tracing:
    """The pass over one block's steps.

    ``watched`` gets the instructions that are told of; ``data``: registers that hold what was
    loaded, or was computed from it.
    """

    def __init__(
        self, lowered: Lowered, watched: list[Watched], data: frozenset[int], numbers: Iterator[int]
    ) -> None:
        self.lowered, self.watched, self.data, self.numbers = lowered, watched, data, numbers

    def steps(self) -> list[Step]:
        """The steps, and who tells of them."""
        found: list[Step] = []
        for step in self.lowered.steps:
            if isinstance(step, Access) and step.site.counted:
                found += self.access(step)
                continue
            found.append(step)
            if roles(step.instruction).row.build:
                found += self.values(step)
        end = self.lowered.end
        leaves = end and end.how == "exit" and self.lowered.block.function.is_entry
        if end and (leaves or end.how == "barrier"):
            found.append(self.watch(end, end.how))
        return found

    def watch(
        self,
        step: Step,
        what: str,
        told: tuple[Source, ...] = (),
        outputs: tuple[int, ...] = (),
        inputs: tuple[int | str, ...] = (),
    ) -> Step:
        """A step that tells of another."""
        site, base = (step.site, step.base) if isinstance(step, Access) else (None, None)
        address = _read(base) if base else None
        made = Watch(
            step.instruction, step.guard, (), told, number=len(self.watched), base=base
        )  # fmt: skip
        block = self.lowered.block.number
        followed = address if isinstance(address, int) and address in self.data else None
        self.watched.append(Watched(step.instruction, block, what, outputs, inputs, site, followed))
        return made

    def values(self, step: Step) -> list[Step]:
        """An instruction that computes something from loaded data."""
        kept = [t.register for t in step.targets if t and isinstance(t.register, Register)]
        kept = [register for register in kept if register.number in self.data]
        if not kept:
            return []
        told = tuple(Source(register, register.carrier) for register in kept)
        outputs = tuple(register.number for register in kept)
        if roles(step.instruction).row.shuffles:  # which lane's value it is
            given = step.sources[1:3]
            if all(source.value not in kept for source in given):
                told, outputs = told + given, outputs + (-1,) * len(given)
        return [self.watch(step, "value", told, outputs, tuple(map(_read, step.sources)))]

    def access(self, step: Access) -> list[Step]:
        """An access: its results are told before they overwrite its address."""
        held = [Temporary(next(self.numbers), step.site.type) for _ in step.targets]
        into = tuple(Target(temporary, temporary.carrier) for temporary in held)
        told = tuple(Source(temporary, temporary.carrier) for temporary in held)
        outputs = [_index(target) for target in step.targets]
        given = tuple(map(_read, step.sources))
        if step.sources:
            outputs += [-1] * len(step.sources)
        watch = self.watch(step, step.site.access, told + step.sources, tuple(outputs), given)
        moves = [
            Move(step.instruction, step.guard, (target,), (source,))
            for target, source in zip(step.targets, told, strict=True)
            if target
        ]
        return [dataclasses.replace(step, targets=into), watch, *moves]


def _index(target: Target | None) -> int:
    return target.register.number if target and isinstance(target.register, Register) else -1


def _read(source: Source) -> int | str:
    """What is read: a register's number, or the operand's text."""
    value = source.value
    if isinstance(value, Register):
        return value.number
    if isinstance(value, Special):
        return value.name
    return operand_text(value.operand) if isinstance(value, Constant) else ""


def loaded_data(compiler: Compiler) -> frozenset[int]:
    """Registers that hold what was loaded from memory, or was computed from that."""
    flows: list[tuple[set[int], set[int]]] = []
    data: set[int] = set()
    for function in compiler.functions:
        for ins in function.body:
            role = roles(ins)
            if role.flow in (Flow.SYSTEM, Flow.ASSERT):
                continue
            numbers = _numbers(compiler, function, role.writes)
            if role.row.memory in ("load", "atomic") and not role.parameter:
                data |= numbers
            elif role.flow is Flow.NEXT and not role.row.warp_barrier:
                flows.append((_numbers(compiler, function, role.reads), numbers))
    size = -1
    while size != len(data):
        size = len(data)
        for sources, numbers in flows:
            if sources & data:
                data |= numbers
    return frozenset(data)


def _numbers(compiler: Compiler, function: Function, names: Sequence[str]) -> set[int]:
    """Of registers that are no predicates; what a system function is given is in none."""
    found = set()
    for name in names:
        try:
            register = compiler.register(function, name)
        except PtxError:
            continue
        if register.carrier != "pred":
            found.add(register.number)
    return found
