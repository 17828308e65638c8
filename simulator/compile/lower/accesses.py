"""Lowering of instructions that access memory or parameters."""

import functools

from kernels.ptx.module import Imm, Instruction, Operand, Reg

from ...isa import DTYPES, Unsupported
from ...isa.decoded import DecodedInstruction, roles
from ...isa.memory import cp_async
from ...isa.validity import invalid
from ..ir import AsyncGroupOp, Compute, IrOp, MemoryOp, Move, Phase
from ..ir_values import Parameter, ResultValue, SourceValue
from .bulk_copies import lower_async_store, lower_bulk_copy
from .operands import Operands

_MAX_COPY_GROUPS, _MAX_PRODUCT_GROUPS = 63, 7
"""Groups that a wait can leave: ``ptxas`` makes that of a larger number, of which it takes 32 bits
(of a ``wgmma``'s, all)."""


def lower_access(operands: Operands, ins: Instruction, role: DecodedInstruction) -> IrOp:
    """Lower a load, store or atomic."""
    access = role.row.memory
    site = operands.site(ins, access)
    base = operands.base(role.address, site)
    if access == "load" and len(role.results) != site.count:
        raise Unsupported("a vector of another length than its destination: use as many")
    if access == "store" and len(role.sources) != site.count:
        raise Unsupported("a vector of another length than its source: use as many")
    sources = tuple(operands.source(item, site.type) for item in role.sources)
    targets = tuple(operands.target(item, site.type) for item in role.results)
    site.returns = site.returns and _read_later(operands, ins, role)
    return MemoryOp(ins, operands.guard(ins.guard), targets, sources, site=site, base=base)


def _read_later(operands: Operands, ins: Instruction, role: DecodedInstruction) -> bool:
    """Return whether anything reads an instruction's results, traces and V bits included."""
    if operands.context.is_shadowed or operands.context.is_traced:
        return True
    written, instructions = set(role.writes), operands.block.instructions
    at = next(i for i, other in enumerate(instructions) if other is ins)
    later = (roles(other).reads for other in instructions[at + 1 :])
    return not written.isdisjoint(operands.block.live_out.union(*later))


