"""Types as a compiler's debug information has them.

The *source* build carries it, and so does other PTX that was compiled with ``-G``: layouts of
structures are the compiler's own there, with bit-fields, bases, unions and packed members.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .dwarf import NAME, DebugEntry, Reader, entries

Bits = NDArray[np.uint8]
"""Ones for the bits of a type's bytes that belong to a member, zeros for padding."""

_NBYTES, _BIT_OFFSET, _BIT_SIZE, _COUNT, _UPPER, _ARTIFICIAL = 0x0B, 0x0C, 0x0D, 0x37, 0x2F, 0x34
_PLACE, _DECLARATION, _EXTERNAL, _TYPE, _DATA_BIT_OFFSET = 0x38, 0x3C, 0x3F, 0x49, 0x6B
"""Attributes (DWARF 4, section 7.5.4)."""
_ARRAY, _CLASS, _ENUM, _PARAMETER, _MEMBER, _POINTER, _STRUCTURE, _UNION = (
    0x01, 0x02, 0x04, 0x05, 0x0D, 0x0F, 0x13, 0x17
)  # fmt: skip
_BASE, _RANGE, _NUMBER, _FUNCTION, _VARIABLE = 0x1C, 0x21, 0x24, 0x2E, 0x34
_REFERENCES, _NAMES_FOR = (0x10, 0x42), (0x16, 0x26, 0x35, 0x37, 0x47)
"""Tags; those of references, and of what another type has as a name or qualifier."""
_PLUS = 0x23
"""``DW_OP_plus_uconst``: where DWARF 2 says where a member is."""
_MAX_TYPES = 1 << 20
"""Bytes of a type that are looked at."""


class DebugInfo:
    """The types of a PTX text's parameters and variables.

    Types are entries; ``None`` is one of which nothing is known, ``void`` among them.
    """

    def __init__(self, ptx: str) -> None:
        self.entries = entries(ptx)
        self._bits: dict[int, Bits | None] = {}

    def parameters(self, entry: str) -> list[DebugEntry | None]:
        """Return the type of each parameter of a kernel, by its name in the PTX."""
        for one in self.entries.values():
            if one.tag == _FUNCTION and entry in one.names:
                return [self._of(child) for child in one.children if child.tag == _PARAMETER]
        return []

    def variable(self, name: str) -> DebugEntry | None:
        """Return the type of a variable outside functions, by its name in the PTX."""
        for one in self.entries.values():
            if one.tag == _VARIABLE and name in one.names:
                return self._of(one)
        return None

    def pointee(self, kind: DebugEntry | None, at: int = 0) -> DebugEntry | None:
        """Return the pointee of a type that is a pointer, or of the pointer at a byte in it."""
        if kind is None or at < 0:
            return None
        if kind.tag == _POINTER or kind.tag in _REFERENCES:
            return self._of(kind) if at == 0 else None
        if kind.tag == _ARRAY:
            element = self._of(kind)
            return self.pointee(element, at % self._size(element)) if element else None
        for part in self._parts(kind):
            inside, place = self._of(part), _place(part)
            if inside and place is not None and place <= at < place + self._size(inside):
                return self.pointee(inside, at - place)
        return None

    def is_structure(self, kind: DebugEntry) -> bool:
        """Whether a type may have padding."""
        return kind.tag in (_STRUCTURE, _CLASS, _UNION, _ARRAY)

    def bits(self, kind: DebugEntry) -> Bits | None:
        """Return the bits of a type that belong to members; of a union, to all alternatives."""
        if id(kind) not in self._bits:
            self._bits[id(kind)] = None  # a type that has itself as a member is no type
            self._bits[id(kind)] = self._found(kind)
        return self._bits[id(kind)]

    def _found(self, kind: DebugEntry) -> Bits | None:
        size = self._size(kind)
        if not 0 < size <= _MAX_TYPES:
            return None
        if kind.tag == _ARRAY:
            element = self._of(kind)
            one = self.bits(element) if element else None
            return None if one is None else np.tile(one, size // len(one))
        if not self.is_structure(kind):
            return np.full(size, 0xFF, np.uint8)
        if _DECLARATION in kind.values:
            return None
        found = np.zeros(size, np.uint8)
        alternatives = []
        for part in self._parts(kind):
            bits = self._of_part(part, size)
            if bits is None:
                return None
            found |= bits
            alternatives.append(bits)
        if kind.tag == _UNION and alternatives:
            common: Bits = np.bitwise_and.reduce(alternatives)
            return common
        return found

    def _of_part(self, part: DebugEntry, size: int) -> Bits | None:
        """Return a member's, or a base's, bits in a structure of so many bytes."""
        kind, place = self._of(part), _place(part)
        if kind is None or place is None:
            return None
        if _BIT_SIZE in part.values:
            width = part.number(_BIT_SIZE)
            if _DATA_BIT_OFFSET in part.values:
                first = part.number(_DATA_BIT_OFFSET)
            else:  # DWARF 2 counts from the most significant bit of what the field is in
                whole = 8 * (part.number(_NBYTES) or self._size(kind))
                offset = part.number(_BIT_OFFSET)  # negative if packed across its type's end
                offset -= (offset >> 63) << 64
                first = 8 * place + whole - offset - width
            if not 0 <= first <= 8 * size - width:
                return None
            single = np.zeros(8 * size, bool)
            single[first : first + width] = True
            return np.packbits(single, bitorder="little")
        bits = self.bits(kind)
        if bits is None or place + len(bits) > size:
            # An empty base has a byte of its own that may lie behind the last member.
            return np.zeros(size, np.uint8) if bits is not None and not bits.any() else None
        found = np.zeros(size, np.uint8)
        found[place : place + len(bits)] = bits
        return found

    def _parts(self, kind: DebugEntry) -> Iterator[DebugEntry]:
        """Yield members and bases.

        Not what a class shares, what the compiler adds, nor bit-fields without a name: padding.
        """
        for child in kind.children:
            added = child.values.get(NAME) == "__vptr" or child.number(_ARTIFICIAL)
            shared = child.number(_DECLARATION) or child.number(_EXTERNAL)
            unnamed = _BIT_SIZE in child.values and not child.values.get(NAME)
            if child.tag in (_MEMBER, _BASE) and not (added or shared or unnamed):
                yield child

    def _of(self, one: DebugEntry) -> DebugEntry | None:
        """Return the type of something, without names and qualifiers."""
        for _ in range(64):
            kind = self.entries.get(one.number(_TYPE, -1))
            if kind is None or kind.tag not in _NAMES_FOR:
                return kind
            one = kind
        return None

    def _size(self, kind: DebugEntry | None) -> int:
        if kind is None:
            return 1
        if kind.tag == _POINTER or kind.tag in _REFERENCES:
            return 8
        if kind.tag != _ARRAY:
            return max(1, kind.number(_NBYTES, 1))
        count = 1
        for child in kind.children:
            if child.tag == _RANGE:
                count *= child.number(_COUNT) or child.number(_UPPER, -1) + 1
        return max(1, count * self._size(self._of(kind)))


def _place(part: DebugEntry) -> int | None:
    """Return the byte at which a member begins; ``None`` if it is computed at run time."""
    value = part.values.get(_PLACE, 0)
    if isinstance(value, int):
        return value
    if isinstance(value, bytes) and value[:1] == bytes([_PLUS]):
        return Reader(value, 1).uleb()
    return None


@functools.lru_cache(maxsize=8)
def debug_info(ptx: str) -> DebugInfo:
    """Return the debug information of a PTX text."""
    return DebugInfo(ptx)
