"""How far a verdict reaches: does what the kernel does depend on what its arrays hold?

Where no address, branch, guard or barrier comes from a loaded value, a launch does the
same accesses in the same order for every content of the arrays, and what was found (or
not found) in one run holds for all of them at that launch shape.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from kernels.ptx.module import Function, Instruction, Line, Reg, Symbol

from ..compile.program import Program
from ..isa import Flow
from ..isa.decoded import callee, roles
from ..isa.definedness import hides
from ..isa.memory import images
from ..memory.site import PHASE, Site
from .abstract_locations import ANYWHERE, KeptPlaces, Key, load_keys, store_keys

Spaces = Callable[[Site], set[str]]
"""The spaces that a site was seen to access in the run."""
_ALLOCATES = ("malloc", "free")
_MEETS = ("members", "bar", "threads")
"""Operands that say who meets whom where."""


@dataclass(frozen=True)
class DataDependentVerdicts:
    """What values themselves have decided of a verdict.

    Attributes:
        written: Sites that write where others do: less of a fault if the values are equal, or if
            an atomic changes nothing.
        unset: Instructions that read what nothing wrote: a fault if that counts for anything.
        absent: Lines that read lanes which take no part: a fault if it changes what comes out.
        texts: Calls that read texts up to their NUL, and the spaces of those.
    """

    written: Collection[Site] = ()
    unset: Collection[Instruction] = ()
    absent: Collection[Line] = ()
    texts: Collection[tuple[Instruction, str]] = ()


def depends_on_data(
    program: Program, spaces: Spaces, judged: DataDependentVerdicts | None = None
) -> Instruction | None:
    """The first instruction whose address, guard or operands steer the run by loaded data.

    A flow-insensitive slice over registers and, through what was stored there, over places in
    shared and local memory; branches need no tracking of their own, since a branch on loaded
    data is already the answer. What tensor cores make counts as data, too. If none does, the
    first whose data have decided what was ``judged``.
    """
    data = _Slice(program, spaces)
    for name, ins in data.instructions():
        if data.holds(name, _steering(ins)):
            return ins
    if judged is None:
        return None
    for site in judged.written:
        if data.moves(site):
            return site.instruction
    for ins, space in judged.texts:
        if data.reaches_space(space):
            return ins
    unset = _Slice(program, spaces, judged.unset) if judged.unset else None
    asking = [
        i for _, i in data.instructions() if roles(i).row.gate and i.user_line in judged.absent
    ]
    absent = _Slice(program, spaces, asking) if asking else None
    for name, ins in data.instructions():
        if absent and absent.holds(name, _steering(ins)):
            return ins
        if any(slice_ and _may_hide(data, slice_, name, ins) for slice_ in (unset, absent)):
            return ins
    return None


def decided_by_atomics(program: Program) -> bool:
    """Whether old values that atomics returned steer the run, or are stored: the order may tell."""
    begins = [s.instruction for s in program.sites if s.access == "atomic" and s.returns]
    if not begins:
        return False
    anywhere = {"global", "shared", "local"}
    taken = _Slice(program, lambda s: {s.space} if s.space in anywhere else anywhere, begins)
    return any(taken.holds(name, _steering(ins)) for name, ins in taken.instructions()) or any(
        site.access != "load" and taken.moves(site) for site in program.sites
    )


class _Slice:
    """What holds loaded data: registers, and the keys of places (``kept_places``).

    ``begins``: instead of what is loaded, what some instructions give.
    """

    def __init__(
        self, program: Program, spaces: Spaces, begins: Collection[Instruction] | None = None
    ) -> None:
        self.functions = {b.block.function.name: b.block.function for b in program.blocks}
        self._spaces, self._places = spaces, KeptPlaces(program.layout)
        self._begins = None if begins is None else {id(ins) for ins in begins}
        self._sites: dict[int, list[Site]] = {}
        for site in program.sites:
            self._sites.setdefault(id(site.instruction), []).append(site)
        self._tainted_memory: set[Key] = set()
        size = -1
        while size != len(self._tainted_memory):
            size = len(self._tainted_memory)
            for function in self.functions.values():
                for ins in function.body:
                    self._tainted_memory |= self._reached(function, ins)

    def instructions(self) -> Iterator[tuple[str, Instruction]]:
        """All of the program, with their functions' names."""
        for name, function in self.functions.items():
            for ins in function.body:
                yield name, ins

    def holds(self, function: str, names: Collection[str]) -> set[str]:
        """Those of some registers that hold it."""
        return {name for name in names if (function, name) in self._tainted_memory}

    def moves(self, site: Site) -> bool:
        """Whether what a site writes is, or what its instruction gives."""
        ins, function = site.instruction, self.functions[site.function]
        role = roles(ins)
        given = [read for read in role.reads if read not in role.bases]
        copied = site.bulk is not None or site.access != "atomic"  # of an atomic, operands count
        return bool(self.holds(function.name, given)) or (copied and self._found(function, ins))

    def reaches_space(self, space: str) -> bool:
        """Whether it may end a text somewhere in a space."""
        return space == "global" or not self._tainted_memory.isdisjoint(
            load_keys(space, ANYWHERE, 1)
        )

    def _reached(self, function: Function, ins: Instruction) -> set[Key]:
        """What holds it when an instruction has run."""
        role, name = roles(ins), function.name
        if role.row.flow is Flow.CALL:
            return through_call(
                function, self.functions.get(callee(ins)), ins, self._tainted_memory
            )
        sites = self._accessed(ins)
        found = self._found(function, ins)
        given = (read for read in role.reads if read not in role.bases)
        moved = found or any((name, read) in self._tainted_memory for read in given)
        news = {(name, written) for written in role.writes if (found if sites else moved)}
        if moved:
            for site in sites:
                news |= set(self._leaves(site, function))
        return news

    def _accessed(self, ins: Instruction) -> list[Site]:
        """Where an instruction reads and writes values."""
        role = roles(ins)
        sites = [] if role.parameter or role.row.phase else self._sites.get(id(ins), [])
        return [site for site in sites if site.operation != PHASE]

    def _found(self, function: Function, ins: Instruction) -> bool:
        """Whether an instruction makes it of nothing, or reads it."""
        sites = self._accessed(ins)
        if self._begins is None:
            begins = roles(ins).row.arch_dependent or any(map(self._is_data, sites))
        else:
            begins = id(ins) in self._begins
        return begins or any(self._finds(site, function) for site in sites)

    def _is_data(self, site: Site) -> bool:
        """Whether what a site reads was there before the launch, or others decide on it."""
        if site.access == "store" or self._places.constant(site, self.functions[site.function]):
            return False
        returned = site.access == "atomic" and site.returns  # so the order of threads tells
        return site.is_image or returned or "global" in self._near(site)

    def _finds(self, site: Site, function: Function) -> bool:
        """Whether it was kept where a site reads."""
        if site.access == "store":
            return False
        _, place = self._places.of(site, function)
        return any(
            not self._tainted_memory.isdisjoint(load_keys(space, place, site.nbytes))
            for space in self._near(site)
        )

    def _leaves(self, site: Site, function: Function) -> Iterator[Key]:
        """The keys of where a site leaves what it writes."""
        if site.access == "load":
            return
        _, place = self._places.of(site, function)
        for space in self._near(site) - {"global"}:
            yield from store_keys(space, place, site.nbytes)

    def _near(self, site: Site) -> set[str]:
        """The spaces in which a site finds or leaves something; parameters are no data."""
        if not site.counted:
            return {site.space} - {"global"}
        found = self._spaces(site) if site.traffic else {site.space}
        return {"shared" if space == "cluster" else space for space in found}


