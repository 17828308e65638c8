"""Detection of address arithmetic, which the page does not count as steps."""

from simulator.compile.cfg.basic_blocks import reachable
from simulator.compile.cfg.cfg import transitive_closure
from simulator.isa import Flow
from simulator.isa.decoded import DecodedInstruction, roles
from simulator.observe.trace.trace import Trace


def address_arithmetic(trace: Trace) -> set[int]:
    """Return the PTX lines of the instructions whose results serve as addresses only."""
    found: set[int] = set()
    for function in reachable(trace.program.module, trace.kernel.entry):
        values: list[tuple[int, DecodedInstruction]] = []
        plain: set[str] = set()
        bases: set[str] = set()
        for ins in function.body:
            role = roles(ins)
            if role.row.memory:
                bases.update(role.bases)
                plain |= set(role.reads) - set(role.bases)
            elif role.writes and role.flow is Flow.NEXT:
                values.append((ins.line, role))
            else:
                plain |= set(role.reads)
        leads = [(role.reads, role.writes) for _, role in values]
        plain = transitive_closure(plain, [(writes, reads) for reads, writes in leads])
        for line, role in values:
            if plain.isdisjoint(role.writes) and bases & transitive_closure(role.writes, leads):
                found.add(line)
    return found
