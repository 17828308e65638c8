"""Memory layout of structures that a source defines, for tuples of values.

Sizes and alignments are those of the CUDA C++ Programming Guide ("Built-in Vector Types") and of
the Itanium C++ ABI for plain structures. Bit-fields, bases, virtual functions and packed structures
are not supported.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..ptx.types import TYPE_SIZES
from .element_types import spelled, vector_of
from .preprocessor import without_declaring_macros
from .syntax import declared, descendants, parse

if TYPE_CHECKING:
    from tree_sitter import Node

SCALARS = {
    "bool": "u8", "char": "s8", "signed char": "s8", "unsigned char": "u8",
    "short": "s16", "unsigned short": "u16", "int": "s32", "unsigned int": "u32",
    "long": "s64", "unsigned long": "u64", "long long": "s64", "unsigned long long": "u64",
    "float": "f32", "double": "f64", "__half": "f16", "__nv_bfloat16": "bf16",
}  # fmt: skip
"""The PTX type of each of C++'s own types."""

_KINDS = 64
_MAX_BYTES = 32_764
"""Bytes of a kernel's parameters (PTX ISA, "Kernel Function Parameters"): the largest structure."""
_ALIGNED = re.compile(r"\balignas\s*\(\s*(\d+)\s*\)")
_CONSTANT = r"#\s*define\s+{0}\s+(\d+)\s*$|\bconst(?:expr)?\s+[\w\s]*\b{0}\s*=\s*(\d+)\s*;"


@dataclass(frozen=True)
class TypeLayout:
    """A type as it stands in memory.

    Attributes:
        nbytes: Its size; ``align``: its alignment.
        scalar: Its PTX type, ``pointer``, or ``""`` for what has fields.
        fields: (name, first byte, layout) of each field, or of each element of an array.
    """

    nbytes: int
    align: int
    scalar: str = ""
    fields: tuple[tuple[str, int, TypeLayout], ...] = ()


POINTER = TypeLayout(8, 8, "pointer")


def layout_of(
    kind: str, sources: Mapping[str, str], known: dict[str, TypeLayout | None] | None = None
) -> TypeLayout | None:
    """Return the layout of a type named as C++ names it; ``None`` if it is not known for sure.

    ``known``: those that were asked for before, and those that are being worked out.
    """
    kind = spelled(kind, sources)
    if kind.endswith(("*", "&")):
        return POINTER
    if kind in SCALARS:
        scalar = SCALARS[kind]
        return TypeLayout(TYPE_SIZES[scalar], TYPE_SIZES[scalar], scalar)
    base, count = vector_of(kind)
    if base != kind:
        element = layout_of(base, sources)
        assert element
        whole = element.nbytes * count
        widest = 32 if kind.endswith("_32a") else 16
        align = element.align if count in (1, 3) else min(whole, widest)
        return TypeLayout(whole, align, "", _repeated(element, count))
    known = {} if known is None else known
    if kind not in known:
        known[kind] = None
        if len(known) <= _KINDS:
            known[kind] = _one(kind, sources, known)
    return known[kind]


def _one(
    kind: str, sources: Mapping[str, str], known: dict[str, TypeLayout | None]
) -> TypeLayout | None:
    """Return the layout on which all definitions of a structure agree."""
    qualified, _, given = kind.partition("<")
    name = qualified.split("::")[-1].strip()
    found = [
        layout
        for source in sources.values()
        for layout in _defined(source, name, given[:-1], sources, known)
    ]
    return found[0] if found and all(layout == found[0] for layout in found) else None


def repeated(element: TypeLayout, count: int) -> TypeLayout:
    """Return an array of so many elements."""
    return TypeLayout(element.nbytes * count, element.align, "", _repeated(element, count))


def _repeated(element: TypeLayout, count: int) -> tuple[tuple[str, int, TypeLayout], ...]:
    return tuple(("xyzw"[i] if count <= 4 else str(i), i * element.nbytes, element)
                 for i in range(count))  # fmt: skip


def _defined(
    source: str,
    name: str,
    given: str,
    sources: Mapping[str, str],
    known: dict[str, TypeLayout | None],
) -> Iterator[TypeLayout | None]:
    """Yield the layout of each structure of that name that a source defines."""
    if not re.search(rf"\b{re.escape(name)}\b", source):
        return
    text, nodes = _parsed(source, tuple(sources.values()))
    for node in nodes:
        if name not in _names(node, text):
            continue
        arguments = _arguments(node, text, given)
        yield None if arguments is None else _structure(node, text, arguments, sources, known)


@functools.lru_cache(maxsize=16)  # each launch of a program asks for the same
def _parsed(source: str, texts: tuple[str, ...]) -> tuple[bytes, tuple[Node, ...]]:
    """Return a source's structures, in its text as the grammar takes it; ``texts``: all sources."""
    # The grammar knows C++'s own word alone.
    plain = without_declaring_macros(source, texts)
    text = plain.replace("__align__", "alignas  ").encode("ascii", "replace")
    return text, tuple(_structures(parse(text).root_node))


