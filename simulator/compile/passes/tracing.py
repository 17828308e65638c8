"""Insert trace probes: accesses, values loaded from memory, and barriers."""

import copy
import dataclasses
from collections.abc import Iterator, Sequence

from kernels.errors import PtxError
from kernels.ptx.module import Function

from ...isa import Flow
from ...isa.decoded import callee, roles
from ...memory.site import PHASE
from ..cfg.basic_blocks import Block, successors
from ..cfg.cfg import control_dependence, transitive_closure
from ..context import CompileContext
from ..ir import BarrierOp, Bulk, Compute, IrOp, Lowered, MemoryOp, Move, TraceProbe
from ..ir_values import (
    Constant,
    Register,
    ResultValue,
    SourceValue,
    SpecialRegisterValue,
    Temporary,
    operand_text,
)
from ..probes import Data, Watched


class Tracing:
    """Pass over one block's operations; ``watched`` receives the instructions that are probed."""

    def __init__(
        self, lowered: Lowered, watched: list[Watched], data: Data, numbers: Iterator[int]
    ) -> None:
        self.lowered, self.watched, self.numbers = lowered, watched, numbers
        self.data, self.branches = data.registers, data.branches
        self.used_elsewhere: set[int] = set()  # what other steps of the same instruction use

    def steps(self) -> list[IrOp]:
        """Return the operations with the probes inserted."""
        found: list[IrOp] = []
        for step in self.lowered.steps:
            if self.deciding(step.guard) is not None:
                found += self.decided(step, step.guard, self.recorded_places(step))
            if isinstance(step, MemoryOp) and step.site.counted:
                found += self.access(step)
                continue
            found.append(step)
            found += self.values(step)
        end = self.lowered.end
        if end is None:
            return found
        if self.lowered.block.number in self.branches:
            source = end.sources[0] if end.how == "switch" else end.guard
            found += self.decided(end, source, self.branches[self.lowered.block.number])
        leaves = end.how == "exit" and self.lowered.block.function.is_entry
        if leaves:
            found.append(self.watch(end, "exit"))
        elif isinstance(end, BarrierOp):
            reduced = (end.reduction[1],) if end.reduction else ()
            asked = tuple(map(_read, end.sources[2:]))
            found.append(self.watch(end, "barrier", (), reduced, asked))
        return found

    def watch(
        self,
        step: IrOp,
        what: str,
        extra_values: tuple[SourceValue, ...] = (),
        outputs: tuple[int, ...] = (),
        inputs: tuple[int | str, ...] = (),
        results: tuple[int, ...] = (),
    ) -> IrOp:
        """Return the probe of an operation."""
        site, base = None, None
        if isinstance(step, MemoryOp) and what != "branch":  # which tells of the guard alone
            site, base = step.site, step.base
        address = _read(base) if base else None
        guard = None if what == "branch" else step.guard
        # What comes before a guarded instruction is none of the steps that its guard is for.
        ins = copy.copy(step.instruction) if what == "branch" else step.instruction
        made = TraceProbe(ins, guard, (), extra_values, number=len(self.watched), base=base)
        if what == "copy" and isinstance(step, Bulk):
            site = step.into
        followed = address if isinstance(address, int) and address in self.data else None
        inputs = tuple(
            "" if isinstance(n, int) and n < NOTHING and n not in self.used_elsewhere else n
            for n in inputs
        )
        self.used_elsewhere.update(outputs)
        computed = step if isinstance(step, Compute) else None
        block, by = self.lowered.block.number, self.deciding(guard)
        self.watched.append(
            Watched(
                step.instruction, block, what, outputs, inputs, site, followed, by, results,
                computed,
            )
        )  # fmt: skip
        return made

    def deciding(self, guard: SourceValue | None) -> int | None:
        """Return the register of a guard that depends on loaded data, if it does."""
        value = guard.value if guard else None
        known = isinstance(value, Register) and value.number in self.data
        return value.number if known and isinstance(value, Register) else None

    def decided(self, step: IrOp, by: SourceValue | None, outputs: tuple[int, ...]) -> list[IrOp]:
        """Return probes of registers whose assignment depends on loaded data."""
        return [self.watch(step, "branch", (), outputs, (_read(by),))] if by else []

    def recorded_places(self, step: IrOp) -> tuple[int, ...]:
        """Return the registers of loaded data that an operation writes."""
        return tuple(n for n in map(_index, step.targets) if n in self.data)

    def values(self, step: IrOp) -> list[IrOp]:
        """Return a computation on loaded data with its probe."""
        if isinstance(step, Bulk) and not step.into.is_image:
            return [self.watch(step, "copy")]
        row = roles(step.instruction).row
        pieces = (row.rows or row.scattered) and row.memory == "store"
        keeps = pieces and any(_read(source) in self.data for source in step.sources)
        found = [(place, target.register) for place, target in enumerate(step.targets) if target]
        results = tuple(
            place
            for place, register in found
            if (keeps if isinstance(register, Temporary) else register.number in self.data)
        )
        recorded = [register for place, register in found if place in results]
        if not recorded:
            return []
        values = tuple(SourceValue(register, register.carrier) for register in recorded)
        outputs = tuple(map(_number, recorded))
        given = step.sources[1:3] if row.shuffles else ()
        if "members" in roles(step.instruction).form.sources and not row.shuffles:
            given = step.sources[-1:]
        if isinstance(step, Compute) and step.op.selects:
            given = step.sources[-1:]
        if all(source.value not in recorded for source in given):  # which lanes' values it is
            values, outputs = values + given, outputs + (-1,) * len(given)
        inputs = tuple(map(_read, step.sources))
        return [self.watch(step, "value", values, outputs, inputs, results)]

    def access(self, step: MemoryOp) -> list[IrOp]:
        """Return an access with a probe that reads its results before they overwrite the address.

        The probe of an atomic records the old value, even if the program does not read it.
        """
        targets = step.targets
        site = step.site
        if site.access == "atomic" and not targets and site.operation != PHASE:
            site.has_trace = True
            targets = tuple(
                ResultValue(Temporary(next(self.numbers), site.type), site.type)
                for _ in range(site.count)
            )
        results = [Temporary(next(self.numbers), site.type) for _ in targets]
        into = tuple(ResultValue(temporary, temporary.carrier) for temporary in results)
        values = tuple(SourceValue(temporary, temporary.carrier) for temporary in results)
        outputs = [_index(target) for target in targets]
        given = tuple(map(_read, step.sources))
        if step.sources:
            outputs += [-1] * len(step.sources)
        watch = self.watch(step, site.access, values + step.sources, tuple(outputs), given)
        moves = [
            Move(step.instruction, step.guard, (target,), (source,))
            for target, source in zip(targets, values, strict=True)
            if target
        ]
        return [dataclasses.replace(step, targets=into), watch, *moves]