def through_call(
    function: Function, called: Function | None, ins: Instruction, tainted: set[tuple[str, str]]
) -> set[tuple[str, str]]:
    """What a call adds to registers that hold something."""
    return {into for given, into in call_edges(function, called, ins) if given in tainted}


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
    """Registers that decide where an instruction goes, what it reaches, or whether it runs."""
    role = roles(ins)
    row = role.row
    whole = row.warp_barrier or row.phase or row.asynchronous in ("copy", "bulk")
    system = role.flow is Flow.SYSTEM and ins.targets[0] in _ALLOCATES
    if role.flow.jumps or whole or system:
        return role.reads
    found = [ins.guard.name] if ins.guard and not (row.build and not row.gate) else []
    given = ins.operands[len(role.form.results) :]
    pairs = zip(role.form.sources, given, strict=False)
    lanes = [o for n, (word, o) in enumerate(pairs) if word in _MEETS or (row.shuffles and n)]
    if row.picture and row.memory:
        lanes += role.sources[: images.shape(ins).values]
    found += [operand.name for operand in lanes if isinstance(operand, Reg)]
    return [*found, *role.bases] if row.memory else found


def _may_hide(data: _Slice, unset: _Slice, name: str, ins: Instruction) -> bool:
    """Whether an instruction's data may say that what it has of nothing written does not count."""
    role = roles(ins)
    row = role.row
    given, hidden = (some.holds(name, role.reads) for some in (data, unset))
    if not hidden or not hides(ins) or role.flow is Flow.CALL:
        return False
    if row.memory:  # what is there may be data
        return row.memory == "atomic"
    meets = row.waits != "nobody"  # and others' values
    return bool(given) and (meets or len(given | hidden) > 1)