def _structures(node: Node) -> Iterator[Node]:
    closed = ("function_definition", "compound_statement")
    kinds = ("struct_specifier", "class_specifier")
    return (
        n for n in descendants(node, closed) if n.type in kinds and n.child_by_field_name("body")
    )


def _names(node: Node, text: bytes) -> list[str]:
    """Return a structure's names: its own, or by ``typedef struct {...} Name``."""
    named = node.child_by_field_name("name")
    names = [_text(named, text).split("<")[0]] if named else []
    if node.parent is not None and node.parent.type == "type_definition":
        names += [_text(d, text) for d in node.parent.children_by_field_name("declarator")]
    return names


def _text(node: Node, text: bytes) -> str:
    return text[node.start_byte : node.end_byte].decode("ascii")


def _arguments(node: Node, text: bytes, given: str) -> dict[str, str] | None:
    """Return the template arguments by parameter; ``None`` if they are unclear."""
    above = node.parent
    if above is None or above.type != "template_declaration":
        return {} if not given else None
    listed = above.child_by_field_name("parameters")
    names = [_text(p, text).split()[-1] for p in listed.named_children] if listed else []
    values = [v.strip() for v in given.split(",")]
    return dict(zip(names, values, strict=True)) if len(names) == len(values) else None


def _structure(
    node: Node,
    text: bytes,
    arguments: Mapping[str, str],
    sources: Mapping[str, str],
    known: dict[str, TypeLayout | None],
) -> TypeLayout | None:
    body = node.child_by_field_name("body")
    assert body
    head = text[node.start_byte : body.start_byte].decode("ascii")
    aligned = [int(n) for n in _ALIGNED.findall(head)]
    if (
        node.has_error
        or "packed" in head
        or any(c.type == "base_class_clause" for c in node.children)
    ):
        return None
    fields: list[tuple[str, int, TypeLayout]] = []
    at, align = 0, max([1, *aligned])
    for field in body.named_children:
        if re.search(r"\bvirtual\b", _text(field, text)):
            return None
        if field.type != "field_declaration" or re.match(r"\s*static\b", _text(field, text)):
            continue
        made = list(_fields(field, text, arguments, sources, known))
        for name, layout in made:
            if layout is None:
                return None
            at += -at % layout.align
            fields.append((name, at, layout))
            at, align = at + layout.nbytes, max(align, layout.align)
    if at > _MAX_BYTES:
        return None
    return TypeLayout(max(1, at + -at % align), align, "", tuple(fields))


def _fields(
    field: Node,
    text: bytes,
    arguments: Mapping[str, str],
    sources: Mapping[str, str],
    known: dict[str, TypeLayout | None],
) -> Iterator[tuple[str, TypeLayout | None]]:
    """(name, layout) of what one declaration of a structure declares; none for functions."""
    typed = field.child_by_field_name("type")
    if typed is None or any(c.type == "bitfield_clause" for c in field.children):
        yield "", None
        return
    kind = re.sub(r"\w+", lambda m: arguments.get(m[0], m[0]), _text(typed, text))
    for declarator in field.children_by_field_name("declarator"):
        name, stars, counts = _declared(declarator, text)
        if not name:
            continue  # a function
        layout = layout_of(kind + "*" * stars, sources, known)
        for count in counts:
            number = _number(arguments.get(count, count), sources)
            if layout is None or number is None or layout.nbytes * number > _MAX_BYTES:
                layout = None
                break
            layout = TypeLayout(layout.nbytes * number, layout.align, "", _repeated(layout, number))
        if layout is not None and (wide := _ALIGNED.search(_text(field, text))):
            layout = replace(layout, align=max(layout.align, int(wide[1])))
        yield name, layout


def _declared(declarator: Node, text: bytes) -> tuple[str, int, list[str]]:
    """Return a field's name (``""`` for a function), stars, and sizes, the last one first."""
    name, around = declared(declarator)
    if name is None or any(d.type == "function_declarator" for d in around):
        return "", 0, []
    stars = sum(d.type == "pointer_declarator" for d in around)
    sizes = [d.child_by_field_name("size") for d in around if d.type == "array_declarator"]
    return _text(name, text), stars, [_text(size, text) if size else "" for size in sizes]


def _number(word: str, sources: Mapping[str, str]) -> int | None:
    """Return an array's size: a number, or the name of a constant that some source defines once."""
    if word.isdecimal():
        return int(word)
    pattern = re.compile(_CONSTANT.format(re.escape(word)), re.M)
    found = {m[1] or m[2] for source in sources.values() for m in pattern.finditer(source)}
    return int(found.pop()) if len(found) == 1 else None
