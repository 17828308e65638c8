"""PTX debug sections: inlined calls and variable locations of the unoptimised build.

``-G`` inlines ``__forceinline__`` functions, and its ``.loc`` lines do not say where. The sections
do: DWARF 2 (tag and form numbers below are the standard's), written as ``.b8``, ``.b32`` and
``.b64`` numbers, with labels of the code as addresses.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .module import Function, Location

_INLINED = 0x1D  # DW_TAG_inlined_subroutine
_LOW, _HIGH, _COLUMN, _FILE, _LINE = 0x11, 0x12, 0x57, 0x58, 0x59
_ARRAY, _RANGE, _VARIABLES = 0x01, 0x21, (0x34, 0x05)
_LOCATION, _NAME, _SIZE, _UPPER, _COUNT, _TYPE = 0x02, 0x03, 0x0B, 0x2F, 0x37, 0x49
_ADDRESS, _PLUS = 0x03, 0x23  # DW_OP_addr, DW_OP_plus_uconst
_FIXED = {
    0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x10: 4, 0x11: 1, 0x12: 2,
    0x13: 4, 0x14: 8, 0x17: 4,
}  # fmt: skip
"""Sizes of the forms that have one."""
_BLOCKS = {0x03: 2, 0x04: 4, 0x0A: 1}
"""Sizes of the lengths that come before a block."""

_DEEPEST = 100
"""So deep in one another are calls looked at."""


@dataclass
class InlinedCall:
    """A call that was inlined, and the calls inlined into what it called.

    Attributes:
        low, high: Labels between which its code stands.
        file: The calling file; ``line`` and ``column`` of the call.
    """

    low: str
    high: str
    file: str
    line: int
    column: int
    inner: list[InlinedCall] = field(default_factory=list)


def inlined_calls(text: str, files: Mapping[int, str]) -> list[InlinedCall]:
    """Return the inlined calls of a PTX text; none where it has no debug sections.

    A section in a form that is not known gives what stands before that.
    """
    abbreviations, information = _section(text, ".debug_abbrev"), _section(text, ".debug_info")
    found: list[InlinedCall] = []
    if abbreviations and information:
        with contextlib.suppress(KeyError, IndexError, ValueError):
            _read(
                _SectionBytes(information),
                _abbreviations(_SectionBytes(abbreviations)),
                files,
                found,
            )
    return found


def place_inlined(function: Function, calls: Sequence[InlinedCall]) -> None:
    """Say at a function's inlined instructions through which calls they came: the innermost."""
    body, labels = function.body, function.labels
    through: list[Location | None] = [None] * len(body)
    todo: list[tuple[InlinedCall, Location | None]] = [(call, None) for call in reversed(calls)]
    while todo:
        call, outer = todo.pop()
        if call.low not in labels or call.high not in labels:
            continue
        at = Location(call.file, call.line, call.column, outer)
        start, end = labels[call.low], labels[call.high]
        if start and body[start - 1].targets == (call.low,):  # the jump to it has its line
            start -= 1
        through[start:end] = [at] * (end - start)
        todo += [(inner, at) for inner in reversed(call.inner)]
    for ins, place in zip(body, through, strict=True):
        if place and ins.location:
            ins.location = dataclasses.replace(ins.location, inlined_at=place)


@dataclass(frozen=True)
class LocalVariable:
    """A variable that the unoptimised build keeps in a function's local memory.

    Attributes:
        memory: The PTX variable that holds it; ``offset``: where in that it begins.
        sizes: Elements along each dimension of an array; nothing of another variable.
        nbytes: Of an element.
    """

    name: str
    memory: str
    offset: int
    sizes: tuple[int, ...]
    nbytes: int

    @property
    def end(self) -> int:
        """End of the variable's bytes in local memory."""
        return self.offset + self.nbytes * math.prod(self.sizes)


def local_variables(text: str) -> list[LocalVariable]:
    """Return the variables in local memory of a PTX text; none where it has no debug sections."""
    abbreviations, information = _section(text, ".debug_abbrev"), _section(text, ".debug_info")
    entries: dict[int, _Entry] = {}
    if abbreviations and information:
        with contextlib.suppress(KeyError, IndexError, ValueError):
            _read_entries(
                _SectionBytes(information), _abbreviations(_SectionBytes(abbreviations)), entries
            )
    found = []
    for entry in entries.values():
        place = entry.place
        if entry.tag in _VARIABLES and place and place[0].startswith("__local_depot"):
            sizes, nbytes = _extent(entries, entry.values.get(_TYPE), 0)
            if nbytes:
                found.append(LocalVariable(entry.name, *place, sizes, nbytes))
    return found


def _extent(
    entries: Mapping[int, _Entry], at: int | str | None, deep: int
) -> tuple[tuple[int, ...], int]:
    """Return elements along each dimension of a type, and an element's bytes; 0: not known."""
    entry = entries.get(at) if isinstance(at, int) else None
    if entry is None or deep > _DEEPEST:
        return (), 0
    size = entry.values.get(_SIZE)
    if isinstance(size, int) and entry.tag != _ARRAY:
        return (), size
    sizes, nbytes = _extent(entries, entry.values.get(_TYPE), deep + 1)
    return ((*entry.bounds, *sizes) if entry.tag == _ARRAY else sizes), nbytes


