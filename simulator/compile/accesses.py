"""PTX to steps, of instructions that access memory or parameters."""

import functools

from kernels.ptx.module import Imm, Instruction, Operand, Reg

from ..isa import DTYPES, Unsupported, asynchronous
from ..isa.roles import Roles, roles
from ..isa.validity import invalid
from ..memory.site import make_site
from .ir_values import Parameter, Source, Target, Temporary
from .pictures import Pictures
from .steps import Access, Compute, Group, Move, Phase, Step

_MOST_OF_COPIES, _MOST_OF_PRODUCTS = 63, 7
"""Groups that a wait can leave: ``ptxas`` makes that of a larger number, of which it takes 32 bits
(of a ``wgmma``'s, all)."""


class Accesses(Pictures):
    """Makes the steps of accesses."""

    def access(self, ins: Instruction, role: Roles) -> Step:
        """A load, store or atomic at its site."""
        access, sites = role.row.memory, self.context.sites
        site = make_site(ins, len(sites), access, self.function, self.block.number)
        sites.append(site)
        base = self.base(role.address, site)
        if access == "load" and len(role.results) != site.count:
            raise Unsupported("a vector of another length than its destination: use as many")
        if access == "store" and len(role.sources) != site.count:
            raise Unsupported("a vector of another length than its source: use as many")
        sources = tuple(self.source(item, site.type) for item in role.sources)
        targets = tuple(self.target(item, site.type) for item in role.results)
        site.returns = site.returns and self._read_later(ins, role)
        return Access(ins, self.guard(ins.guard), targets, sources, site=site, base=base)

    def _read_later(self, ins: Instruction, role: Roles) -> bool:
        """Whether anything reads what an instruction writes, a trace or a shadow among it."""
        if self.context.is_shadowed or self.context.is_traced:
            return True
        written, instructions = set(role.writes), self.block.instructions
        at = next(i for i, other in enumerate(instructions) if other is ins)
        later = (roles(other).reads for other in instructions[at + 1 :])
        return not written.isdisjoint(self.block.live_out.union(*later))

    def phase(self, ins: Instruction, role: Roles) -> list[Step]:
        """An operation of an ``mbarrier``."""
        row, guard, sites = role.row, self.guard(ins.guard), self.context.sites
        site = make_site(ins, len(sites), row.memory, self.function, self.block.number)
        sites.append(site)
        base = self.base(role.address, site)
        access = functools.partial(Access, ins, guard, site=site, base=base)
        zero, one = (self.constant(Imm("int", number), "b64") for number in (0, 1))
        if row.memory == "atomic":
            given = one
            if role.sources:
                given = self.wide(role.sources[0])
            expects = ins.has("expect_tx")
            count = zero if row.phase in ("expect", "complete") else one if expects else given
            if row.asynchronous:
                count = one if ins.has("noinc") else zero
            values = (
                count, given if expects else zero, given if row.phase == "complete" else zero,
                count if row.phase == "drop" else zero, one if ins.has("noComplete") else zero,
            )  # fmt: skip
            steps: list[Step] = []
            if row.asynchronous:
                steps.append(Phase(ins, guard, (), (base,), offset=site.offset, arrives=True))
            targets = tuple(self.target(item, "b64") for item in role.results)
            return [*steps, access(targets, values)]
        if not row.build:
            return [access((), (zero,))]
        op = row.build(ins)
        held = Temporary(next(self.numbers), "s64")
        object_, into = Source(held, "b64"), (Target(held, "b64"),)
        if row.memory == "store":
            count = self.source(role.sources[0], op.inputs[0])
            return [Compute(ins, guard, into, (count,), op=op), access((), (object_,))]
        over = Temporary(next(self.numbers), "pred")
        seen = Source(over, "pred")
        given = self.source(role.sources[0], op.inputs[1])
        return [
            access(into),
            Compute(ins, guard, (Target(over, "pred"),), (object_, given), op=op),
            Phase(ins, guard, (), (base, seen), offset=site.offset),
            Move(ins, guard, (self.target(role.results[0], "pred"),), (seen,)),
        ]

    def asynchronous(self, ins: Instruction, role: Roles) -> list[Step]:
        """A copy that goes on beside the thread, or what waits for those.

        A copy is a load and a store; when the store may happen is the race checks' business.
        """
        guard = self.guard(ins.guard)
        if role.row.asynchronous == "arrive":
            return self.phase(ins, role)
        if role.row.asynchronous == "bulk":
            return self.bulk(ins, role)
        if role.row.asynchronous == "store":
            return self.stored(ins, role)
        if role.row.asynchronous != "copy":
            number = role.sources[0] if role.sources else None
            left = None
            if isinstance(number, Imm):
                left = (
                    min(number.value, _MOST_OF_PRODUCTS)
                    if role.row.queue == "product"
                    else min(number.value & 0xFFFFFFFF, _MOST_OF_COPIES)
                )
            if role.row.asynchronous == "wait" and left is None:  # all of them
                return [Group(ins, guard, left=None), Group(ins, guard, left=0)]
            return [Group(ins, guard, left=left)]
        into, source = (
            make_site(ins, len(self.context.sites) + i, access, self.function, self.block.number)
            for i, access in enumerate(("store", "load"))
        )
        self.context.sites += [into, source]
        bases = [self.base(a, s) for a, s in zip(role.addresses, (into, source), strict=True)]
        steps: list[Step] = []
        length: tuple[Source, ...] = ()
        if len(role.sources) > 1:
            how = role.form.sources[3]
            op = asynchronous.length(ins, into.nbytes, how.startswith("pred"))
            given = Temporary(next(self.numbers), "s32")
            what = (self.source(role.sources[1], op.inputs[0]),)
            steps.append(Compute(ins, guard, (Target(given, "u32"),), what, op=op))
            length = (Source(given, "u32"),)
        words = [Temporary(next(self.numbers), "s32") for _ in range(into.count)]
        targets = tuple(Target(word, "b32") for word in words)
        values = tuple(Source(word, "b32") for word in words)
        steps.append(Access(ins, guard, targets, length, site=source, base=bases[1]))
        return [*steps, Access(ins, guard, (), values, site=into, base=bases[0])]

    # -- parameters -------------------------------------------------------------

    def parameter(self, ins: Instruction, role: Roles) -> list[Step] | None:
        """``ld.param``/``st.param`` of a scalar parameter: a register, or a launch constant.

        Returns:
            ``None`` if it lies in memory.
        """
        name, load = role.parameter, role.row.memory == "load"
        operands = role.results if load else role.sources
        offset = role.address.offset if role.address else 0
        type = ins.types[-1]
        params = {p.name: p for p in self.function.params} if self.function.is_entry else {}
        if name in params:
            if not load:
                raise Unsupported("a store to a kernel parameter: use a .local copy")
            return self.load_parameter(ins, operands, params[name].offset + offset)
        owner, formal = self.context.resolve(self.function, name)
        home = self.context.module.functions[owner]
        param = next((p for p in (*home.params, *home.results) if p.name == formal), None)
        given = owner == self.function.name and formal in home.variables  # to the system
        if param is None and not given:
            raise Unsupported(f"the parameter {name!r}, which is not declared: use one that is")
        if param.is_struct if param else home.variables[formal].dims:
            return None
        if len(operands) > 1 or offset:
            raise Unsupported("part of a scalar parameter: use shr or mov on all of it")
        source, target = (Reg(name), operands[0]) if load else (operands[0], Reg(name))
        moved = (self.target(target, type),), (self.source(source, type),)
        return [Move(ins, self.guard(ins.guard), *moved)]

    def load_parameter(
        self, ins: Instruction, into: tuple[Operand | None, ...], start: int
    ) -> list[Step]:
        """A kernel parameter: constants of the launch."""
        type = ins.types[-1]
        size = DTYPES[type].itemsize
        guard = self.guard(ins.guard)
        last = self.function.params[-1]
        steps: list[Step] = []
        for i, item in enumerate(into):
            at = start + i * size
            if not 0 <= at <= last.offset + last.nbytes - size:
                raise invalid(ins, "an address outside the kernel's parameters")
            self.context.params[at, type] = None
            source = Source(Parameter(at, type), type)
            steps.append(Move(ins, guard, (self.target(item, type),), (source,)))
        return steps