def _index(target: ResultValue | None) -> int:
    return _number(target.register) if target else NOTHING


NOTHING = -1


def _number(register: Register | Temporary) -> int:
    """Return a register's number; temporaries have numbers below -1."""
    return register.number if isinstance(register, Register) else -2 - register.number


def _read(source: SourceValue) -> int | str:
    """Return a source as register number or operand text."""
    value = source.value
    if isinstance(value, Register | Temporary):
        return _number(value)
    if isinstance(value, SpecialRegisterValue):
        return value.name
    return operand_text(value.operand) if isinstance(value, Constant) else ""


def loaded_data(context: CompileContext, blocks: Sequence[Block]) -> Data:
    """Return the registers that hold or depend on loaded data."""
    flows: list[tuple[set[int], set[int]]] = []
    data: set[int] = set()
    for function in context.functions:
        for ins in function.body:
            role = roles(ins)
            if role.flow in (Flow.SYSTEM, Flow.ASSERT) or role.row.phase:
                continue
            numbers = _numbers(context, function, role.writes)
            loads = role.row.memory in ("load", "atomic") and not role.parameter
            if loads or role.row.warpgroup:
                data |= numbers
            elif role.flow in (Flow.NEXT, Flow.BARRIER) and not role.row.warp_barrier:
                flows.append((_numbers(context, function, role.reads), numbers))
    branches = _branches(context, blocks)
    data = transitive_closure(data, [*flows, *branches.values()])
    decided = {n: tuple(sorted(e)) for n, (read, e) in branches.items() if read & data}
    return Data(frozenset(data), decided)


def _branches(
    context: CompileContext, blocks: Sequence[Block]
) -> dict[int, tuple[set[int], set[int]]]:
    """Return for each branch its conditions, and the registers that dependent blocks write.

    Only registers that are read elsewhere count.
    """
    found = {}
    decided = decided_by(blocks)
    by_number = {block.number: block for block in blocks}
    for block in blocks:
        end = block.end
        if end is None or roles(end).flow is Flow.BARRIER:
            continue
        read = _numbers(context, block.function, roles(end).reads)
        region = [b for b in blocks if decided[b.number] >> block.number & 1]
        if not read or callee(end):
            continue
        inside = {b.number for b in region}
        after = {n for b in region for n in successors(b) if n not in inside}
        alive = set().union(*(by_number[n].live_in for n in after if n in by_number))
        alive |= {p.name for b in region for p in b.function.results}
        escaping: set[int] = set()
        for b in region:
            escaping |= _numbers(context, b.function, tuple(b.written & alive))
        found[block.number] = read, escaping
    return found


def decided_by(blocks: Sequence[Block]) -> dict[int, int]:
    """Return for each block the bit set of the branches that it depends on, transitively.

    A branch that controls a call also controls the blocks of the callee.
    """
    direct: dict[int, set[int]] = {}
    for name in dict.fromkeys(block.function.name for block in blocks):
        mine = [block for block in blocks if block.function.name == name]
        direct |= control_dependence(mine)
    callers: dict[str, set[int]] = {}
    for block in blocks:
        if block.end and (called := callee(block.end)):
            callers.setdefault(called, set()).add(block.number)
    found = {number: sum(1 << branch for branch in branches) for number, branches in direct.items()}
    changed = True
    while changed:
        changed = False
        for block in blocks:
            bits = found[block.number]
            nearer = direct[block.number] | callers.get(block.function.name, set())
            for number in nearer:
                bits |= found[number]
            changed |= bits != found[block.number]
            found[block.number] = bits
    return found


def _numbers(context: CompileContext, function: Function, names: Sequence[str]) -> set[int]:
    """Return numbers of registers; arguments of system functions have none."""
    found = set()
    for name in names:
        try:
            found.add(context.register(function, name).number)
        except PtxError:
            continue
    return found
