"""PTX to steps: copies in bulk."""

import functools
from collections.abc import Sequence
from typing import cast

import numpy as np

from kernels.clusters import MOST
from kernels.ptx.module import Address, Imm, Instruction, Operand, Reg

from ..geometry import Addresses, Lanes, Mask
from ..isa import Op, Unsupported
from ..isa.roles import OWN, Roles
from ..isa.table import named_space, reaches_far
from ..isa.windows import WINDOWS, at_rank
from ..memory.site import ATOMICS, PHASE, Site, make_site
from .ir_values import Constant, Source, Special, Target, Temporary
from .operands import Operands
from .steps import Access, Bulk, Compute, Step


class BulkCopies(Operands):
    """Makes the steps of copies in bulk."""

    def base(self, address: Address | None, site: Site) -> Source:
        """The address's variable part; its constant part goes into the site."""
        site.operand = address
        if address is None:
            raise Unsupported("no address: use one in brackets")
        if abs(address.offset) >= 1 << 62:
            raise Unsupported(f"an offset of {address.offset}: use add.s64")
        site.offset = address.offset
        if isinstance(address.base, Reg):
            register = self.register(address.base.name)
            if register.carrier not in ("s64", "s32"):
                raise Unsupported("an address in such a register: use .b64")
            return Source(register, "s64")  # with its sign: ``s[-1]`` stays in front of ``s``
        if isinstance(address.base, Imm):
            return Source(Constant(np.int64(address.base.value), address.base), "s64")
        if site.space == "local" and (
            held := self.context.local_address(self.function, address.base.name)
        ):
            return Source(held, "s64")
        start = self.symbol(address.base.name)
        if site.space == "generic":  # ptxas makes a generic address of the variable's
            home = (self.function.variables | self.context.module.variables).get(address.base.name)
            start += WINDOWS.get(home.space, 0) if home else 0
        site.variable = address.base.name
        return Source(Constant(np.int64(start), address.base), "s64")

    def wide(self, operand: Operand | None) -> Source:
        """A number of 32 bits as one of 64, widened as an address is."""
        if isinstance(operand, Reg):
            return Source(self.register(operand.name), "b64")
        return self.source(operand, "b64")

    def bulk(self, ins: Instruction, role: Roles) -> list[Step]:
        """The copy; and its bytes arrive at an mbarrier, if it has one."""
        tensor = any(address.at for address in role.addresses)
        steps: list[Step] = []
        if not ins.has("multicast::cluster"):
            return self._copy(ins, role, tensor, role.sources, self.guard(ins.guard), None)
        *given, mask = role.sources
        ranks, own = self.source(mask, "b16"), Source(Special(OWN, "s32"), "u32")
        for rank in range(MOST):
            on = Temporary(next(self.numbers), "pred")
            named = Op(functools.partial(_names, rank), ("b16",), ("pred",))
            to = Op(functools.partial(_there, rank), ("s64", "u32"), ("s64",))
            steps.append(Compute(ins, None, (Target(on, "pred"),), (ranks,), op=named))
            guard: Source | None = Source(on, "pred")
            if ins.guard:
                both, asked = Temporary(next(self.numbers), "pred"), self.guard(ins.guard)
                assert asked
                assert guard
                op = Op(np.logical_and, ("pred", "pred"), ("pred",))
                steps.append(Compute(ins, None, (Target(both, "pred"),), (guard, asked), op=op))
                guard = Source(both, "pred")
            steps += self._copy(ins, role, tensor, given, guard, (to, own))
        return steps

    def _copy(
        self, ins: Instruction, role: Roles, tensor: bool, given: Sequence[Operand | None],
        guard: Source | None, moves: tuple[Op, Source] | None,
    ) -> list[Step]:  # fmt: skip
        """A copy; ``moves``: what makes addresses of another block of its own, and its rank."""
        operation = next((m for m in ins.modifiers if m in ATOMICS), "")
        queue, kind = role.row.queue, ins.types[-1] if operation and ins.types else "b32"
        access = "atomic" if operation else "store"
        source = self._site(ins, "load", named_space(ins, 1), kind, queue)
        into = self._site(ins, access, named_space(ins), kind, queue)
        for one in (source, into):
            one.asynchronous = one.space == "shared"
        into.bulk, into.operation, into.far = source, operation, reaches_far(ins)
        into.order = frozenset({"relaxed"} if operation else ())
        steps: list[Step] = []

        def far(base: Source) -> Source:
            if moves is None:
                return base
            there = Temporary(next(self.numbers), "s64")
            op, own = moves
            steps.append(Compute(ins, None, (Target(there, "s64"),), (base, own), op=op))
            return Source(there, "s64")

        places = far(self.base(role.addresses[0], into)), self.base(role.addresses[1], source)
        axes = sum(len(address.at) for address in role.addresses)
        kinds = ["s32" if i < axes else "u16" if tensor else "u32" for i in range(len(given))]
        values = tuple(map(self.source, given, kinds))
        moved = Temporary(next(self.numbers), "s64")
        told = (Target(moved, "s64"),) if tensor else ()
        steps.append(Bulk(ins, guard, told, (*places, *values), into=into))
        if len(role.addresses) > 2:
            arrival = self._site(ins, "atomic", "shared", "b64", queue)
            base = far(self.base(role.addresses[2], arrival))
            come = Source(moved, "b64") if tensor else self.wide(given[0])
            steps.append(self._arrival(ins, guard, arrival, base, come))
        return steps

    def stored(self, ins: Instruction, role: Roles) -> list[Step]:
        """A store or a reduction whose bytes arrive at an mbarrier: ``st.async``, ``red.async``."""
        guard, sites = self.guard(ins.guard), self.context.sites
        site = make_site(ins, len(sites), role.row.memory, self.function, self.block.number)
        sites.append(site)
        site.asynchronous, site.queue = True, role.row.queue
        base = self.base(role.address, site)
        values = tuple(self.source(item, site.type) for item in role.sources)
        arrival = self._site(ins, "atomic", "shared", "b64", role.row.queue)
        come = self.source(Imm("int", site.nbytes), "b64")
        there = self.base(role.addresses[1], arrival)
        return [
            Access(ins, guard, (), values, site=site, base=base),
            self._arrival(ins, guard, arrival, there, come),
        ]

    def _site(self, ins: Instruction, access: str, space: str, kind: str, queue: str) -> Site:
        """A site of what the asynchronous proxy does."""
        sites = self.context.sites
        made = Site(
            len(sites), ins, self.function.name, access, space, kind, 1, self.block.number,
            traffic=False, queue=queue,
        )  # fmt: skip
        sites.append(made)
        return made

    def _arrival(
        self, ins: Instruction, guard: Source | None, site: Site, base: Source, come: Source
    ) -> Step:
        """Bytes arrive at an mbarrier."""
        site.operation, site.order, site.far = PHASE, frozenset({"release"}), reaches_far(ins)
        zero = Source(Constant(np.int64(0)), "b64")
        return Access(ins, guard, (), (zero, zero, come, zero), site=site, base=base)


def _names(rank: int, mask: Lanes) -> Mask:
    """Whether a mask of blocks names one."""
    named: Mask = (mask.view(np.uint16) >> np.uint16(rank)) & np.uint16(1) == 1
    return named


def _there(rank: int, address: Addresses, own: Lanes) -> Addresses:
    """The same place in the shared memory of a block of the cluster."""
    return at_rank(address, cast(Lanes, np.uint32(rank)), own)
