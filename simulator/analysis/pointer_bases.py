"""Base pointers: the kernel parameter on which an address is based, in C's sense of ``restrict``.

This is a flow-insensitive points-to analysis over registers, call variables, and locations in local
and shared memory (``abstract_locations``). An address that may be based on a pointer loaded from
global memory has no bases. The difference of two pointers is a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from kernels.ptx.module import Function, Imm, Instruction, Reg
from kernels.source.restrict_pointers import Base

from ..compile.program import Program
from ..isa import DTYPES, Flow
from ..isa.decoded import callee, roles
from ..isa.table import scalar_type
from ..memory.addressing.provenance import MADE, OTHER, combined
from ..memory.site import Site
from .abstract_locations import ADDRESSABLE_SPACES, ANYWHERE, KeptPlaces, Key, load_keys, store_keys
from .taint import call_edges

_POINTERS = ("u64", "s64", "b64")
"""Types of accesses that may be of pointers."""
_NUMBER = "#"
"""What an immediate operand is: with an address it is an offset, alone the null pointer."""


class Bases:
    """Base pointers of each access of a program, among the ``wanted`` ones."""

    def __init__(self, program: Program, wanted: Collection[Base]) -> None:
        self._wanted = wanted
        self._functions = {b.block.function.name: b.block.function for b in program.blocks}
        self._numbers = {p.name: n for n, p in enumerate(program.entry.params)}
        self._entry = program.entry.name
        self._places = KeptPlaces(program.layout)
        self._sites: dict[int, list[Site]] = defaultdict(list)
        for site in program.sites:
            self._sites[id(site.instruction)].append(site)
        self._known: defaultdict[Key, frozenset[str]] = defaultdict(frozenset)
        self._settle()
        self._bases = [self._of(site) for site in program.sites]

    def of(self, site: Site) -> frozenset[Base]:
        """Return the parameters on which an access's address may be based; empty: any."""
        return self._bases[site.number] if 0 <= site.number < len(self._bases) else frozenset()

    def _of(self, site: Site) -> frozenset[Base]:
        base = site.operand.base if site.operand else None
        if not isinstance(base, Reg):
            return frozenset()
        names = self._known[site.function, base.name] - {_NUMBER, MADE}
        pairs = [name.partition(":") for name in names]
        if OTHER in names:
            return frozenset()
        return frozenset((int(number), int(offset)) for number, _, offset in pairs)

    def _settle(self) -> None:
        changed = True
        while changed:  # sets grow only
            changed = False
            for function in self._functions.values():
                for ins in function.body:
                    changed |= self._step(function, ins)

    def _join(self, keys: Iterable[Key], names: frozenset[str]) -> bool:
        grown = [key for key in keys if not names <= self._known[key]]
        for key in grown:
            self._known[key] |= names
        return bool(grown)

    def _step(self, function: Function, ins: Instruction) -> bool:
        role, name = roles(ins), function.name
        results = [(name, written) for written in role.writes]
        if role.row.flow is Flow.CALL:
            called = self._functions.get(callee(ins))
            edges = list(call_edges(function, called, ins))
            changed = [self._join([into], self._known[given]) for given, into in edges]
            own = {into for _, into in edges}
            rest = [key for key in results if key not in own]
            return any(changed) | self._join(rest, frozenset([OTHER]))
        if role.parameter and role.parameter in self._numbers and name == self._entry:
            return self._parameter(name, ins)
        if role.parameter:  # of a call
            if role.row.memory == "load":
                return self._join(results, self._known[name, role.parameter])
            given = self._given(name, ins)
            return self._join([(name, role.parameter)], given)
        if role.row.memory:
            return self._memory(function, ins, results)
        how = role.row.of_address
        sources = [
            self._known[name, o.name]
            if isinstance(o, Reg)
            else frozenset([_NUMBER if isinstance(o, Imm) else OTHER])
            for o in role.sources
        ]
        if how not in ("same", "either"):
            sources = [known and (known - {_NUMBER} or frozenset([OTHER])) for known in sources]
        return bool(results) and self._join(results, combined(sources, how))

    def _parameter(self, function: str, ins: Instruction) -> bool:
        """Whether an instruction loads one or several kernel parameters."""
        role = roles(ins)
        first = role.address.offset if role.address else 0
        size = int(DTYPES[scalar_type(ins)].itemsize)
        changed = False
        for place, result in enumerate(role.results):
            if isinstance(result, Reg):
                number, offset = self._numbers[role.parameter], first + place * size
                base = f"{number}:{offset}" if (number, offset) in self._wanted else OTHER
                changed |= self._join([(function, result.name)], frozenset([base]))
        return changed

    def _given(self, function: str, ins: Instruction) -> frozenset[str]:
        nothing: frozenset[str] = frozenset()
        sources = [o.name for o in roles(ins).sources if isinstance(o, Reg)]
        return nothing.union(*(self._known[function, name] for name in sources))

    def _memory(self, function: Function, ins: Instruction, results: list[Key]) -> bool:
        changed = False
        found: frozenset[str] = frozenset()
        for site in self._sites.get(id(ins), ()):
            if site.space not in ADDRESSABLE_SPACES:
                continue
            if site.type not in _POINTERS:
                continue
            space, place = self._places.of(site, function)
            given = self._given(function.name, ins)
            if site.access != "load" and not (place == ANYWHERE and OTHER in given):
                changed |= self._join(store_keys(space, place, site.nbytes), given)
            if site.access != "store":
                nothing: frozenset[str] = frozenset()
                keys = load_keys(space, place, site.nbytes)
                found = found.union(*(self._known.get(key, nothing) for key in keys))
                if place == ANYWHERE:
                    found |= {OTHER}
        return changed | self._join(results, found or frozenset([OTHER]))
