"""How far a verdict reaches: does what the kernel does depend on what its arrays hold?

Where no address, branch, guard or barrier comes from a loaded value, a launch does the
same accesses in the same order for every content of the arrays, and what was found (or
not found) in one run holds for all of them at that launch shape.
"""

from collections.abc import Callable, Iterator, Sequence

from kernels.ptx.module import Function, Instruction, Symbol

from ..compile.program import Program
from ..isa import Flow
from ..isa.roles import callee, roles
from ..memory.site import Site

Spaces = Callable[[Site], set[str]]
"""The spaces that a site was seen to access in the run."""


def depends_on_data(program: Program, spaces: Spaces) -> Instruction | None:
    """The first instruction whose address, guard or operands steer the run by loaded data.

    A flow-insensitive slice over registers and, through what was stored there, over shared
    and local memory; branches need no tracking of their own, since a branch on loaded data
    is already the answer. What tensor cores make counts as data, too.
    """
    functions = {b.block.function.name: b.block.function for b in program.blocks}
    site_of = {id(site.instruction): site for site in program.sites}
    tainted: set[tuple[str, str]] = set()
    memories: set[str] = set()
    changed = True
    while changed:
        changed = False
        for function in functions.values():
            for ins in function.body:
                if roles(ins).row.flow is Flow.CALL:
                    found = through_call(function, functions.get(callee(ins)), ins, tainted)
                else:
                    found = _tainted_by(function, ins, site_of, spaces, tainted, memories)
                changed |= not found <= tainted
                tainted |= found
                site = site_of.get(id(ins))
                if site and site.access == "store" and _stores(function, ins, tainted):
                    new = spaces(site) - {"global"} - memories
                    changed |= bool(new)
                    memories |= new
    for function in functions.values():
        for ins in function.body:
            if any((function.name, name) in tainted for name in _steering(ins)):
                return ins
    return None


def _tainted_by(
    function: Function, ins: Instruction, site_of: dict[int, Site], spaces: Spaces,
    tainted: set[tuple[str, str]], memories: set[str],
) -> set[tuple[str, str]]:  # fmt: skip
    role = roles(ins)
    site = site_of.get(id(ins))
    if site is not None and site.access != "store":
        loaded = bool(spaces(site) & ({"global"} | memories)) or site.access == "atomic"
        found = loaded and site.space != "const"
    else:
        found = role.row.by_arch or any((function.name, name) in tainted for name in role.reads)
    return {(function.name, name) for name in role.writes} if found else set()


def through_call(
    function: Function, called: Function | None, ins: Instruction, held: set[tuple[str, str]]
) -> set[tuple[str, str]]:
    """What a call adds to registers that hold something."""
    return {into for given, into in call_edges(function, called, ins) if given in held}


def call_edges(
    function: Function, called: Function | None, ins: Instruction
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """From where to where a call passes values on: parameters there, results back here."""
    if called is None:
        return
    given = [operand.name for operand in ins.operands if isinstance(operand, Symbol)]
    for name, param in zip(given, called.params, strict=False):
        yield (function.name, name), (called.name, param.name)
    for name, param in zip(ins.results, called.results, strict=False):
        yield (called.name, param.name), (function.name, name)


def _stores(function: Function, ins: Instruction, tainted: set[tuple[str, str]]) -> bool:
    role = roles(ins)
    return any((function.name, name) in tainted for name in role.reads if name not in role.bases)


def _steering(ins: Instruction) -> Sequence[str]:
    """Registers that decide where an instruction goes, or whether it runs."""
    role = roles(ins)
    if role.flow.jumps or role.flow is Flow.BARRIER or role.row.warp_barrier:
        return role.reads
    computes = role.row.build and not role.row.gate
    found = [ins.guard.name] if ins.guard and not computes else []
    return [*found, *role.bases] if role.row.memory else found
