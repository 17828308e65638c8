"""Pointers that a CUDA source declares ``__restrict__``: parameters, and members of structures.

PTX keeps no trace of the qualifier, so that only a source tells. Macros and typedefs that stand for
it are followed by their names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..arguments.values import Value
from .mangling import demangle
from .signatures import find, parameter_label
from .structures import layout_of

if TYPE_CHECKING:
    from ..arguments.convert import Arguments
    from ..kernel import Kernel

_OWN = frozenset(["__restrict__", "__restrict"])
_STANDS_FOR = (
    re.compile(r"#[ \t]*define[ \t]+(\w+)[ \t]+((?:\\\r?\n|[^\n])*)"),
    re.compile(r"\busing\s+(\w+)\s*=([^;{}]*);"),
)
_TYPEDEF = re.compile(r"\btypedef\b([^;{}]*?)(\w+)\s*;")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


Base = tuple[int, int]
"""A pointer's place: its parameter's number, and the byte of that at which it stands."""


class Restricted(NamedTuple):
    """A pointer that promises to be the only way to the bytes which are written.

    Attributes:
        parameter: Number of the kernel's parameter; ``offset``: byte of it where the pointer is.
        name: What the source calls it: ``x``, or ``s.x`` of a member.
    """

    parameter: int
    offset: int
    name: str


def restricted(kernel: Kernel) -> tuple[Restricted, ...]:
    """Return the restricted pointers of a kernel, as far as its CUDA source tells."""
    if kernel.origin is None:
        return ()
    sources = kernel.declarations
    symbol = demangle(kernel.entry)
    found = find(sources, *((symbol.name, symbol.params) if symbol else (kernel.name,)))
    if found is None or len(found.written) != len(kernel.params):
        return ()
    words = _words(tuple(sources.values()))
    names = [name for _, name in found.params]
    kinds = kernel.parameter_types
    made: list[Restricted] = []
    for number, (param, written) in enumerate(zip(kernel.params, found.written, strict=True)):
        label = parameter_label(names, number)
        if not param.is_struct and _is_restricted(written, words):
            made.append(Restricted(number, 0, label))
        layout = layout_of(kinds[number], sources) if param.is_struct else None
        bodies = _bodies(kinds[number], sources) if layout else []
        for name, offset, field in layout.fields if layout else ():
            if field.scalar == "pointer" and any(_member(body, name, words) for body in bodies):
                made.append(Restricted(number, offset, f"{label}.{name}"))
    return tuple(made)


class Pointers(NamedTuple):
    """The pointers of a launch, if restricted ones reach one array.

    Attributes:
        arrays: The number of the array that each pointer points into.
        names: By array the restricted pointers that reach it, where there are several.
    """

    arrays: Mapping[Base, int] = {}
    names: Mapping[int, Mapping[Base, str]] = {}


def pointers(kernel: Kernel, arguments: Arguments) -> Pointers:
    """Return the pointers of a launch; none where no array is reached twice."""
    arrays = {
        (number, a.at): a.array
        for number, value in enumerate(arguments.values)
        for a in (value.addresses if isinstance(value, Value) else ())
        if not a.of
    }
    if len(arrays) == len(set(arrays.values())):
        return Pointers()
    found: dict[int, dict[Base, str]] = {}
    for number, offset, name in restricted(kernel):
        if (number, offset) in arrays:
            found.setdefault(arrays[number, offset], {})[number, offset] = name
    names = {array: names for array, names in found.items() if len(names) > 1}
    return Pointers(arrays, names) if names else Pointers()


def _is_restricted(declaration: str, words: frozenset[str]) -> bool:
    """Whether the qualifier is the pointer's own, and not that of a pointer it points to."""
    return not words.isdisjoint(re.findall(r"\w+", declaration.rpartition("*")[2]))


@functools.lru_cache(maxsize=16)
def _words(sources: tuple[str, ...]) -> frozenset[str]:
    """Return the qualifier, and the names that macros and typedefs give to it."""
    pairs: list[tuple[str, str]] = []
    for source in sources:
        plain = _COMMENT.sub(" ", source)
        pairs += [(m[1], m[2]) for pattern in _STANDS_FOR for m in pattern.finditer(plain)]
        pairs += [(m[2], m[1]) for m in _TYPEDEF.finditer(plain)]
    words = set(_OWN)
    size = 0
    while size != len(words):
        size = len(words)
        words |= {name for name, text in pairs if _is_restricted(text, frozenset(words))}
    return frozenset(words)


def _bodies(kind: str, sources: Mapping[str, str]) -> list[str]:
    """Return the bodies of the structures of a name."""
    name = re.escape(kind.partition("<")[0].split("::")[-1].strip())
    own = rf"\b(?:struct|class)\b[^;{{}}()]*\b{name}\b[^;{{}}()]*\{{([^{{}}]*)\}}"
    head = re.compile(rf"{own}|\btypedef\s+struct\b[^;{{}}()]*\{{([^{{}}]*)\}}\s*{name}\s*;")
    plain = (_COMMENT.sub(" ", source) for source in sources.values())
    return [m[1] or m[2] or "" for text in plain for m in head.finditer(text)]


def _member(body: str, name: str, words: frozenset[str]) -> bool:
    """Whether a structure's member is declared so."""
    for declaration in body.split(";"):
        for declarator in declaration.split(","):
            if re.search(rf"\b{re.escape(name)}\s*$", declarator):
                return _is_restricted(declarator, words)
    return False
