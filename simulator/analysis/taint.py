"""Taint analysis: does the kernel's behaviour depend on the contents of its arrays?

If no address, branch, guard or barrier depends on a loaded value, a launch makes the same accesses
in the same order for all array contents. The findings of one run then hold for all contents at that
launch shape.
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
"""Operands that select which threads synchronise, and where."""


@dataclass(frozen=True)
class DataDependentVerdicts:
    """Verdicts that values themselves have decided.

    Attributes:
        written: Sites with conflicting writes, which are milder if values are equal or an atomic is
            silent.
        uninitialised: Instructions that read uninitialised memory, whose values may be
            unused.
        absent: Lines that read inactive lanes, which matters only if the outcome changes.
        texts: Calls that read strings up to their NUL, with the strings' spaces.
    """

    written: Collection[Site] = ()
    uninitialised: Collection[Instruction] = ()
    absent: Collection[Line] = ()
    texts: Collection[tuple[Instruction, str]] = ()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any((self.written, self.uninitialised, self.absent, self.texts))


def depends_on_data(
    program: Program, spaces: Spaces, judged: DataDependentVerdicts | None = None
) -> Instruction | None:
    """Return the first instruction whose address, guard or operands depend on loaded data.

    It is a flow-insensitive slice over registers and over locations in shared and local memory.
    Branches need no tracking, because a branch on loaded data is itself an answer. Results of
    tensor cores count as data. If there is none, the first instruction whose data decided a
    ``judged`` verdict is returned.
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
    uninitialised = _Slice(program, spaces, judged.uninitialised) if judged.uninitialised else None
    asking = [
        i for _, i in data.instructions() if roles(i).row.gate and i.user_line in judged.absent
    ]
    absent = _Slice(program, spaces, asking) if asking else None
    for name, ins in data.instructions():
        if absent and absent.holds(name, _steering(ins)):
            return ins
        if any(slice_ and _may_hide(data, slice_, name, ins) for slice_ in (uninitialised, absent)):
            return ins
    return None


def decided_by_atomics(program: Program) -> bool:
    """Whether old values of atomics control the program or are stored, so that order may matter."""
    begins = [s.instruction for s in program.sites if s.access == "atomic" and s.returns]
    if not begins:
        return False
    anywhere = {"global", "shared", "local"}
    taken = _Slice(program, lambda s: {s.space} if s.space in anywhere else anywhere, begins)
    return any(taken.holds(name, _steering(ins)) for name, ins in taken.instructions()) or any(
        site.access != "load" and taken.moves(site) for site in program.sites
    )


class _Slice:
    """Tainted registers and memory keys (``abstract_locations``).

    ``begins``: taint sources other than loads.
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
        """Yield all instructions with their functions' names."""
        for name, function in self.functions.items():
            for ins in function.body:
                yield name, ins

    def holds(self, function: str, names: Collection[str]) -> set[str]:
        """Return the tainted ones of some registers."""
        return {name for name in names if (function, name) in self._tainted_memory}

    def moves(self, site: Site) -> bool:
        """Whether a site stores a tainted value, or its instruction returns one."""
        ins, function = site.instruction, self.functions[site.function]
        role = roles(ins)
        given = [read for read in role.reads if read not in role.bases]
        copied = site.bulk is not None or site.access != "atomic"  # of an atomic, operands count
        return bool(self.holds(function.name, given)) or (copied and self._found(function, ins))

    def reaches_space(self, space: str) -> bool:
        """Whether a string in a space may have a tainted end."""
        return space == "global" or not self._tainted_memory.isdisjoint(
            load_keys(space, ANYWHERE, 1)
        )

    def _reached(self, function: Function, ins: Instruction) -> set[Key]:
        """Return what is tainted after an instruction."""
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
        """Return the sites at which an instruction accesses values."""
        role = roles(ins)
        sites = [] if role.parameter or role.row.phase else self._sites.get(id(ins), [])
        return [site for site in sites if site.operation != PHASE]

    def _found(self, function: Function, ins: Instruction) -> bool:
        """Whether an instruction creates or reads taint."""
        sites = self._accessed(ins)
        if self._begins is None:
            begins = roles(ins).row.arch_dependent or any(map(self._is_data, sites))
        else:
            begins = id(ins) in self._begins
        return begins or any(self._finds(site, function) for site in sites)

    def _is_data(self, site: Site) -> bool:
        """Whether a site reads data that existed before the launch, or that other threads write."""
        if site.access == "store" or self._places.constant(site, self.functions[site.function]):
            return False
        returned = site.access == "atomic" and site.returns  # so the order of threads tells
        return site.is_image or returned or "global" in self._near(site)

    def _finds(self, site: Site, function: Function) -> bool:
        """Whether a site reads tainted memory."""
        if site.access == "store":
            return False
        _, place = self._places.of(site, function)
        return any(
            not self._tainted_memory.isdisjoint(load_keys(space, place, site.nbytes))
            for space in self._near(site)
        )

    def _leaves(self, site: Site, function: Function) -> Iterator[Key]:
        """Yield the keys that a site's store taints."""
        if site.access == "load":
            return
        _, place = self._places.of(site, function)
        for space in self._near(site) - {"global"}:
            yield from store_keys(space, place, site.nbytes)

    def _near(self, site: Site) -> set[str]:
        """Return the spaces that a site accesses; parameters are no data."""
        if not site.counted:
            return {site.space} - {"global"}
        found = self._spaces(site) if site.traffic else {site.space}
        return {"shared" if space == "cluster" else space for space in found}


def through_call(
    function: Function, called: Function | None, ins: Instruction, tainted: set[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the taint that a call adds."""
    return {into for given, into in call_edges(function, called, ins) if given in tainted}


def call_edges(
    function: Function, called: Function | None, ins: Instruction
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the data-flow edges of a call: arguments to parameters, results back."""
    if called is None:
        return
    given = [operand.name for operand in ins.operands if isinstance(operand, Symbol)]
    for name, param in zip(given, called.params, strict=False):
        yield (function.name, name), (called.name, param.name)
    for name, param in zip(ins.results, called.results, strict=False):
        yield (called.name, param.name), (function.name, name)


def _steering(ins: Instruction) -> Sequence[str]:
    """Return the registers that determine an instruction's target, address or execution."""
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


def _may_hide(data: _Slice, uninitialised: _Slice, name: str, ins: Instruction) -> bool:
    """Whether an instruction's data may make an uninitialised operand irrelevant."""
    role = roles(ins)
    row = role.row
    given, hidden = (some.holds(name, role.reads) for some in (data, uninitialised))
    if not hidden or not hides(ins) or role.flow is Flow.CALL:
        return False
    if row.memory:  # what is there may be data
        return row.memory == "atomic"
    meets = row.waits != "nobody"  # and others' values
    return bool(given) and (meets or len(given | hidden) > 1)
