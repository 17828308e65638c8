"""PTX to steps: instructions on matrices, whose lanes share what they load and store."""

import functools
from dataclasses import replace

from kernels.ptx.module import Instruction

from ..isa import DTYPES, Op, wgmma, wmma
from ..isa.roles import Roles
from ..memory.site import Site, make_site
from .accesses import Accesses
from .ir_values import Source, Target, Temporary
from .steps import Access, Compute, Step, WarpCompute


class Matrices(Accesses):
    """Makes the steps of such instructions."""

    def meaning(self, ins: Instruction, role: Roles) -> Op:
        """What an instruction does to values."""
        assert role.row.build
        op = role.row.build(ins)
        if not role.row.by_arch:
            return op
        self.context.depends_on_arch = True
        multiply = functools.partial(op.fn, self.context.arch)
        zeros = tuple(DTYPES[kind].type(0) for kind in op.outputs)
        return replace(op, fn=lambda warp, *words: zeros if warp.blank else multiply(warp, *words))

    def matrices(self, ins: Instruction, role: Roles) -> list[Step]:
        """A load or store of rows, and the step that makes elements of them or the other way."""
        op, guard, sites = self.meaning(ins, role), self.guard(ins.guard), self.context.sites
        site = make_site(ins, len(sites), role.row.memory, self.function, self.block.number)
        sites.append(site)
        base, load = self.base(role.address, site), site.access == "load"
        words = op.inputs if load else op.outputs
        values = [Temporary(next(self.numbers), site.type) for _ in words]
        into = tuple(Target(value, site.type if load else "u32") for value in values)
        given = tuple(Source(value, "u32" if load else site.type) for value in values)
        targets = tuple(map(self.target, role.results, op.outputs)) if load else into
        sources = given if load else tuple(map(self.source, role.sources, op.inputs))
        moved = (into, ()) if load else ((), given)
        access = Access(ins, guard, *moved, site=site, base=base)
        made = WarpCompute(ins, guard, targets, sources, op=op)
        return [access, made] if load else [made, access]

    def scattered(self, ins: Instruction, role: Roles) -> list[Step]:
        """Loads or stores of a matrix's pieces, and what makes registers of them, or them."""
        op, guard, sites = self.meaning(ins, role), self.guard(ins.guard), self.context.sites
        load = role.row.memory == "load"
        words = op.inputs if load else op.outputs
        strides = role.sources[0 if load else len(op.inputs) :]
        first = make_site(ins, len(sites), role.row.memory, self.function, self.block.number)
        where = wmma.addresses(ins, bool(strides))
        base = [self.base(role.address, first), *(self.source(item, "u32") for item in strides)]
        if first.variable:  # it is not only there that the matrix lies
            first.operand = None
        places = [Temporary(next(self.numbers), "s64") for _ in words]
        values = [Temporary(next(self.numbers), kind) for kind in words]
        parts = tuple(map(Target, values, words))
        given = tuple(map(Source, values, words))
        at = tuple(Target(place, "s64") for place in places)
        steps: list[Step] = [WarpCompute(ins, guard, at, tuple(base), op=where)]
        for place, target, source in zip(places, parts, given, strict=True):
            site = replace(first, number=len(sites), type=target.type)
            sites.append(site)
            moved = ((target,), ()) if load else ((), (source,))
            steps.append(Access(ins, guard, *moved, site=site, base=Source(place, "s64")))
        if load:
            results = tuple(map(self.target, role.results, op.outputs))
            return [*steps, Compute(ins, guard, results, given, op=op)]
        registers = tuple(map(self.source, role.sources, op.inputs))
        return [Compute(ins, guard, parts, registers, op=op), *steps]

    def warpgroup(self, ins: Instruction, role: Roles) -> list[Step]:
        """Loads of shared memory at what descriptors say, and the product."""
        op, guard, sites = self.meaning(ins, role), self.guard(ins.guard), self.context.sites
        fetches = wgmma.fetches(ins)
        own = len(role.sources) - len(role.form.sources[1:])  # registers: D's, and A's
        if len(fetches) > 1:
            own = len(role.results)
        given = list(map(self.source, role.sources[:own], op.inputs))
        steps: list[Step] = []
        for descriptor, fetch in zip(role.sources[own:], fetches, strict=False):
            places = [Temporary(next(self.numbers), "s64") for _ in fetch.lanes]
            targets = tuple(Target(place, "s64") for place in places)
            where = (self.source(descriptor, "s64"),)
            steps.append(WarpCompute(ins, guard, targets, where, op=fetch.addresses))
            first = len(sites)
            for place, lanes in zip(places, fetch.lanes, strict=True):
                site = Site(
                    len(sites), ins, self.function.name, "load", "shared", "b32", 4,
                    self.block.number, lanes=lanes, traffic=False, asynchronous=True,
                    queue=role.row.queue, part_of=first,
                )  # fmt: skip
                sites.append(site)
                words = [Temporary(next(self.numbers), "s32") for _ in range(4)]
                into = tuple(Target(word, "b32") for word in words)
                steps.append(Access(ins, guard, into, site=site, base=Source(place, "s64")))
                given += [Source(word, "u32") for word in words]
        rest = role.sources[own + len(fetches) :]
        if ins.has("sp"):
            given.append(self.source(rest[0], "u32"))
            rest = rest[2:]
        given.append(self.source(rest[0], "pred"))
        results = tuple(map(self.target, role.results, op.outputs))
        return [*steps, WarpCompute(ins, guard, results, tuple(given), op=op)]
