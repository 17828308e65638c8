"""Provenance: the variables from which an address was computed, and their extents.

In C++ an access beyond the end of an array does not refer to the next variable. The hardware's
limit is the block's shared memory; the program text shows from which variable an address was
derived.
"""

from collections.abc import Iterable, Mapping, Sequence

from kernels.ptx.module import Function, Operand, Reg, Special, Symbol

from ...isa.decoded import OWN, DecodedInstruction, calls, roles
from ...isa.table import OfAddress
from ..site import Site
from ..storage.layout import Layout

OTHER = ""
"""What came from memory, from a caller, or from numbers: another address, or a number."""
MADE = "+"
"""A number that was made of an address: a distance, a comparison. With another address it may be
any; no variable of PTX has such a name."""
_OWN = Special(OWN)
"""Adds to an address which block's it is."""
Origins = dict[str, frozenset[str]]
"""By register the variables of whose addresses it may be one; ``OTHER``, ``MADE``, if it may."""
_Known = frozenset[str]


def origins(function: Function) -> Origins:
    """Return the variables whose addresses a function's registers may hold."""
    made: list[tuple[Sequence[str], DecodedInstruction]] = []
    known: Origins = {p.name: frozenset([OTHER]) for p in function.params}
    for ins in function.body:
        role = roles(ins)
        if role.row.memory or calls(ins):
            known |= dict.fromkeys(role.writes, frozenset([OTHER]))
        elif role.writes:
            made.append((role.writes, role))
    changed = True
    while changed:  # sets grow only
        changed = False
        for writes, role in made:
            given = [_source(known, operand) for operand in role.sources if operand != _OWN]
            found = combined(given, role.row.of_address)
            for name in writes if found else ():
                before = known.get(name, frozenset())
                if not found <= before:
                    known[name], changed = before | found, True
    return known


def _source(known: Origins, operand: Operand | None) -> _Known:
    if isinstance(operand, Reg):
        return known.get(operand.name, frozenset())
    return frozenset([operand.name if isinstance(operand, Symbol) else OTHER])


def combined(sources: Sequence[_Known], how: OfAddress) -> _Known:
    """Return the provenance of an instruction's result; nothing while sources are unknown."""
    nothing: _Known = frozenset()
    if how == "either":
        return nothing.union(*sources[:2])
    if how == "same":
        return nothing.union(*sources)
    if not all(sources):
        return nothing  # not yet; where it never is, nothing writes it
    if how == "difference" and not _names(sources[1]):
        sources = sources[:1]
    elif how == "addend" and not any(map(_names, sources[:2])):
        sources = sources[2:]
    elif how != "sum":
        return frozenset([MADE if any(map(_names, sources)) else OTHER])
    named = [part for part in sources if _names(part)]
    return nothing.union(*(named or sources))


def _names(part: _Known) -> bool:
    """Whether a value contains an address."""
    return part != {OTHER}


def named(found: Origins, site: Site) -> frozenset[str]:
    """Return the variables from which an access's address may be derived."""
    if site.variable:
        return frozenset([site.variable])
    base = site.operand.base if site.operand else None
    return found.get(base.name, frozenset([OTHER])) if isinstance(base, Reg) else frozenset()


def set_object_bounds(layout: Layout, functions: Iterable[Function], sites: Iterable[Site]) -> None:
    """Set the extents of the shared variables that sites are meant to access."""
    shared = [p for p in layout.placed.values() if p.variable.space == "shared"]
    if len(shared) < 2:
        return
    by_name: Mapping[str, Origins] = {f.name: origins(f) for f in functions}
    for site in sites:
        if site.space not in ("shared", "generic") or site.bound:
            continue
        names = named(by_name[site.function], site)
        placed = [layout.named(site.function, name) for name in names]
        variables = [p for p in placed if p and p.variable.space == "shared" and p.variable.nbytes]
        if variables and len(variables) == len(placed):
            stops = [p.address + p.variable.nbytes for p in variables]
            site.object_bounds = min(p.address for p in variables), max(stops)
