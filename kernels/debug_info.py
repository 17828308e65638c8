"""Types as a compiler's debug information has them (DWARF 2 to 4, in the sections of a PTX text).

The *source* build carries it, and so does other PTX that was compiled with ``-G``: layouts of
structures are the compiler's own there, with bit-fields, bases, unions and packed members.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
"""Ones for the bits of a type's bytes that belong to a member, zeros for padding."""

_SECTION = r"\.section\s+\.{0}\s*\{{([^}}]*)\}}"
_NAME, _NBYTES, _BIT_OFFSET, _BIT_SIZE, _COUNT, _UPPER, _ARTIFICIAL = (
    0x03, 0x0B, 0x0C, 0x0D, 0x37, 0x2F, 0x34
)  # fmt: skip
_PLACE, _DECLARATION, _EXTERNAL, _TYPE, _DATA_BIT_OFFSET, _LINKAGE, _MIPS_LINKAGE = (
    0x38, 0x3C, 0x3F, 0x49, 0x6B, 0x6E, 0x2007
)  # fmt: skip
"""Attributes (DWARF 4, section 7.5.4)."""
_ARRAY, _CLASS, _ENUM, _PARAMETER, _MEMBER, _POINTER, _STRUCTURE, _UNION = (
    0x01, 0x02, 0x04, 0x05, 0x0D, 0x0F, 0x13, 0x17
)  # fmt: skip
_BASE, _RANGE, _NUMBER, _FUNCTION, _VARIABLE = 0x1C, 0x21, 0x24, 0x2E, 0x34
_REFERENCES, _NAMES_FOR = (0x10, 0x42), (0x16, 0x26, 0x35, 0x37, 0x47)
"""Tags; those of references, and of what another type has as a name or qualifier."""
_OF_BYTES = {0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x11: 1, 0x12: 2, 0x13: 4,
             0x14: 8, 0x17: 4, 0x20: 8}  # fmt: skip
"""Forms of a fixed size; ``_OF_UNIT``: those that count from their unit's first byte."""
_OF_UNIT = (0x11, 0x12, 0x13, 0x14, 0x15)
_PLUS = 0x23
"""``DW_OP_plus_uconst``: where DWARF 2 says where a member is."""
_MOST = 1 << 20
"""Bytes of a type that are looked at."""


@dataclass
class Entry:
    """A debugging information entry.

    Attributes:
        tag: What it is of; ``values``: by attribute a number, bytes, or a text.
        children: The entries in it.
    """

    tag: int
    values: dict[int, int | bytes | str]
    children: list[Entry] = field(default_factory=list)

    def number(self, attribute: int, otherwise: int = 0) -> int:
        """An attribute's value, if it is a number."""
        value = self.values.get(attribute, otherwise)
        return value if isinstance(value, int) else otherwise

    @property
    def names(self) -> set[object]:
        """Its name in the source, and in the PTX."""
        return {self.values.get(name) for name in (_NAME, _LINKAGE, _MIPS_LINKAGE)} - {None}


class DebugInfo:
    """The types of a PTX text's parameters and variables.

    Types are entries; ``None`` is one of which nothing is known, ``void`` among them.
    """

    def __init__(self, ptx: str) -> None:
        self.entries: dict[int, Entry] = {}
        self._bits: dict[int, Bits | None] = {}
        try:
            units = _bytes(ptx, "debug_info")
            forms = _bytes(ptx, "debug_abbrev")
            at = 0
            while at < len(units):
                at = self._unit(_Reader(units, at), forms)
        except (IndexError, KeyError, ValueError):  # not as DWARF has it: nothing is known
            self.entries.clear()

    def parameters(self, entry: str) -> list[Entry | None]:
        """The type of each parameter of a kernel, by its name in the PTX."""
        for one in self.entries.values():
            if one.tag == _FUNCTION and entry in one.names:
                return [self._of(child) for child in one.children if child.tag == _PARAMETER]
        return []

    def variable(self, name: str) -> Entry | None:
        """The type of a variable outside functions, by its name in the PTX."""
        for one in self.entries.values():
            if one.tag == _VARIABLE and name in one.names:
                return self._of(one)
        return None

    def pointee(self, kind: Entry | None, at: int = 0) -> Entry | None:
        """What a pointer points to that is a type, or stands in it at a byte."""
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

    def is_structure(self, kind: Entry) -> bool:
        """Whether a type may have padding."""
        return kind.tag in (_STRUCTURE, _CLASS, _UNION, _ARRAY)

    def bits(self, kind: Entry) -> Bits | None:
        """The bits of a type that belong to members; of a union's, to all of its alternatives."""
        if id(kind) not in self._bits:
            self._bits[id(kind)] = None  # a type that has itself as a member is no type
            self._bits[id(kind)] = self._found(kind)
        return self._bits[id(kind)]

    def _found(self, kind: Entry) -> Bits | None:
        size = self._size(kind)
        if not 0 < size <= _MOST:
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
            return np.bitwise_and.reduce(alternatives)
        return found

    def _of_part(self, part: Entry, size: int) -> Bits | None:
        """A member's, or a base's, bits in a structure of so many bytes."""
        kind, place = self._of(part), _place(part)
        if kind is None or place is None:
            return None
        if _BIT_SIZE in part.values:
            width = part.number(_BIT_SIZE)
            if _DATA_BIT_OFFSET in part.values:
                first = part.number(_DATA_BIT_OFFSET)
            else:  # DWARF 2 counts from the most significant bit of what the field is in
                whole = 8 * (part.number(_NBYTES) or self._size(kind))
                first = 8 * place + whole - part.number(_BIT_OFFSET) - width
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

    def _parts(self, kind: Entry) -> Iterator[Entry]:
        """Members and bases; not what a class shares, nor what the compiler adds."""
        for child in kind.children:
            added = child.values.get(_NAME) == "__vptr" or child.number(_ARTIFICIAL)
            shared = child.number(_DECLARATION) or child.number(_EXTERNAL)
            if child.tag in (_MEMBER, _BASE) and not (added or shared):
                yield child

    def _of(self, one: Entry) -> Entry | None:
        """The type of something, without names and qualifiers."""
        for _ in range(64):
            kind = self.entries.get(one.number(_TYPE, -1))
            if kind is None or kind.tag not in _NAMES_FOR:
                return kind
            one = kind
        return None

    def _size(self, kind: Entry | None) -> int:
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

    def _unit(self, reader: _Reader, forms: bytes) -> int:
        """Read a compilation unit; where the next one begins."""
        start = reader.at
        end = start + 4 + reader.number(4)
        version, table, width = reader.number(2), reader.number(4), reader.number(1)
        if not 2 <= version <= 4:
            return end
        kinds = _forms(forms, table)
        above: list[list[Entry]] = [[]]
        while reader.at < end:
            at = reader.at
            code = reader.uleb()
            if code == 0:
                if len(above) > 1:
                    above.pop()
                continue
            tag, has_children, attributes = kinds[code]
            one = Entry(tag, {name: reader.value(form, start, width) for name, form in attributes})
            self.entries[at] = one
            above[-1].append(one)
            if has_children:
                above.append(one.children)
        return end


