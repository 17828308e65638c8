"""Names of addresses in reports: variable and element."""

from collections.abc import Mapping
from typing import NamedTuple

from kernels.ptx.module import Function
from kernels.ptx.names import LOCAL_MEMORY, variable_name

from ...memory.addressing.provenance import named, origins
from ...memory.site import Site
from ...memory.storage.layout import Layout, Placed
from ...memory.storage.spaces import Allocation, Home, InterleavedMemory
from .array_shapes import Shape, Shapes


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
    home: Home | None, relative: int, site: Site, layout: Layout, functions: Mapping[str, Function],
    shapes: Shapes, code: str = "",
) -> Spot:  # fmt: skip
    """Name a place.

    ``home`` is the array or the memory that the address is nearest to, ``relative`` its distance in
    bytes from where that begins; ``functions`` tell which variable the address was computed from;
    ``code``: the line of the source.
    """
    if home is None:
        null = " (a null pointer?)" if -4096 < relative < 4096 else ""
        return Spot("global", "", None, f"{relative:#x}{null}")
    if isinstance(home, Allocation):
        shape = shapes.argument(home.number, site.size)
        shape = shape or shapes.variable(home.name, False, home.nbytes, site.size)
        return _element(home.space, home.name, relative, home.nbytes, site, shapes, shape)
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
    instead = f"; {place_at(layout, shapes, home.space, relative, site)[2]} is there"
    relative -= placed.address
    nbytes = home.nbytes - placed.address if variable.external else variable.nbytes
    if name == LOCAL_MEMORY:
        return _local(variable.name, relative, nbytes, site, shapes, code)
    shape = () if variable.external else shapes.variable(
        name, home.space == "shared", nbytes, site.size
    )  # fmt: skip
    found = _element(home.space, name, relative, nbytes, site, shapes, shape)
    extent = found.extent + instead * beside
    found = found._replace(
        text=f"{home.space} {found.text}", extent=extent, offset=relative, nbytes=nbytes
    )
    if not variable.external:
        return found
    given = f"the launch gave {nbytes} bytes: --shared, shared_bytes"
    return found._replace(extent=f"{found.extent}; {given}")


def _local(memory: str, at: int, nbytes: int, site: Site, shapes: Shapes, code: str) -> Spot:
    """Return the name of a place in a function's local memory."""
    piece = shapes.piece(memory, at, nbytes, site.size, code)
    if piece is None:
        where = f"byte {at} of the thread's local memory"
        return Spot("local", LOCAL_MEMORY, None, where, f"it has {nbytes} bytes")
    found = _element("local", piece.name, at - piece.start, piece.nbytes, site, shapes, piece.shape)
    return found._replace(text=f"local {found.text}")


def _element(
    space: str, name: str, relative: int, nbytes: int, site: Site, shapes: Shapes, shape: Shape
) -> Spot:
    size = site.size
    structure = shapes.structure(name, space == "shared")
    if structure and (member := shapes.member(name, space == "shared", nbytes, relative, size)):
        extent = f"{name} has {nbytes // structure.nbytes} elements" + _overflow(relative, site)
        return Spot(space, name, relative // size, name + member, extent)
    if relative % size:
        return Spot(space, name, None, f"{name} at byte {relative}", f"{name} has {nbytes} bytes")
    elements, remainder = divmod(nbytes, size)
    extent = f"{nbytes} bytes" if remainder else f"{elements} element{'s' if elements != 1 else ''}"
    if len(shape) > 1:
        extent = f"{' x '.join(map(str, shape))} elements"
    element = relative // size
    extent += _overflow(relative, site)
    return Spot(
        space, name, element, f"{name}{shapes.index(shape, element)}", f"{name} has {extent}"
    )


_FAR = 1 << 24
"""So far before an array nobody is by a mistake of a few elements."""


def _overflow(relative: int, site: Site) -> str:
    """Return the remark on an index that looks like an overflow of 32 bits."""
    for size in dict.fromkeys((site.nbytes, site.size)):
        index, remainder = divmod(relative, size)
        if remainder:
            continue
        if 1 << 31 <= index < 1 << 32:
            text = f"; {index} is {index - (1 << 32)} as an unsigned int"
            return text + ": an unsigned number below zero" * (index >= (1 << 32) - _FAR)
        if -(1 << 31) <= index < -_FAR:
            return (
                f"; {index} looks like a 32-bit overflow: {index + (1 << 32)} does not fit into "
                "an int, and needs an index of 64 bits"
            )
    return ""


def _owner(
    home: InterleavedMemory, at: int, site: Site, layout: Layout, functions: Mapping[str, Function]
) -> Placed | None:
    """Return the variable that an address was computed from, or else the nearest one."""
    same_space = [p for p in layout.placed.values() if p.variable.space == home.space]
    function = functions.get(site.function)
    names = named(origins(function), site) if function else frozenset()
    own = [p for p in same_space if p in [layout.named(site.function, name) for name in names]]

    def distance(placed: Placed) -> int:
        size = placed.variable.nbytes
        end = home.nbytes if placed.variable.external else placed.address + size
        return max(placed.address - at, at - end + 1, 0)

    return min(own or same_space, key=distance, default=None)


def place_at(
    layout: Layout, shapes: Shapes, space: str, address: int, site: Site, code: str = ""
) -> tuple[str, int, str]:
    """Variable name and element of a shared or local address, and both as a report has them."""
    placed = layout.variable(space, address)
    if placed is None:
        element = address // site.size
        return f"{space} memory", element, f"{space} memory[{element}]"
    variable, at = placed.variable, address - placed.address
    name, element = variable_name(variable.name), at // site.size
    if name == LOCAL_MEMORY:
        piece = shapes.piece(variable.name, at, variable.nbytes, site.size, code)
        if piece is None:
            return name, element, f"byte {address} of the thread's local memory"
        element = (at - piece.start) // site.size
        return piece.name, element, f"{piece.name}{shapes.index(piece.shape, element)}"
    shape: Shape = ()
    if member := shapes.member(name, space == "shared", variable.nbytes, at, site.size):
        return name, element, f"{name}{member}"
    if not variable.external:
        shape = shapes.variable(name, space == "shared", variable.nbytes, site.size)
    alone = not shape and element == 0 and variable.nbytes == site.size  # a variable, no array
    return name, element, name if alone else f"{name}{shapes.index(shape, element)}"


def variable_at(layout: Layout, space: str, address: int, site: Site) -> tuple[str, int]:
    """Variable name and element of a shared or local address."""
    placed = layout.variable(space, address)
    if placed is None:
        return f"{space} memory", address // site.size
    name = variable_name(placed.variable.name)
    return name, (address - placed.address) // site.size
