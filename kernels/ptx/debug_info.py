"""Which calls the unoptimised build inlined, out of the debug sections of its PTX.

``-G`` inlines ``__forceinline__`` functions, and its ``.loc`` lines do not say where. The
sections do: DWARF 2 (tag and form numbers below are the standard's), written as ``.b8``,
``.b32`` and ``.b64`` numbers, with labels of the code as addresses.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .module import Function, Location

_INLINED = 0x1D  # DW_TAG_inlined_subroutine
_LOW, _HIGH, _COLUMN, _FILE, _LINE = 0x11, 0x12, 0x57, 0x58, 0x59
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
    """The inlined calls of a PTX text; none where it has no debug sections.

    A section in a form that is not known gives what stands before that.
    """
    abbreviations, information = _section(text, ".debug_abbrev"), _section(text, ".debug_info")
    found: list[InlinedCall] = []
    if abbreviations and information:
        with contextlib.suppress(KeyError, IndexError, ValueError):
            _read(_Bytes(information), _abbreviations(_Bytes(abbreviations)), files, found)
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


def _section(text: str, name: str) -> str:
    start = re.search(rf"^\s*\.section\s+{re.escape(name)}\s*\{{", text, re.M)
    return text[start.end() : text.find("}", start.end())] if start else ""


class _Bytes:
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
        """A number, seven bits a byte; of more than 64 bits it is none."""
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
        """An attribute's value; a label where it is an address."""
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


def _abbreviations(section: _Bytes) -> dict[int, _Abbreviation]:
    found: dict[int, _Abbreviation] = {}
    while code := section.leb():
        tag, children = section.leb(), bool(section.number(1))
        attributes = list(iter(lambda: (section.leb(), section.leb()), (0, 0)))
        found[code] = tag, children, attributes
    return found


def _read(
    section: _Bytes,
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
