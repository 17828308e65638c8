"""Lowering of bulk copies and asynchronous stores."""

import functools
from collections.abc import Sequence
from typing import cast

import numpy as np

from kernels.arguments.cluster_shape import MAX_BLOCKS
from kernels.ptx.module import Imm, Instruction, Operand

from ...core.geometry import Addresses, Lanes, Mask
from ...isa import Op
from ...isa.decoded import OWN, DecodedInstruction
from ...isa.memory.address_windows import at_rank
from ...isa.table import named_space, reaches_far
from ...memory.site import ATOMICS, PHASE, Site
from ..ir import Bulk, Compute, IrOp, MemoryOp
from ..ir_values import Constant, ResultValue, SourceValue, SpecialRegisterValue
from .operands import Operands


def lower_bulk_copy(operands: Operands, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
    """Lower a bulk copy, and the arrival of its bytes at an mbarrier if it names one."""
    tensor = any(address.at for address in role.addresses)
    steps: list[IrOp] = []
    if not ins.has("multicast::cluster"):
        return _copy(operands, ins, role, tensor, role.sources, operands.guard(ins.guard), None)
    *given, mask = role.sources
    ranks, own = operands.source(mask, "b16"), SourceValue(SpecialRegisterValue(OWN, "s32"), "u32")
    for rank in range(MAX_BLOCKS):
        on = operands.temporary("pred")
        named = Op(functools.partial(_names, rank), ("b16",), ("pred",))
        to = Op(functools.partial(_there, rank), ("s64", "u32"), ("s64",))
        steps.append(Compute(ins, None, (ResultValue(on, "pred"),), (ranks,), op=named))
        guard: SourceValue | None = SourceValue(on, "pred")
        if ins.guard:
            both, asked = operands.temporary("pred"), operands.guard(ins.guard)
            assert asked
            assert guard
            op = Op(np.logical_and, ("pred", "pred"), ("pred",))
            steps.append(Compute(ins, None, (ResultValue(both, "pred"),), (guard, asked), op=op))
            guard = SourceValue(both, "pred")
        steps += _copy(operands, ins, role, tensor, given, guard, (to, own))
    return steps


def _copy(
    operands: Operands,
    ins: Instruction,
    role: DecodedInstruction,
    tensor: bool,
    given: Sequence[Operand | None],
    guard: SourceValue | None,
    moves: tuple[Op, SourceValue] | None,
) -> list[IrOp]:
    """Lower a copy to one block of the cluster.

    Args:
        operands: Operands of the block's instructions.
        ins: The instruction.
        role: Its row and operands.
        tensor: Whether a tensor map says where the bytes are.
        given: Coordinates, or the number of bytes.
        guard: Lanes that copy.
        moves: Maps an address of the own block to the target block; and the own rank. ``None``:
            the copy stays in the own block.
    """
    operation = next((m for m in ins.modifiers if m in ATOMICS), "")
    queue, kind = role.row.queue, ins.types[-1] if operation and ins.types else "b32"
    access = "atomic" if operation else "store"
    source = _site(operands, ins, "load", named_space(ins, 1), kind, queue)
    into = _site(operands, ins, access, named_space(ins), kind, queue)
    for one in (source, into):
        one.asynchronous = one.space == "shared"
    into.bulk, into.operation, into.far = source, operation, reaches_far(ins)
    into.order = frozenset({"relaxed"} if operation else ())
    steps: list[IrOp] = []

    def far(base: SourceValue) -> SourceValue:
        if moves is None:
            return base
        there = operands.temporary("s64")
        op, own = moves
        steps.append(Compute(ins, None, (ResultValue(there, "s64"),), (base, own), op=op))
        return SourceValue(there, "s64")

    places = far(operands.base(role.addresses[0], into)), operands.base(role.addresses[1], source)
    axes = sum(len(address.at) for address in role.addresses)
    kinds = ["s32" if i < axes else "u16" if tensor else "u32" for i in range(len(given))]
    values = tuple(map(operands.source, given, kinds))
    moved = operands.temporary("s64")
    traced = (ResultValue(moved, "s64"),) if tensor else ()
    steps.append(Bulk(ins, guard, traced, (*places, *values), into=into))
    if len(role.addresses) > 2:
        arrival = _site(operands, ins, "atomic", "shared", "b64", queue)
        base = far(operands.base(role.addresses[2], arrival))
        come = SourceValue(moved, "b64") if tensor else operands.wide(given[0])
        steps.append(_arrival(operands, ins, guard, arrival, base, come))
    return steps


def lower_async_store(operands: Operands, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
    """Lower ``st.async`` or ``red.async``, whose bytes arrive at an mbarrier."""
    guard, site = operands.guard(ins.guard), operands.site(ins, role.row.memory)
    site.asynchronous, site.queue = True, role.row.queue
    base = operands.base(role.address, site)
    values = tuple(operands.source(item, site.type) for item in role.sources)
    arrival = _site(operands, ins, "atomic", "shared", "b64", role.row.queue)
    come = operands.source(Imm("int", site.nbytes), "b64")
    there = operands.base(role.addresses[1], arrival)
    return [
        MemoryOp(ins, guard, (), values, site=site, base=base),
        _arrival(operands, ins, guard, arrival, there, come),
    ]


def _site(
    operands: Operands, ins: Instruction, access: str, space: str, kind: str, queue: str
) -> Site:
    """Return a new site of an access by the asynchronous proxy."""
    sites = operands.context.sites
    made = Site(
        len(sites), ins, operands.function.name, access, space, kind, 1, operands.block.number,
        traffic=False, queue=queue,
    )  # fmt: skip
    sites.append(made)
    return made


def _arrival(
    operands: Operands,
    ins: Instruction,
    guard: SourceValue | None,
    site: Site,
    base: SourceValue,
    come: SourceValue,
) -> IrOp:
    """Return the operation by which bytes arrive at an mbarrier."""
    site.operation, site.order, site.far = PHASE, frozenset({"release"}), reaches_far(ins)
    zero = SourceValue(Constant(np.int64(0)), "b64")
    return MemoryOp(ins, guard, (), (zero, zero, come, zero), site=site, base=base)


def _names(rank: int, mask: Lanes) -> Mask:
    """Whether a block mask names a rank."""
    named: Mask = (mask.view(np.uint16) >> np.uint16(rank)) & np.uint16(1) == 1
    return named


def _there(rank: int, address: Addresses, own: Lanes) -> Addresses:
    """Return the same offset in the shared memory of another block of the cluster."""
    return at_rank(address, cast(Lanes, np.uint32(rank)), own)
