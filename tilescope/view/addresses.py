"""Which instructions do nothing but work out addresses: the page counts them as no steps."""

from collections.abc import Sequence

from simulator.compile.blocks import reachable
from simulator.isa import Flow
from simulator.isa.roles import Roles, roles
from simulator.observe.trace import Trace


def address_arithmetic(trace: Trace) -> set[int]:
    """PTX lines of the instructions whose results are used as addresses alone."""
    found: set[int] = set()
    for function in reachable(trace.program.module, trace.kernel.entry):
        values: list[tuple[int, Roles]] = []
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
        _spread(values, plain)
        for line, role in values:
            if plain.isdisjoint(role.writes) and _leads(role.writes, bases, values):
                found.add(line)
    return found


def _spread(values: list[tuple[int, Roles]], plain: set[str]) -> None:
    """What a value is computed from is a value."""
    size = -1
    while size != len(plain):
        size = len(plain)
        for _, role in values:
            if not plain.isdisjoint(role.writes):
                plain |= set(role.reads)


def _leads(writes: Sequence[str], bases: set[str], values: list[tuple[int, Roles]]) -> bool:
    """Whether an address comes of it in the end; otherwise nothing does."""
    reached = set(writes)
    size = -1
    while size != len(reached):
        size = len(reached)
        for _, role in values:
            if not reached.isdisjoint(role.reads):
                reached |= set(role.writes)
    return bool(reached & bases)
