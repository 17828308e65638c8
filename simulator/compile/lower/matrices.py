"""Lowering of matrix instructions, whose lanes share loads and stores."""

import functools
from dataclasses import replace

from kernels.ptx.module import Instruction

from ...isa import DTYPES, Op
from ...isa.decoded import DecodedInstruction
from ...isa.matrix import wgmma, wmma
from ...memory.site import Site, make_site
from ..context import CompileContext
from ..ir import Compute, IrOp, MemoryOp, WarpCompute
from ..ir_values import ResultValue, SourceValue
from .operands import Operands


def build_op(context: CompileContext, ins: Instruction, role: DecodedInstruction) -> Op:
    """Return an instruction's function, specialised for the architecture if necessary."""
    assert role.row.build
    op = role.row.build(ins)
    if not role.row.arch_dependent:
        return op
    context.depends_on_arch = True
    multiply = functools.partial(op.fn, context.arch)
    zeros = tuple(DTYPES[kind].type(0) for kind in op.outputs)
    return replace(
        op, fn=lambda warp, *words: zeros if warp.skip_products else multiply(warp, *words)
    )


def lower_rows(operands: Operands, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
    """Lower a load or store of matrix rows, with the conversion between rows and elements."""
    op, guard = build_op(operands.context, ins, role), operands.guard(ins.guard)
    site = operands.site(ins, role.row.memory)
    base, load = operands.base(role.address, site), site.access == "load"
    words = op.inputs if load else op.outputs
    values = [operands.temporary(site.type) for _ in words]
    into = tuple(ResultValue(value, site.type if load else "u32") for value in values)
    given = tuple(SourceValue(value, "u32" if load else site.type) for value in values)
    targets = tuple(map(operands.target, role.results, op.outputs)) if load else into
    sources = given if load else tuple(map(operands.source, role.sources, op.inputs))
    moved = (into, ()) if load else ((), given)
    access = MemoryOp(ins, guard, *moved, site=site, base=base)
    made = WarpCompute(ins, guard, targets, sources, op=op)
    return [access, made] if load else [made, access]


def lower_scattered(operands: Operands, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
    """Lower loads or stores of matrix fragments, with the conversion to registers."""
    op, guard = build_op(operands.context, ins, role), operands.guard(ins.guard)
    sites, load = operands.context.sites, role.row.memory == "load"
    words = op.inputs if load else op.outputs
    strides = role.sources[0 if load else len(op.inputs) :]
    first = make_site(ins, len(sites), role.row.memory, operands.function, operands.block.number)
    where = wmma.addresses(ins, bool(strides))
    base = [operands.base(role.address, first), *(operands.source(item, "u32") for item in strides)]
    if first.variable:  # it is not only there that the matrix lies
        first.operand = None
    places = [operands.temporary("s64") for _ in words]
    values = [operands.temporary(kind) for kind in words]
    parts = tuple(map(ResultValue, values, words))
    given = tuple(map(SourceValue, values, words))
    at = tuple(ResultValue(place, "s64") for place in places)
    steps: list[IrOp] = [WarpCompute(ins, guard, at, tuple(base), op=where)]
    for place, target, source in zip(places, parts, given, strict=True):
        site = replace(first, number=len(sites), type=target.type)
        sites.append(site)
        moved = ((target,), ()) if load else ((), (source,))
        steps.append(MemoryOp(ins, guard, *moved, site=site, base=SourceValue(place, "s64")))
    if load:
        results = tuple(map(operands.target, role.results, op.outputs))
        return [*steps, Compute(ins, guard, results, given, op=op)]
    registers = tuple(map(operands.source, role.sources, op.inputs))
    return [Compute(ins, guard, parts, registers, op=op), *steps]


def lower_warpgroup(operands: Operands, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
    """Lower a ``wgmma``: loads of shared memory by its descriptors, and the product."""
    op, guard = build_op(operands.context, ins, role), operands.guard(ins.guard)
    sites = operands.context.sites
    fetches = wgmma.fetches(ins)
    own = len(role.sources) - len(role.form.sources[1:])  # registers: D's, and A's
    if len(fetches) > 1:
        own = len(role.results)
    given = list(map(operands.source, role.sources[:own], op.inputs))
    steps: list[IrOp] = []
    for descriptor, fetch in zip(role.sources[own:], fetches, strict=False):
        places = [operands.temporary("s64") for _ in fetch.lanes]
        targets = tuple(ResultValue(place, "s64") for place in places)
        where = (operands.source(descriptor, "s64"),)
        steps.append(WarpCompute(ins, guard, targets, where, op=fetch.addresses))
        first = len(sites)
        for place, lanes in zip(places, fetch.lanes, strict=True):
            site = Site(
                len(sites), ins, operands.function.name, "load", "shared", "b32", 4,
                operands.block.number, lanes=lanes, traffic=False, asynchronous=True,
                queue=role.row.queue, parent_site=first,
            )  # fmt: skip
            sites.append(site)
            words = [operands.temporary("s32") for _ in range(4)]
            into = tuple(ResultValue(word, "b32") for word in words)
            steps.append(MemoryOp(ins, guard, into, site=site, base=SourceValue(place, "s64")))
            given += [SourceValue(word, "u32") for word in words]
    rest = role.sources[own + len(fetches) :]
    if ins.has("sp"):
        given.append(operands.source(rest[0], "u32"))
        rest = rest[2:]
    given.append(operands.source(rest[0], "pred"))
    results = tuple(map(operands.target, role.results, op.outputs))
    return [*steps, WarpCompute(ins, guard, results, tuple(given), op=op)]
