"""Header of a PTX text: entries and parameters, without function bodies.

The simulator's parser reads bodies. This module reads only what a launch needs, so that ``device``
can launch a kernel that the simulator could not execute. Source of the grammar: PTX ISA, "Kernel
and Function Directives" and "Parameter State Space".
"""

import re
from dataclasses import dataclass

from .types import TYPE_SIZES


@dataclass(frozen=True)
class Param:
    """One ``.param`` of an entry.

    Attributes:
        name: The PTX name, such as ``saxpy_param_0``.
        type: The PTX element type without its dot, such as ``u64`` or ``b8``.
        count: Number of elements; more than one is a struct or array by value.
        align: Alignment in bytes.
        offset: Byte offset in the parameter buffer.
        register: The function's register that it stands for, if it is declared as ``.reg``.
    """

    name: str
    type: str
    count: int
    align: int
    offset: int
    register: str = ""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return TYPE_SIZES[self.type] * self.count

    @property
    def is_struct(self) -> bool:
        """Whether the parameter is an aggregate passed by value."""
        return self.count > 1 or self.type == "b128"

    def __str__(self) -> str:
        extent = f"[{self.count}]" if self.is_struct else ""
        return f"{self.name} (.{self.type}{extent})"


@dataclass(frozen=True)
class Entry:
    """One ``.entry`` of a PTX module: its name and parameters in order."""

    name: str
    params: tuple[Param, ...]


MAX_PARAMETERS = 32_764
"""Bytes of parameters that a kernel may have (CUDA C++ Programming Guide, sm_70 and later)."""

# All of these take time linear in the text, whatever stands in it.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.S)
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(\(([^()]*)\))?")
_LONGEST = 2000
"""Characters of a parameter's declaration."""
_PARAM = re.compile(
    r"\.param\b(?P<attributes>.*?)\.(?P<type>[bsuf]\w*|pred)\s+"
    r"(?P<pointer>\.ptr\b[^,]*?\s)?(?P<name>[\w$%]+)\s*(?P<extent>\[\s*\d*\s*\])?\s*$",
    re.S,
)
_ALIGN = re.compile(r"\.align\s+(\d+)")


def strip_comments(text: str) -> str:
    """Return the text with comments blanked; line numbers stay as they are, and so do strings."""
    return _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m.group()), text)


def entries(text: str) -> list[Entry]:
    """Return every entry of a PTX text, in the order they stand.

    Raises:
        ValueError: A parameter declaration that cannot be read.
    """
    return [Entry(m[1], _params(m[3] or "")) for m in _ENTRY.finditer(strip_comments(text))]


def _number(digits: str) -> int:
    if len(digits) > 18:
        raise ValueError(f"the number {digits[:18]}... is too large")
    return int(digits)


def _params(text: str) -> tuple[Param, ...]:
    params: list[Param] = []
    offset = 0
    for declaration in filter(None, (part.strip() for part in text.split(","))):
        m = _PARAM.match(declaration) if len(declaration) < _LONGEST else None
        if not m or m["type"] not in TYPE_SIZES:
            shown = " ".join(declaration[:80].split())
            raise ValueError(f"cannot read the parameter declaration {shown!r}")
        count = _number(m["extent"].strip("[] \t\n") or "0") if m["extent"] else 1
        stated = _ALIGN.search(m["attributes"])
        align = _number(stated[1]) if stated else TYPE_SIZES[m["type"]]
        if not 0 < align <= MAX_PARAMETERS or align & (align - 1):
            raise ValueError(f"parameter {m['name']!r}: an alignment of {align} bytes")
        offset = -(-offset // align) * align
        params.append(Param(m["name"], m["type"], count, align, offset))
        offset += params[-1].nbytes
        if offset > MAX_PARAMETERS:
            raise ValueError(
                f"{offset:,} bytes of parameters; a kernel may have {MAX_PARAMETERS:,}"
            )
    return tuple(params)
