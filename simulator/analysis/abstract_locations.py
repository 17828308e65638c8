"""Abstract locations in shared and local memory, as far as an access's operands name them.

A location is a whole space, a variable, or an offset in a variable. Each has *keys*; a store and a
load that may alias have one in common. An access wider than a word has several.
"""

from collections.abc import Iterator

from kernels.ptx.module import Function, Reg, Symbol

from ..memory.addressing.provenance import Origins, named, origins
from ..memory.site import Site
from ..memory.storage.layout import Layout

Key = tuple[str, str]
"""A function and a register of it; or a space and a place in it."""
ANYWHERE = "*"
_SOMEWHERE = ""
"""In a store's keys: wherever it is. In a variable's, behind its name: anywhere, somewhere."""
_IN = "+"
ADDRESSABLE_SPACES = ("shared", "local", "generic")
"""Spaces through which values are followed: global memory is where results go."""


class KeptPlaces:
    """Abstract locations of a program's accesses, for a given layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._origins: dict[str, Origins] = {}

    def of(self, site: Site, function: Function) -> Key:
        """Return space and location of a site; through a register it may be any."""
        address = site.operand
        if address is not None and address.base in (Reg("%SP"), Reg("%SPL")):
            return site.space, f"{function.name}:{_IN}{address.offset}"
        variable = self._variable(site, function)
        if address is not None and isinstance(address.base, Symbol):
            name = variable or address.base.name
            space = "shared" if variable else site.space
            return space, f"{name}{_IN}{address.offset}"
        return ("shared", variable + _IN + ANYWHERE) if variable else (site.space, ANYWHERE)

    def constant(self, site: Site, function: Function) -> bool:
        """Whether an address is derived from ``__constant__`` variables only."""
        if site.space != "generic":
            return site.space == "const"
        placed = [self.layout.named(function.name, n) for n in self._names(site, function)]
        return bool(placed) and all(p and p.variable.space == "const" for p in placed)

    def _names(self, site: Site, function: Function) -> frozenset[str]:
        if function.name not in self._origins:
            self._origins[function.name] = origins(function)
        return named(self._origins[function.name], site)

    def _variable(self, site: Site, function: Function) -> str:
        """Return the shared variable from which an address is derived, if it is one.

        Of dynamic ones it is the first; all of them begin at the same place.
        """
        if site.space not in ("shared", "generic"):
            return ""
        names = self._names(site, function)
        placed = [p for name in names if (p := self.layout.named(function.name, name))]
        if len(names) != 1 or not placed or placed[0].variable.space != "shared":
            return ""
        variable = placed[0].variable
        return variable.name if variable.nbytes and not variable.external else _IN


def load_keys(space: str, place: str, nbytes: int) -> Iterator[Key]:
    """Yield the keys of a load: it may read values stored under any of them."""
    name, inside, offset = place.rpartition(_IN)
    for other in ADDRESSABLE_SPACES if space == "generic" else (space, "generic"):
        yield f"[{other}]", ANYWHERE
        if place == ANYWHERE or other != space:
            yield f"[{other}]", _SOMEWHERE
        elif inside and offset == ANYWHERE:
            yield f"[{other}]", name + inside
        else:
            for word in _words(place, nbytes):
                yield f"[{other}]", word
            if inside:
                yield f"[{other}]", name + inside + ANYWHERE


def store_keys(space: str, place: str, nbytes: int) -> Iterator[Key]:
    """Yield the keys of a store: its value is stored under all of them."""
    for word in _words(place, nbytes):
        yield f"[{space}]", word
    yield f"[{space}]", _SOMEWHERE
    name, inside, _ = place.rpartition(_IN)
    if inside:
        yield f"[{space}]", name + inside


def _words(place: str, nbytes: int) -> Iterator[str]:
    """Yield the words that an access touches; the location itself, if it is no offset."""
    name, inside, offset = place.rpartition(_IN)
    if not inside or offset == ANYWHERE:
        yield place
        return
    first = int(offset)
    for word in range(first // 4, (first + nbytes - 1) // 4 + 1):
        yield f"{name}{_IN}{4 * word}"