def lower_mbarrier(operands: Operands, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
    """Lower an operation of an ``mbarrier``."""
    row, guard = role.row, operands.guard(ins.guard)
    site = operands.site(ins, row.memory)
    base = operands.base(role.address, site)
    access = functools.partial(MemoryOp, ins, guard, site=site, base=base)
    zero, one = (operands.constant(Imm("int", number), "b64") for number in (0, 1))
    if row.memory == "atomic":
        given = one
        if role.sources:
            given = operands.wide(role.sources[0])
        expects = ins.has("expect_tx")
        count = zero if row.phase in ("expect", "complete") else one if expects else given
        if row.asynchronous:
            count = one if ins.has("noinc") else zero
        values = (
            count, given if expects else zero, given if row.phase == "complete" else zero,
            count if row.phase == "drop" else zero, one if ins.has("noComplete") else zero,
        )  # fmt: skip
        steps: list[IrOp] = []
        if row.asynchronous:
            steps.append(Phase(ins, guard, (), (base,), offset=site.offset, arrives=True))
        targets = tuple(operands.target(item, "b64") for item in role.results)
        return [*steps, access(targets, values)]
    if not row.build:
        return [access((), (zero,))]
    op = row.build(ins)
    state = operands.temporary("s64")
    object_, into = SourceValue(state, "b64"), (ResultValue(state, "b64"),)
    if row.memory == "store":
        count = operands.source(role.sources[0], op.inputs[0])
        return [Compute(ins, guard, into, (count,), op=op), access((), (object_,))]
    over = operands.temporary("pred")
    is_complete = SourceValue(over, "pred")
    given = operands.source(role.sources[0], op.inputs[1])
    return [
        access(into),
        Compute(ins, guard, (ResultValue(over, "pred"),), (object_, given), op=op),
        Phase(ins, guard, (), (base, is_complete), offset=site.offset),
        Move(ins, guard, (operands.target(role.results[0], "pred"),), (is_complete,)),
    ]


def lower_asynchronous(
    operands: Operands, ins: Instruction, role: DecodedInstruction
) -> list[IrOp]:
    """Lower an asynchronous copy, a group commit, or a wait.

    A copy is a load and a store; the race checks model when the store takes place.
    """
    guard = operands.guard(ins.guard)
    if role.row.asynchronous == "arrive":
        return lower_mbarrier(operands, ins, role)
    if role.row.asynchronous == "bulk":
        return lower_bulk_copy(operands, ins, role)
    if role.row.asynchronous == "store":
        return lower_async_store(operands, ins, role)
    if role.row.asynchronous != "copy":
        number = role.sources[0] if role.sources else None
        pending = None
        if isinstance(number, Imm):
            pending = (
                min(number.value, _MAX_PRODUCT_GROUPS)
                if role.row.queue == "product"
                else min(number.value & 0xFFFFFFFF, _MAX_COPY_GROUPS)
            )
        if role.row.asynchronous == "wait" and pending is None:  # all of them
            return [AsyncGroupOp(ins, guard, pending=None), AsyncGroupOp(ins, guard, pending=0)]
        return [AsyncGroupOp(ins, guard, pending=pending)]
    into, source = operands.site(ins, "store"), operands.site(ins, "load")
    bases = [operands.base(a, s) for a, s in zip(role.addresses, (into, source), strict=True)]
    steps: list[IrOp] = []
    length: tuple[SourceValue, ...] = ()
    if len(role.sources) > 1:
        how = role.form.sources[3]
        op = cp_async.length(ins, into.nbytes, how.startswith("pred"))
        given = operands.temporary("s32")
        what = (operands.source(role.sources[1], op.inputs[0]),)
        steps.append(Compute(ins, guard, (ResultValue(given, "u32"),), what, op=op))
        length = (SourceValue(given, "u32"),)
    words = [operands.temporary("s32") for _ in range(into.count)]
    targets = tuple(ResultValue(word, "b32") for word in words)
    values = tuple(SourceValue(word, "b32") for word in words)
    steps.append(MemoryOp(ins, guard, targets, length, site=source, base=bases[1]))
    return [*steps, MemoryOp(ins, guard, (), values, site=into, base=bases[0])]


def lower_parameter(
    operands: Operands, ins: Instruction, role: DecodedInstruction
) -> list[IrOp] | None:
    """Lower ``ld.param`` or ``st.param`` of a scalar, which is a register or a launch constant.

    Returns:
        ``None`` if the parameter is in memory.
    """
    name, load = role.parameter, role.row.memory == "load"
    passed = role.results if load else role.sources
    offset = role.address.offset if role.address else 0
    type = ins.types[-1]
    params = {p.name: p for p in operands.function.params} if operands.function.is_entry else {}
    if name in params:
        if not load:
            raise Unsupported("a store to a kernel parameter: use a .local copy")
        return _load_parameter(operands, ins, passed, params[name].offset + offset)
    owner, formal = operands.context.resolve(operands.function, name)
    home = operands.context.module.functions[owner]
    param = next((p for p in (*home.params, *home.results) if p.name == formal), None)
    given = owner == operands.function.name and formal in home.variables  # to the system
    if param is None and not given:
        raise Unsupported(f"the parameter {name!r}, which is not declared: use one that is")
    if param.is_struct if param else home.variables[formal].dims:
        return None
    if len(passed) > 1 or offset:
        raise Unsupported("part of a scalar parameter: use shr or mov on all of it")
    source, target = (Reg(name), passed[0]) if load else (passed[0], Reg(name))
    moved = (operands.target(target, type),), (operands.source(source, type),)
    return [Move(ins, operands.guard(ins.guard), *moved)]


def _load_parameter(
    operands: Operands, ins: Instruction, into: tuple[Operand | None, ...], start: int
) -> list[IrOp]:
    """Load from the kernel's parameters, which are constants of the launch."""
    type = ins.types[-1]
    size = DTYPES[type].itemsize
    guard = operands.guard(ins.guard)
    last = operands.function.params[-1]
    steps: list[IrOp] = []
    for i, item in enumerate(into):
        at = start + i * size
        if not 0 <= at <= last.offset + last.nbytes - size:
            raise invalid(ins, "an address outside the kernel's parameters")
        operands.context.params[at, type] = None
        source = SourceValue(Parameter(at, type), type)
        steps.append(Move(ins, guard, (operands.target(item, type),), (source,)))
    return steps
