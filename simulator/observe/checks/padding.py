"""Padding: which bits of a global array's elements belong to no member.

The members are those of the array's dtype if it has fields. Otherwise they come from the C++ type
of a pointer to the array, by the compiler's debug information or the source's definition. Without a
type (PTX alone), bytes that no thread writes in any element count as padding.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import numpy as np

from kernels.arguments.pointers import AddressSlot
from kernels.arguments.values import Value
from kernels.debug.dwarf import DebugEntry
from kernels.debug.types import Bits, DebugInfo, debug_info
from kernels.errors import KernelError
from kernels.source.element_types import is_structure
from kernels.source.structures import TypeLayout, layout_of

from ...core.geometry import Flat
from ...execute.prepare import PreparedLaunch
from ...memory.storage.layout import array_number
from ...memory.stored_bytes import Written

_WHOLE: Bits = np.full(1, 0xFF, np.uint8)
_ELEMENTS = 64
"""Bytes of an element, at most, that is copied byte by byte where no type says how long it is."""


class Members:
    """Members of the elements of a launch's arrays."""

    def __init__(self, launch: PreparedLaunch) -> None:
        self.launch, self.kernel = launch, launch.kernel
        placed = launch.program.layout.placed.values()
        self.variables = {
            array_number(p.address): p.variable for p in placed if p.variable.space == "global"
        }

    def of(self, number: int) -> list[tuple[int, Bits]] | None:
        """Return masks of the members of an array's elements, with the offset of the first element.

        There are several if pointers of several types refer to it; padding must be padding in all
        of them. ``None``: the type is unknown.
        """
        arguments = self.launch.arguments
        if number >= len(arguments.arrays):
            return self._of_variable(number)
        dtype = arguments.arrays[number].dtype
        if dtype.fields is not None:
            return [(0, _of_dtype(dtype))]
        found, unknown = [], False
        for bits, offset, is_named in self._pointers(number):
            # Without a type, an array of numbers is one; bytes may be anything.
            unknown |= bits is None and (is_named or dtype.itemsize == 1)
            if bits is not None and bool((bits != 0xFF).any()):
                found.append((offset, bits))
        return None if unknown else found or [(0, _WHOLE)]

    def _pointers(self, number: int) -> Iterator[tuple[Bits | None, int, bool]]:
        """Yield for each pointer to an array the element's members and the offset it points to.

        It also yields whether the kernel names a structure there.
        """
        elements = self.kernel.element_types
        for i, at, address in self._addresses(number):
            element = elements[i] if at == [0] and not self.kernel.params[i].is_struct else ""
            plain = element and not is_structure(element)
            if plain or self.kernel.adapter:
                yield _WHOLE, address.offset, False
                continue
            bits = self._typed(i, at)
            if bits is None and element:
                layout = layout_of(element, self.kernel.declarations)
                bits = None if layout is None else _of_layout(layout)
            if bits is None and self.kernel.origin and not element:
                bits = _WHOLE  # there is a source, and no pointer to a structure in it
            yield bits, address.offset, bool(element)

    def _addresses(self, number: int) -> Iterator[tuple[int, list[int], AddressSlot]]:
        """Yield the positions of an array's addresses: parameter, and offsets through tables.

        Of a table of addresses the first entry represents all.
        """
        arguments = self.launch.arguments
        for i, value in enumerate(arguments.values):
            for address in value.addresses if isinstance(value, Value) else ():
                table = arguments.tables.get(address.array)
                if address.array == number and not address.of:
                    yield i, [address.at], address
                for inner in table.addresses if table else ():
                    if inner.array == number and not inner.of:
                        yield i, [address.at, 0], inner

    def _typed(self, parameter: int, at: list[int]) -> Bits | None:
        """Return the members of a pointer's target, from debug information."""
        entry, info = self._compiled
        kinds = info.parameters(entry)
        kind = kinds[parameter] if parameter < len(kinds) else None
        for place in at:
            kind = info.pointee(kind, place)
        return None if kind is None else info.bits(kind)

    @functools.cached_property
    def _compiled(self) -> tuple[str, DebugInfo]:
        """Return entry name and debug information of the kernel's source build."""
        kernel = self.kernel
        if ".debug_info" not in kernel.ptx and kernel.origin is not None:
            with contextlib.suppress(KernelError, OSError):  # that build's report says why
                kernel = kernel.rebuild("source")
        return kernel.entry, debug_info(kernel.ptx)

    def _of_variable(self, number: int) -> list[tuple[int, Bits]] | None:
        variable = self.variables.get(number)
        if variable is None:
            return None
        if variable.type != "b8":
            return [(0, _WHOLE)]
        _, info = self._compiled
        kind: DebugEntry | None = info.variable(variable.name)
        bits = None if kind is None else info.bits(kind)
        return None if bits is None else [(0, bits)]


def undefined_members(members: list[tuple[int, Bits]], bits: Flat) -> bool:
    """Whether any undefined bit of an array belongs to a member."""
    undefined = bits & member_bits(members, len(bits))
    return bool(undefined.any())


def member_bits(members: list[tuple[int, Bits]], nbytes: int) -> Bits:
    """Return the bits of an array that are members in every type."""
    found: Bits = np.full(nbytes, 0xFF, np.uint8)
    for offset, element in members:
        count = -(-(nbytes + len(element)) // len(element))
        first = -offset % len(element)
        found &= np.tile(element, count)[first : first + nbytes]
    return found


def may_be_padding(written: Written, bits: Flat, undefined: Flat) -> bool:
    """Whether undefined bits may be padding of elements of unknown type.

    The element size is the distance of one store instruction's addresses. Padding bits are
    undefined in some elements and defined in none, next to others that are defined.

    Args:
        written: Where the array was written.
        bits: Its undefined bits.
        undefined: The bits that are undefined if every uninitialised read counts: what another
            such read has copied is not defined.
    """
    if not written.mask.any():
        return False
    first = int(np.argmax(written.mask))
    defined = np.where(written.mask[first:], ~(bits | undefined)[first:], np.uint8(0))
    length = written.stride
    if length == 0:
        return _same_pattern(bits[first:], defined, len(defined))
    lengths = range(2, _ELEMENTS + 1) if length == 1 else [length]
    return any(_same_pattern(bits[first:], defined, length) for length in lengths)


def _same_pattern(undefined: Flat, defined: Flat, length: int) -> bool:
    """Whether no bit is defined in one element of a given size and undefined in another."""
    rows = []
    for content in (undefined, defined):
        filled = np.zeros(-(-len(content) // length) * length, np.uint8)
        filled[: len(content)] = content
        rows.append(filled.reshape(-1, length))
    never, ever = (np.bitwise_or.reduce(content, axis=0) for content in rows)
    return not (never & ever).any() and bool(ever.any())


def _of_dtype(dtype: np.dtype[np.void]) -> Bits:
    """Return the bits of an element that belong to fields."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.tile(_of_dtype(base), int(np.prod(shape)))
    found = np.zeros(dtype.itemsize, np.uint8)
    if dtype.fields is None:
        found[:] = 0xFF
    else:
        for kind, offset, *_ in dtype.fields.values():
            found[offset : offset + kind.itemsize] |= _of_dtype(kind)
    return found


def _of_layout(layout: TypeLayout) -> Bits:
    """Return the bits of a type that belong to fields."""
    if layout.scalar:
        return np.full(layout.nbytes, 0xFF, np.uint8)
    found = np.zeros(layout.nbytes, np.uint8)
    for _, at, kind in layout.fields:
        found[at : at + kind.nbytes] |= _of_layout(kind)
    return found
