"""PTX to steps: copies in bulk."""

import numpy as np

from kernels.ptx.module import Address, Imm, Instruction, Operand, Reg

from ..isa import Unsupported
from ..isa.roles import Roles
from ..isa.table import named_space
from ..isa.windows import WINDOWS
from ..memory.site import ATOMICS, PHASE, Site
from .operands import Operands
from .steps import Access, Bulk, Constant, Source, Step, Target, Temporary


class BulkCopies(Operands):
    """Makes the steps of copies in bulk."""

    def base(self, address: Address | None, site: Site) -> Source:
        """The address's variable part; its constant part goes into the site."""
        site.operand = address
        if address is None:
            raise Unsupported("no address operand")
        if abs(address.offset) >= 1 << 62:
            raise Unsupported(f"an offset of {address.offset}")
        site.offset = address.offset
        if isinstance(address.base, Reg):
            register = self.register(address.base.name)
            if register.carrier not in ("s64", "s32"):
                raise Unsupported("an address in a register of another type")
            return Source(register, "s64")  # with its sign: ``s[-1]`` stays in front of ``s``
        if isinstance(address.base, Imm):
            return Source(Constant(np.int64(address.base.value), address.base), "s64")
        if site.space == "local" and (held := self.owner.local(self.function, address.base.name)):
            return Source(held, "s64")
        start = self.symbol(address.base.name)
        if site.space == "generic":  # ptxas makes a generic address of the variable's
            home = (self.function.variables | self.owner.module.variables).get(address.base.name)
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
        guard, sites = self.guard(ins.guard), self.owner.result.sites
        operation = next((m for m in ins.modifiers if m in ATOMICS), "")
        queue, kind = role.row.queue, ins.types[-1] if operation else "b32"
        access = "atomic" if operation else "store"

        def site(access: str, space: str, kind: str) -> Site:
            made = Site(
                len(sites), ins, self.function.name, access, space, kind, 1, self.block.number,
                traffic=False, queue=queue,
            )  # fmt: skip
            sites.append(made)
            return made

        source, into = site("load", named_space(ins, 1), kind), site(access, named_space(ins), kind)
        for one in (source, into):
            one.asynchronous = one.space == "shared"
        into.bulk, into.operation = source, operation
        into.order = frozenset({"relaxed"} if operation else ())
        places = (self.base(role.addresses[0], into), self.base(role.addresses[1], source))
        tensor = any(address.at for address in role.addresses)
        given = tuple(self.source(item, "s32" if tensor else "u32") for item in role.sources)
        moved = Temporary(next(self.numbers), "s64")
        told = (Target(moved, "s64"),) if tensor else ()
        steps: list[Step] = [Bulk(ins, guard, told, (*places, *given), into=into)]
        if len(role.addresses) > 2:
            arrival = site("atomic", "shared", "b64")
            arrival.operation, arrival.order = PHASE, frozenset({"release"})
            zero = Source(Constant(np.int64(0)), "b64")
            come = Source(moved, "b64") if tensor else self.wide(role.sources[0])
            base = self.base(role.addresses[2], arrival)
            steps.append(Access(ins, guard, (), (zero, zero, come, zero), site=arrival, base=base))
        return steps
