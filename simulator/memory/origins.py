"""Which variables an address was computed from, and how far those reach.

C++ has no array beside an array: who runs over the end of one does not mean what stands behind it.
The hardware's limit is the block's shared memory; the text of the program tells of which variable
an address was made.
"""

from collections.abc import Iterable, Mapping, Sequence

from kernels.ptx.module import Function, Operand, Reg, Symbol

from ..isa.roles import calls, roles
from .layout import Layout
from .site import Site

_OTHER = ""
"""What came from memory, from a caller, or from numbers alone: any address, or none."""
Origins = dict[str, frozenset[str]]


def origins(function: Function) -> Origins:
    """By register the variables whose addresses went into it; ``_OTHER`` if perhaps none did."""
    made: list[tuple[tuple[str, ...], tuple[Operand | None, ...], bool]] = []
    known: Origins = {p.name: frozenset([_OTHER]) for p in function.params}
    for ins in function.body:
        role = roles(ins)
        if not role.writes:
            continue
        if role.row.memory or calls(ins):
            known |= dict.fromkeys(role.writes, frozenset([_OTHER]))
        else:
            either = role.row.picks
            made.append((role.writes, role.sources[:2] if either else role.sources, either))
    changed = True
    while changed:  # sets grow only
        changed = False
        for writes, sources, either in made:
            found = _of(known, sources, either)
            for name in writes if found else ():
                before = known.get(name, frozenset())
                if not found <= before:
                    known[name], changed = before | found, True
    return known


def _of(known: Origins, sources: Sequence[Operand | None], either: bool) -> frozenset[str]:
    """What a result is made of: all of its sources, or ``either`` of them."""
    parts: list[frozenset[str]] = []
    for operand in sources:
        if isinstance(operand, Reg):
            parts.append(known.get(operand.name, frozenset()))
        else:
            parts.append(frozenset([operand.name if isinstance(operand, Symbol) else _OTHER]))
    if not all(parts) and not either:
        return frozenset()  # not known yet; where it never is, nothing writes it
    named = [part for part in parts if part - {_OTHER}]
    return frozenset().union(*(parts if either or not named else named))


def named(found: Origins, site: Site) -> frozenset[str]:
    """The variables of an access's address, and ``_OTHER``, if it may be another's."""
    if site.variable:
        return frozenset([site.variable])
    base = site.operand.base if site.operand else None
    return found.get(base.name, frozenset([_OTHER])) if isinstance(base, Reg) else frozenset()


def set_rooms(layout: Layout, functions: Iterable[Function], sites: Iterable[Site]) -> None:
    """Tell sites between which bytes of shared memory the variables lie that they are meant for."""
    shared = [p for p in layout.placed.values() if p.variable.space == "shared"]
    if len(shared) < 2:
        return
    by_name: Mapping[str, Origins] = {f.name: origins(f) for f in functions}
    for site in sites:
        if site.space not in ("shared", "generic") or site.bound:
            continue
        placed = [
            layout.placed.get((site.function, name)) or layout.placed.get(("", name))
            for name in named(by_name[site.function], site)
        ]
        variables = [p for p in placed if p and p.variable.space == "shared" and p.variable.nbytes]
        if variables and len(variables) == len(placed):
            ends = [p.address + p.variable.nbytes for p in variables]
            site.room = min(p.address for p in variables), max(ends)
