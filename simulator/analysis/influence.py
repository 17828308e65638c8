"""Forward slices of loaded values: which branches, accesses and stores depend on them.

A read orders later accesses only if the program uses its value: a thread that reads a flag and
continues regardless has not synchronised. Values are tracked through registers, calls, and shared
and local memory (by named location, or else by the whole space).
"""

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kernels.ptx.module import Function, Instruction, Reg

from ..compile.cfg.basic_blocks import EXIT, Block, successors
from ..compile.cfg.cfg import BlockReachability, control_dependence, transitive_control_dependence
from ..compile.program import Program
from ..isa import Flow
from ..isa.decoded import callee, roles
from ..isa.table import named_space
from ..memory.site import Site
from .abstract_locations import ANYWHERE, KeptPlaces, Key, load_keys, store_keys
from .barriers import BarrierSites, barriers
from .loops import Loops
from .must_alias import SamePlace
from .taint import call_edges, through_call

_SPILLED = ("[]", "pointer")


@dataclass(frozen=True)
class _Steered:
    """Forward slice of a value: registers, memory, branches, and accesses by guard or address."""

    registers: frozenset[Key]
    branches: frozenset[int]
    accesses: frozenset[int]
    guards: frozenset[int]


class ForwardSlices:
    """Forward slices of a program's loads."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.blocks: list[Block] = [compiled.block for compiled in program.blocks]
        self.functions = {b.function.name: b.function for b in self.blocks}
        self.same_place = SamePlace(self.functions)
        self.site_of = {id(site.instruction): site for site in program.sites}
        self._places = KeptPlaces(program.layout)
        self.paths = BlockReachability(self.blocks, lambda block, to: True)
        self._loops = Loops(self.blocks, self.paths, self.decide)
        self._steered: dict[int, _Steered] = {}
        self._nearest = transitive_control_dependence(self.blocks)
        self._deciders: dict[int, set[int]] = {}
        self._after: dict[int, frozenset[int]] = {}
        self._waited: dict[int, frozenset[int]] = {}
        self._met: dict[int, frozenset[int]] = {}

    @functools.cached_property
    def controlling_strong_reads(self) -> frozenset[int]:
        """Return the sites whose strong reads control something."""
        strong = (s for s in self.program.sites if s.strong and s.access != "store")
        return frozenset(site.number for site in strong if self.influences_control_or_address(site))

    @functools.cached_property
    def synchronising_reads(self) -> frozenset[int]:
        """Return those of them that may acquire; ``mbarrier`` is tracked separately."""
        strong = (s for s in self.program.sites if s.strong and s.access != "store")
        return frozenset(
            s.number for s in strong if not s.order and self.influences_control_or_address(s)
        )

    def is_polled(self, site: Site) -> bool:
        """Whether a branch or guard depends on the value of a read."""
        steered = self._of(site)
        return bool(steered.branches or steered.guards)

    def waits(self, site: Site) -> bool:
        """Whether a loop continues until a read returns the right value."""
        return bool(self.exits(site))

    def exits(self, site: Site) -> frozenset[int]:
        """Return the branches at which such a loop ends."""
        return self._of(site).branches & self._loops.exits

    def influences_control_or_address(self, site: Site) -> bool:
        """Whether a branch, guard or address depends on a site's value."""
        steered = self._of(site)
        return bool(steered.branches or steered.accesses)

    def flows(self, read: Site, write: Site) -> bool:
        """Whether the value of one site is part of what another stores, in the same thread.

        Through shared memory it may reach other threads.
        """
        if read is write:
            return False
        values = self.reading_registers(read, frozenset({"[shared]", "[generic]"}))
        role = roles(write.instruction)
        return any(
            (write.function, name) in values for name in role.reads if name not in role.bases
        )

    def expected(self, read: Site, swap: Site) -> bool:
        """Whether the value of one site is the comparand of a compare-and-swap."""
        if swap.operation != "cas":
            return False
        wanted = swap.instruction.operands[-2]
        return isinstance(wanted, Reg) and (swap.function, wanted.name) in self._of(read).registers

    def guards(self, read: Site, access: Site) -> bool:
        """Whether an access is control-dependent on the value of a read.

        A branch on the value controls it, or a loop waits for the value before it, or its guard or
        address is derived from the value. It may also follow a barrier at which threads arrive only
        depending on the value.
        """
        if read is access and not self._shared(read.function):
            return False
        return self.chooses(read, access) or (
            bool(self._of(read).branches) and access.block in self._behind(read)
        )

    def chooses(self, read: Site, access: Site) -> bool:
        """Whether a branch, guard or address that depends on a site's value controls an access.

        A barrier in between does not suffice: a thread behind it may overwrite the value that was
        read.
        """
        steered = self._of(read)
        return access.number in steered.accesses or (
            bool(steered.branches) and self._lets(read, access.block)
        )

    def _lets(self, read: Site, block: int) -> bool:
        """Whether a site's value controls a block or is waited for before it."""
        return bool(self.decide(block) & self._of(read).branches) or (
            block in self._after_waits(read)
        )

    def _behind(self, read: Site) -> frozenset[int]:
        """Return the blocks after a wait for threads that the value released, or after its wait."""
        found = self._met.get(read.number)
        if found is None:
            found, size = frozenset[int](), -1
            while size != len(found):
                size = len(found)
                for barrier in self._barriers:
                    if any(one in found or self._lets(read, one) for one in barrier.arrivals):
                        found = found.union(*map(self._reachable, barrier.waits))
            self._met[read.number] = found
        return found

    @functools.cached_property
    def _barriers(self) -> Collection[BarrierSites]:
        return barriers(self.blocks)

    def _after_waits(self, read: Site) -> frozenset[int]:
        """Return the blocks after the wait for a site's value."""
        found = self._waited.get(read.number)
        if found is None:
            branches = self._of(read).branches
            waits = branches & self._loops.exits
            rest = branches - waits
            waits |= {b for b in rest if self._first_test(b, read) or self._spares(b, read)}
            found = self._waited[read.number] = frozenset().union(*map(self._reachable, waits))
        return found

    def _shared(self, function: str) -> bool:
        """Whether a function has several call sites, itself or through its only caller."""
        names: set[str] = set()
        while function not in names:
            names.add(function)
            back = self.paths.returns.get(function, [])
            if len(back) != 1:
                return bool(back)
            function = self.blocks[back[0]].function.name
        return False

    def decide(self, number: int) -> set[int]:
        """Return the branches that control a block."""
        if number not in self._deciders:
            self._deciders[number] = set().union(*self._nearest(number))
        return self._deciders[number]

    # -- where a value goes -----------------------------------------------------------

    def _of(self, site: Site) -> _Steered:
        if site.number not in self._steered:
            self._steered[site.number] = self._follow(site)
        return self._steered[site.number]

    def reading_registers(self, site: Site, but: Collection[str] = ()) -> set[Key]:
        """Return what holds a site's value, ``but`` in some spaces."""
        todo = [(site.function, name) for name in roles(site.instruction).writes]
        reached: set[Key] = set(todo)
        while todo:
            news = [
                key
                for key in self._edges.get(todo.pop(), ())
                if key not in reached and key[0] not in but
            ]
            reached.update(news)
            todo += news
        return reached

    def _follow(self, site: Site) -> _Steered:
        values = self.reading_registers(site)
        branches, accesses, guards = (
            frozenset().union(*(of[key] for key in values & of.keys())) for of in self._deciding
        )
        return _Steered(frozenset(values), branches, accesses, guards)

    @functools.cached_property
    def _deciding(self) -> tuple[dict[Key, set[int]], ...]:
        """Return branches, accesses and guarded accesses by their deciding values."""
        branches: dict[Key, set[int]] = defaultdict(set)
        accesses: dict[Key, set[int]] = defaultdict(set)
        guards: dict[Key, set[int]] = defaultdict(set)
        for block in self.blocks:
            name = block.function.name
            for ins in block.instructions:
                site, role = self.site_of.get(id(ins)), roles(ins)
                if site is not None:
                    if ins.guard is not None:
                        accesses[name, ins.guard.name].add(site.number)
                        guards[name, ins.guard.name].add(site.number)
                    accesses[name, role.base].add(site.number)
                elif not role.flow.comes_back:
                    for read in role.reads:
                        branches[name, read].add(block.number)
        return branches, accesses, guards

    def _followed(self, site: Site, ins: Instruction) -> bool:
        """Whether an access may be to shared or local memory."""
        if site.space != "generic":
            return site.space in ("shared", "local")
        return (site.function, roles(ins).base) in self._near

    @functools.cached_property
    def _near(self) -> set[Key]:
        """Return registers whose generic address may be in shared or local memory."""
        near: set[Key] = set()
        size = -1
        while size != len(near):
            size = len(near)
            for function in self.functions.values():
                for ins in function.body:
                    role = roles(ins)
                    if role.row.flow is Flow.CALL:
                        near |= through_call(function, self.functions.get(callee(ins)), ins, near)
                        continue
                    given = any((function.name, read) in near for read in role.reads)
                    site = self.site_of.get(id(ins))
                    if role.row.generic:
                        given = named_space(ins) in ("shared", "local")
                    elif site is not None and not role.parameter:
                        if site.access == "store":  # a pointer that is kept in memory
                            stored = (r for r in role.reads if r not in role.bases)
                            if any((function.name, r) in near for r in stored):
                                near.add(_SPILLED)
                            continue
                        given = site.size == 8 and site.space != "param" and _SPILLED in near
                    if given:
                        near |= {(function.name, written) for written in role.writes}
        return near

    @functools.cached_property
    def _joins(self) -> set[Key]:
        """Return registers with several definitions, which depend on the path."""
        written = Counter(
            (function.name, name)
            for function in self.functions.values()
            for ins in function.body
            for name in roles(ins).writes
        )
        return {key for key, times in written.items() if times > 1}

    @functools.cached_property
    def _choices(self) -> list[tuple[Block, int]]:
        """Return blocks that define such a register, each with a controlling branch."""
        found = []
        for function in self.functions.values():
            mine = [b for b in self.blocks if b.function is function]
            depends = control_dependence(mine)
            for block in mine:
                writes = {(function.name, n) for i in block.body for n in roles(i).writes}
                if writes & self._joins:
                    found += [(block, branch) for branch in depends[block.number]]
        return found

    @functools.cached_property
    def _edges(self) -> dict[Key, set[Key]]:
        """Return the data-flow edges between registers and memory locations."""
        found: dict[Key, set[Key]] = defaultdict(set)
        for function in self.functions.values():
            for ins in function.body:
                for given, into in self._passes(function, ins):
                    found[given].add(into)
        for block, branch in self._choices:
            end, name = self.blocks[branch].end, block.function.name
            if end is not None:
                joined = {(name, w) for ins in block.body for w in roles(ins).writes} & self._joins
                for read in roles(end).reads:
                    found[name, read] |= joined
        return found

    def _passes(self, function: Function, ins: Instruction) -> Iterator[tuple[Key, Key]]:
        """Yield the data-flow edges of an instruction."""
        name, role = function.name, roles(ins)
        if role.row.flow is Flow.CALL:
            yield from call_edges(function, self.functions.get(callee(ins)), ins)
            return
        site = self.site_of.get(id(ins))
        given = [(name, read) for read in role.reads]
        into = [(name, written) for written in role.writes]
        if site is not None and not role.parameter:
            if not self._followed(site, ins):
                return
            place = self._places.of(site, function)
            if site.access == "load":
                given = list(load_keys(*place, site.nbytes))
            else:
                given = [(name, read) for read in role.reads if read not in role.bases]
                into = list(store_keys(*place, site.nbytes))
        yield from itertools.product(given, into)

    # -- what a branch decides ----------------------------------------------------------

    def _first_test(self, number: int, read: Site) -> bool:
        """Whether a branch skips a loop that waits for the same value.

        Compilers transform ``while (!right()) {}`` to ``if (!right()) do {} while (!right())``.
        """
        ways = set(successors(self.blocks[number]))
        into = {*ways, *(a for way in ways - {EXIT} for a in successors(self.blocks[way]))}
        for loop in self._loops.all:
            if number in loop.blocks or not (into & loop.blocks and ways & loop.out):
                continue
            for other in self.program.sites:
                same = (other.operand, other.access, other.size) == (
                    read.operand, read.access, read.size
                )  # fmt: skip
                if other.block in loop.blocks and same and self._of(other).branches & loop.blocks:
                    return True
        return False

    def _spares(self, number: int, read: Site) -> bool:
        """Whether a branch may exempt a thread from a loop in which the others wait for it.

        Example: in a grid-wide barrier the last arriving thread recognises itself by the count and
        sets a flag, for which the others wait. The loop may also test the count itself.
        """
        sites = [site for site in self.program.sites if site.strong]
        sets = any(site.access != "load" and number in self.decide(site.block) for site in sites)
        for loop in self._loops.all:
            if number in loop.blocks or number not in loop.deciders:
                continue
            for site in sites:
                looks = site.block in loop.inside and self._of(site).branches & loop.blocks
                if looks and (sets or self._may_meet(site, read)):
                    return True
        return False

    def _may_meet(self, one: Site, other: Site) -> bool:
        """Whether two accesses may alias, by their operands."""
        places = {self._places.of(s, self.functions[s.function])[1] for s in (one, other)}
        return len(places) == 1 or ANYWHERE in places

    def _reachable(self, number: int) -> frozenset[int]:
        """Return the blocks reachable from one, in its function, callees and callers."""
        if number not in self._after:
            self._after[number] = frozenset(self.paths.after(number))
        return self._after[number]
