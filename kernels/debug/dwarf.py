"""Debugging information entries in the sections of a PTX text (DWARF 2 to 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SECTION = r"\.section\s+\.{0}\s*\{{([^}}]*)\}}"
NAME, LINKAGE, MIPS_LINKAGE = 0x03, 0x6E, 0x2007
"""Attributes with an entry's names (DWARF 4, section 7.5.4)."""
_OF_BYTES = {0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x11: 1, 0x12: 2, 0x13: 4,
             0x14: 8, 0x17: 4, 0x20: 8}  # fmt: skip
"""Forms of a fixed size; ``_OF_UNIT``: those that count from their unit's first byte."""
_OF_UNIT = (0x11, 0x12, 0x13, 0x14, 0x15)


@dataclass
class DebugEntry:
    """A debugging information entry.

    Attributes:
        tag: What it is of; ``values``: by attribute a number, bytes, or a text.
        children: The entries in it.
    """

    tag: int
    values: dict[int, int | bytes | str]
    children: list[DebugEntry] = field(default_factory=list)

    def number(self, attribute: int, otherwise: int = 0) -> int:
        """Return an attribute's value, if it is a number."""
        value = self.values.get(attribute, otherwise)
        return value if isinstance(value, int) else otherwise

    @property
    def names(self) -> set[object]:
        """Its name in the source, and in the PTX."""
        return {self.values[n] for n in (NAME, LINKAGE, MIPS_LINKAGE) if n in self.values}


def entries(ptx: str) -> dict[int, DebugEntry]:
    """Return all entries, by their places in the section; none of what is not as DWARF has it."""
    found: dict[int, DebugEntry] = {}
    try:
        units, forms, at = _bytes(ptx, "debug_info"), _bytes(ptx, "debug_abbrev"), 0
        while at < len(units):
            at = _unit(Reader(units, at), forms, found)
    except (IndexError, KeyError, ValueError):
        found.clear()
    return found


def _unit(reader: Reader, forms: bytes, found: dict[int, DebugEntry]) -> int:
    """Read a compilation unit; where the next one begins."""
    start = reader.at
    end = start + 4 + reader.number(4)
    version, table, width = reader.number(2), reader.number(4), reader.number(1)
    if not 2 <= version <= 4:
        return end
    kinds = _forms(forms, table)
    above: list[list[DebugEntry]] = [[]]
    while reader.at < end:
        at = reader.at
        code = reader.uleb()
        if code == 0:
            if len(above) > 1:
                above.pop()
            continue
        tag, has_children, attributes = kinds[code]
        one = DebugEntry(tag, {name: reader.value(form, start, width) for name, form in attributes})
        found[at] = one
        above[-1].append(one)
        if has_children:
            above.append(one.children)
    return end


class Reader:
    """Bytes, read from a place on."""

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw, self.at = raw, at

    def number(self, nbytes: int) -> int:
        """Return the next bytes as a number."""
        return int.from_bytes(self.take(nbytes), "little")

    def take(self, nbytes: int) -> bytes:
        """Return the next bytes."""
        if self.at + nbytes > len(self.raw):
            raise IndexError(self.at)
        self.at += nbytes
        return self.raw[self.at - nbytes : self.at]

    def uleb(self) -> int:
        """Return the next number of any length (unsigned LEB128)."""
        found = shift = 0
        while True:
            byte = self.number(1)
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    def value(self, form: int, unit: int, width: int) -> int | bytes | str:
        """Return an attribute's value; a reference as a place in the section."""
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
    """Return the abbreviation table: tag, presence of children and attributes by number."""
    found: _Forms = {}
    reader = Reader(raw, at)
    while reader.at < len(raw) and (code := reader.uleb()):
        tag, children, attributes = reader.uleb(), bool(reader.number(1)), []
        while (pair := (reader.uleb(), reader.uleb())) != (0, 0):
            attributes.append(pair)
        found[code] = tag, children, attributes
    return found


def _bytes(ptx: str, name: str) -> bytes:
    """Return a section's bytes; addresses and labels in it are zeros."""
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