def _place(part: Entry) -> int | None:
    """The byte at which a member begins; ``None`` where that is worked out as a program runs."""
    value = part.values.get(_PLACE, 0)
    if isinstance(value, int):
        return value
    if isinstance(value, bytes) and value[:1] == bytes([_PLUS]):
        return _Reader(value, 1).uleb()
    return None


class _Reader:
    def __init__(self, raw: bytes, at: int) -> None:
        self.raw, self.at = raw, at

    def number(self, nbytes: int) -> int:
        return int.from_bytes(self.take(nbytes), "little")

    def take(self, nbytes: int) -> bytes:
        if self.at + nbytes > len(self.raw):
            raise IndexError(self.at)
        self.at += nbytes
        return self.raw[self.at - nbytes : self.at]

    def uleb(self) -> int:
        found = shift = 0
        while True:
            byte = self.number(1)
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    def value(self, form: int, unit: int, width: int) -> int | bytes | str:
        """An attribute's value; a reference as a place in the section."""
        if form == 0x08:
            end = self.raw.index(b"\0", self.at)
            return self.take(end + 1 - self.at)[:-1].decode(errors="replace")
        if form in (0x03, 0x04, 0x09, 0x0A, 0x18):
            sizes = {0x03: 2, 0x04: 4, 0x0A: 1}
            return self.take(self.number(sizes[form]) if form in sizes else self.uleb())
        if form in (0x0D, 0x0F, 0x15):
            found = self.uleb()
        elif form in (0x01, 0x10):
            found = self.number(width)
        elif form == 0x19:
            found = 1
        else:
            found = self.number(_OF_BYTES[form])
        return found + unit if form in _OF_UNIT else found


_Forms = dict[int, tuple[int, bool, list[tuple[int, int]]]]


def _forms(raw: bytes, at: int) -> _Forms:
    """What entries are made of: by number the tag, whether there are children, attributes."""
    found: _Forms = {}
    reader = _Reader(raw, at)
    while reader.at < len(raw) and (code := reader.uleb()):
        tag, children, attributes = reader.uleb(), bool(reader.number(1)), []
        while (pair := (reader.uleb(), reader.uleb())) != (0, 0):
            attributes.append(pair)
        found[code] = tag, children, attributes
    return found


def _bytes(ptx: str, name: str) -> bytes:
    """A section's bytes; addresses and labels in it are zeros."""
    found = re.search(_SECTION.format(name), ptx)
    raw = bytearray()
    for line in found[1].splitlines() if found else ():
        word, _, values = line.split("//")[0].strip().partition(" ")
        if not word.startswith(".b"):
            continue
        nbytes = int(word[2:]) // 8
        for value in values.split(","):
            text = value.strip()
            number = int(text, 0) if text[:1] in "-0123456789" else 0
            raw += (number & (1 << 8 * nbytes) - 1).to_bytes(nbytes, "little")
    return bytes(raw)


@functools.lru_cache(maxsize=8)
def debug_info(ptx: str) -> DebugInfo:
    """What a PTX text says of its types."""
    return DebugInfo(ptx)
