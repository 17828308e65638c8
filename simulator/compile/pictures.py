"""PTX to steps: textures and surfaces."""

from kernels.ptx.module import Instruction

from ..isa import Unsupported, texture
from ..isa.roles import Roles
from ..memory.site import Site
from .bulk import BulkCopies
from .steps import Bulk, Step


class Pictures(BulkCopies):
    """Makes the steps of instructions on textures and surfaces."""

    def picture(self, ins: Instruction, role: Roles) -> list[Step]:
        """A texture or surface is read, written or asked for its size."""
        sites, row = self.owner.result.sites, role.row
        values, shape = len(role.results), texture.shape(ins)
        if any(word.startswith("{offset") for word in role.form.sources[: len(ins.operands)]):
            raise Unsupported("an offset of texels: add it to the coordinates")
        fetches = row.picture in ("fetch", "gather")
        if fetches and values > 4:
            raise Unsupported("the predicate of resident texels: leave it out, all are")
        space = "surface" if row.picture.startswith("surface") else "texture"
        kind = ins.types[0] if fetches else ins.types[-1]
        sources = [self.source(item, "f32" if shape.floats else "s32")
                   for item in role.sources[shape.layered : shape.values]]  # fmt: skip
        layer = [self.source(role.sources[0], "s32")] if shape.layered else []
        stored = role.sources[shape.values :] if row.memory in ("store", "atomic") else ()
        site = Site(
            len(sites), ins, self.function.name, row.memory, space,
            "b32" if fetches else "b8" if ins.has("p") else kind,
            1 if fetches or ins.has("p") else len(stored) or values,
            self.block.number, texture.operation(ins),
            order=frozenset({"relaxed"} if row.memory == "atomic" else ()),
        )  # fmt: skip
        sites.append(site)
        handle = self.base(role.address, site)
        targets = tuple(self.target(item, kind) for item in role.results)
        given = (handle, *layer, *sources[: shape.axes], *(self.source(s, kind) for s in stored))
        return [Bulk(ins, self.guard(ins.guard), targets, given, into=site)]
