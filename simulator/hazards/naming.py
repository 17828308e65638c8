"""What an address is called in a report: the variable it belongs to, and the element."""

from collections.abc import Mapping
from typing import NamedTuple

from kernels.ptx.module import Function
from kernels.ptx.names import LOCAL_MEMORY, variable_name

from ..memory.layout import Layout, Placed
from ..memory.origins import named, origins
from ..memory.site import Site
from ..memory.spaces import Allocation, ColumnMemory, Home


class Spot(NamedTuple):
    """A place in memory in words.

    Attributes:
        variable: The array's name; ``""`` for an address outside of everything.
        element: Index by the access's element size, if it is a whole one.
        text: ``a[-1]``; ``extent``: how much there is of it, such as ``a has 64 elements``.
        offset: Bytes from the array's start; ``nbytes``: the array's size; zeros if unknown.
    """

    space: str
    variable: str
    element: int | None
    text: str
    extent: str = ""
    offset: int = 0
    nbytes: int = 0


def spot(
    home: Home | None, relative: int, site: Site, layout: Layout, functions: Mapping[str, Function]
) -> Spot:
    """Name a place.

    ``home`` is the array or the memory that the address is nearest to, ``relative`` its distance in
    bytes from where that begins; ``functions`` tell which variable the address was computed from.
    """
    if home is None:
        null = " (a null pointer?)" if -4096 < relative < 4096 else ""
        return Spot("global", "", None, f"{relative:#x}{null}")
    if isinstance(home, Allocation):
        return _element(home.space, home.name, relative, home.nbytes, site.size)
    placed = _owner(home, relative, site, layout, functions)
    if placed is None:
        return Spot(
            home.space, f"{home.space} memory", None, f"byte {relative} of {home.space} memory",
            f"a block has {home.nbytes} bytes of it" if home.space == "shared" else "",
        )  # fmt: skip
    variable = placed.variable
    name = variable_name(variable.name)
    there = layout.variable(home.space, relative)
    beside = there is not None and there is not placed
    instead = "; {}[{}] is there".format(*variable_at(layout, home.space, relative, site))
    relative -= placed.address
    nbytes = home.nbytes - placed.address if variable.external else variable.nbytes
    if name == LOCAL_MEMORY:
        where = f"byte {relative} of the thread's local memory"
        return Spot("local", name, None, where, f"it has {nbytes} bytes")
    found = _element(home.space, name, relative, nbytes, site.size)
    extent = found.extent + instead * beside
    found = found._replace(
        text=f"{home.space} {found.text}", extent=extent, offset=relative, nbytes=nbytes
    )
    if not variable.external:
        return found
    given = f"the launch gave {nbytes} bytes: --shared, shared_bytes"
    return found._replace(extent=f"{found.extent}; {given}")


def _element(space: str, name: str, relative: int, nbytes: int, size: int) -> Spot:
    if relative % size:
        return Spot(space, name, None, f"{name} at byte {relative}", f"{name} has {nbytes} bytes")
    elements, left = divmod(nbytes, size)
    extent = f"{nbytes} bytes" if left else f"{elements} element{'s' if elements != 1 else ''}"
    element = relative // size
    if 1 << 31 <= element < 1 << 32:
        extent += f"; {element} is {element - (1 << 32)} as an unsigned int"
    return Spot(space, name, element, f"{name}[{element}]", f"{name} has {extent}")


def _owner(
    home: ColumnMemory, at: int, site: Site, layout: Layout, functions: Mapping[str, Function]
) -> Placed | None:
    """The variable that an address was computed from; if that is not clear, the nearest."""
    held = [p for p in layout.placed.values() if p.variable.space == home.space]
    function = functions.get(site.function)
    names = named(origins(function), site) if function else frozenset()
    own = [p for p in held if p in [layout.named(site.function, name) for name in names]]

    def distance(placed: Placed) -> int:
        size = placed.variable.nbytes
        end = home.nbytes if placed.variable.external else placed.address + size
        return max(placed.address - at, at - end + 1, 0)

    return min(own or held, key=distance, default=None)


def variable_at(layout: Layout, space: str, address: int, site: Site) -> tuple[str, int]:
    """Variable name and element of a shared or local address."""
    placed = layout.variable(space, address)
    if placed is None:
        return f"{space} memory", address // site.size
    name = variable_name(placed.variable.name)
    return name, (address - placed.address) // site.size
