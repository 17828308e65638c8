"""Lowering of texture and surface instructions."""

from kernels.ptx.module import Instruction

from ...core.geometry import EVERY_LANE
from ...isa import Op
from ...isa.decoded import DecodedInstruction
from ...isa.memory import images
from ...memory.site import Site
from ..ir import Bulk, Compute, IrOp
from .operands import Operands

_TRUE = Op(lambda: EVERY_LANE, (), ("pred",))


def lower_image(operands: Operands, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
    """Lower a read, write or size query of a texture or surface."""
    sites, row = operands.context.sites, role.row
    values, shape = len(role.results), images.shape(ins)
    fetches = row.picture in ("fetch", "gather")
    space = "surface" if row.picture.startswith("surface") else "texture"
    kind = ins.types[0] if fetches else ins.types[-1]
    sources = [operands.source(item, "f32" if shape.floats else "s32")
               for item in role.sources[shape.layered : shape.values]]  # fmt: skip
    layer = [operands.source(role.sources[0], "s32")] if shape.layered else []
    stored = role.sources[shape.values :] if row.memory in ("store", "atomic") else ()
    site = Site(
        len(sites), ins, operands.function.name, row.memory, space,
        "b32" if fetches else "b8" if ins.has("p") else kind,
        1 if fetches or ins.has("p") else len(stored) or values,
        operands.block.number, images.operation(ins),
        order=frozenset({"relaxed"} if row.memory == "atomic" else ()),
    )  # fmt: skip
    sites.append(site)
    handle = operands.base(role.address, site)
    targets = tuple(operands.target(item, kind) for item in role.results[:4])
    more = [operands.source(item, kind) for item in stored]
    if (last := role.form.sources[-1]).startswith("{offset"):
        moves = role.sources[-int(last[-1]) :]
        more += [operands.source(item, "s32") for item in moves[: shape.axes]]
    guard, given = operands.guard(ins.guard), (handle, *layer, *sources[: shape.axes], *more)
    steps: list[IrOp] = [Bulk(ins, guard, targets, given, into=site)]
    for item in role.results[4:]:  # whether the texels are there: an array's all are
        steps.append(Compute(ins, guard, (operands.target(item, "pred"),), (), op=_TRUE))
    return steps