@dataclass
class _Entry:
    """A debugging information entry: its tag, attributes, and what of its blocks is needed."""

    tag: int
    values: dict[int, int | str]
    name: str = ""
    place: tuple[str, int] | None = None
    bounds: list[int] = field(default_factory=list)


def _read_entries(
    section: _SectionBytes, known: dict[int, _Abbreviation], entries: dict[int, _Entry]
) -> None:
    section.at = 11
    parents: list[_Entry | None] = []
    while section.at < len(section.data):
        start = section.at
        code = section.leb()
        if not code:
            if parents:
                parents.pop()
            continue
        tag, children, attributes = known[code]
        entry = entries[start] = _Entry(tag, {})
        for name, form in attributes:
            begin = section.at
            entry.values[name] = section.value(form)
            if name == _NAME and form == 0x08:
                entry.name = bytes(section.data[begin : section.at - 1]).decode("latin-1")
            elif name == _LOCATION and form == 0x0A:
                entry.place = _place(section, begin + 1, section.at)
        if tag == _RANGE and parents and parents[-1]:
            upper = entry.values.get(_UPPER, entry.values.get(_COUNT, 0))
            parents[-1].bounds.append(int(upper) + (_UPPER in entry.values))
        if children:
            parents.append(entry)


def _place(section: _SectionBytes, at: int, end: int) -> tuple[str, int] | None:
    """Return the memory of a location: an address, and perhaps a number that is added."""
    label = section.labels.get(at + 1)
    if section.data[at] != _ADDRESS or label is None:
        return None
    offset, after = 0, section.at
    section.at = at + 9
    if section.at < end and section.number(1) == _PLUS:
        offset = section.leb()
    section.at = after
    return label, offset


def _section(text: str, name: str) -> str:
    start = re.search(rf"^\s*\.section\s+{re.escape(name)}\s*\{{", text, re.M)
    return text[start.end() : text.find("}", start.end())] if start else ""


class _SectionBytes:
    """A section as bytes, and the labels that stand for some of them."""

    def __init__(self, text: str) -> None:
        self.data = bytearray()
        self.labels: dict[int, str] = {}
        self.at = 0
        for m in re.finditer(r"\.b(8|16|32|64)\s+([^\n]+)", text):
            size = int(m[1]) // 8
            if size == 1:
                with contextlib.suppress(ValueError):  # signs and labels are few
                    self.data += bytes(map(int, m[2].split(",")))
                    continue
            for word in m[2].split(","):
                word = word.strip()
                if word.lstrip("-").isdigit():
                    number = int(word) & ((1 << 8 * size) - 1)
                    self.data += number.to_bytes(size, "little")
                else:
                    self.labels[len(self.data)] = word
                    self.data += bytes(size)

    def number(self, size: int) -> int:
        value = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.at += size
        return value

    def leb(self) -> int:
        """Return a number, seven bits a byte; of more than 64 bits it is none."""
        value = shift = 0
        while shift < 64:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
        raise ValueError("a number without an end")

    def value(self, form: int) -> int | str:
        """Return an attribute's value; a label where it is an address."""
        if form in _FIXED:
            label = self.labels.get(self.at)
            number = self.number(_FIXED[form])
            return number if label is None else label
        if form in (0x0D, 0x0F, 0x15):
            return self.leb()
        if form == 0x08:
            self.at = self.data.index(0, self.at) + 1
        else:
            length = self.leb() if form == 0x09 else self.number(_BLOCKS[form])
            self.at += length
        return 0


_Abbreviation = tuple[int, bool, list[tuple[int, int]]]


def _abbreviations(section: _SectionBytes) -> dict[int, _Abbreviation]:
    found: dict[int, _Abbreviation] = {}
    while code := section.leb():
        tag, children = section.leb(), bool(section.number(1))
        attributes = list(iter(lambda: (section.leb(), section.leb()), (0, 0)))
        found[code] = tag, children, attributes
    return found


def _read(
    section: _SectionBytes,
    known: dict[int, _Abbreviation],
    files: Mapping[int, str],
    found: list[InlinedCall],
) -> None:
    section.at = 11  # length, version, offset of the abbreviations, size of an address
    open_calls: list[InlinedCall | None] = []
    while section.at < len(section.data):
        code = section.leb()
        if not code:
            if open_calls:
                open_calls.pop()
            continue
        tag, children, attributes = known[code]
        values = {name: section.value(form) for name, form in attributes}
        call = _call(values, files) if tag == _INLINED else None
        if call and len(open_calls) < _DEEPEST:
            outer = next((c for c in reversed(open_calls) if c), None)
            (outer.inner if outer else found).append(call)
        if children:
            open_calls.append(call)


def _call(values: Mapping[int, int | str], files: Mapping[int, str]) -> InlinedCall | None:
    low, high = values.get(_LOW), values.get(_HIGH)
    file, line, column = (int(values.get(name, 0)) for name in (_FILE, _LINE, _COLUMN))
    if isinstance(low, str) and isinstance(high, str) and file in files:
        return InlinedCall(low, high, files[file], line, column)
    return None
