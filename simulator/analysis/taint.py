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
from ..memory.site import PHASE, Site
from .kept_places import KeptPlaces, Key, left_at, may_find

Spaces = Callable[[Site], set[str]]
"""The spaces that a site was seen to access in the run."""


def depends_on_data(program: Program, spaces: Spaces) -> Instruction | None:
    """The first instruction whose address, guard or operands steer the run by loaded data.

    A flow-insensitive slice over registers and, through what was stored there, over places in
    shared and local memory; branches need no tracking of their own, since a branch on loaded
    data is already the answer. What tensor cores make counts as data, too.
    """
    return _Slice(program, spaces).steered()


class _Slice:
    """What holds loaded data: registers, and the keys of places (``kept_places``)."""

    def __init__(self, program: Program, spaces: Spaces) -> None:
        self.functions = {b.block.function.name: b.block.function for b in program.blocks}
        self._spaces, self._places = spaces, KeptPlaces(program.layout)
        self._sites: dict[int, list[Site]] = {}
        for site in program.sites:
            self._sites.setdefault(id(site.instruction), []).append(site)
        self._held: set[Key] = set()

    def steered(self) -> Instruction | None:
        """The first instruction that data steer."""
        size = -1
        while size != len(self._held):
            size = len(self._held)
            for function in self.functions.values():
                for ins in function.body:
                    self._held |= self._reached(function, ins)
        for function in self.functions.values():
            for ins in function.body:
                if any((function.name, name) in self._held for name in _steering(ins)):
                    return ins
        return None

    def _reached(self, function: Function, ins: Instruction) -> set[Key]:
        """What holds data when an instruction has run."""
        role, name = roles(ins), function.name
        if role.row.flow is Flow.CALL:
            return through_call(function, self.functions.get(callee(ins)), ins, self._held)
        sites = [] if role.parameter or role.row.phase else self._sites.get(id(ins), [])
        sites = [site for site in sites if site.operation != PHASE]
        found = role.row.by_arch or any(self._finds(site, function) for site in sites)
        given = (read for read in role.reads if read not in role.bases)
        moved = found or any((name, read) in self._held for read in given)
        news = {(name, written) for written in role.writes if (found if sites else moved)}
        if moved:
            for site in sites:
                news |= set(self._leaves(site, function))
        return news

    def _finds(self, site: Site, function: Function) -> bool:
        """Whether what a site reads is data."""
        if site.access == "store" or site.space == "const":
            return False
        if site.picture or (site.access == "atomic" and site.returns):
            return True  # what an atomic finds, the order of threads decides, too
        near = self._near(site)
        _, place = self._places.of(site, function)
        return "global" in near or any(
            not self._held.isdisjoint(may_find(space, place, site.nbytes)) for space in near
        )

    def _leaves(self, site: Site, function: Function) -> Iterator[Key]:
        """The keys of where a site leaves what it writes."""
        if site.access == "load":
            return
        _, place = self._places.of(site, function)
        for space in self._near(site) - {"global"}:
            yield from left_at(space, place, site.nbytes)

    def _near(self, site: Site) -> set[str]:
        """The spaces in which a site finds or leaves something; parameters are no data."""
        if not site.counted:
            return {site.space} - {"global"}
        found = self._spaces(site) if site.traffic else {site.space}
        return {"shared" if space == "cluster" else space for space in found}


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


def _steering(ins: Instruction) -> Sequence[str]:
    """Registers that decide where an instruction goes, or whether it runs."""
    role = roles(ins)
    if role.flow.jumps or role.flow is Flow.BARRIER or role.row.warp_barrier:
        return role.reads
    computes = role.row.build and not role.row.gate
    found = [ins.guard.name] if ins.guard and not computes else []
    return [*found, *role.bases] if role.row.memory else found
