"""The declarations and definitions of a CUDA source that can be taken out of it one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .preprocessor import Macros

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS = {"template_instantiation": "instance", "expression_statement": "other"}
_TYPES = ("class_specifier", "struct_specifier", "union_specifier", "enum_specifier")
_NAMES = (
    "type_definition", "alias_declaration", "namespace_alias_definition", "concept_definition",
    "static_assert_declaration",
)  # fmt: skip
_IDENTIFIERS = ("identifier", "type_identifier", "field_identifier", "namespace_identifier")
_CONSTEXPR = frozenset(["constexpr", "consteval"])
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(eq=False)
class RemovableDeclaration:
    """A declaration or definition.

    Attributes:
        kind: ``function``, ``prototype``, ``instance``, ``variable``, ``type``, ``name``, ``using``
            (of what is declared elsewhere) or else.
        start, body, end: Offsets in the text; ``body`` is ``end`` where there are no braces.
        names: What it declares; ``words``: every identifier in it.
        device: Whether it is marked for the device.
        constant: Of a variable: whether device code may use it all the same.
        method: Whether it stands in a class.
        constexpr: Whether it is marked by that word alone: for code that mentions it.
    """

    kind: str
    start: int
    body: int
    end: int
    names: frozenset[str]
    words: frozenset[str]
    device: bool
    constant: bool = False
    method: bool = False
    constexpr: bool = False

    @property
    def host(self) -> bool:
        """Whether it is the host's without any doubt."""
        defined = self.kind == "function" and self.body < self.end
        variable = self.kind == "variable" and not self.constant
        return (defined or variable) and not (self.device or self.method)


def pieces_of(node: Node, text: str, bare: str, macros: Macros) -> Iterator[RemovableDeclaration]:
    """Yield the pieces below a node; ``bare`` is the text in which words are looked for."""
    before = node.start_byte if node.parent else 0  # a tree begins at its first word
    for child in node.children:
        if child.type in ("namespace_definition", "linkage_specification"):
            body = child.child_by_field_name("body")
            if body is not None and body.type == "declaration_list":
                yield from pieces_of(body, text, bare, macros)
            elif body is not None:
                yield from _piece(body, child.start_byte, before, child.end_byte, bare, macros)
        elif child.type in ("ERROR", "declaration_list"):
            yield from pieces_of(child, text, bare, macros)
        else:
            yield from _piece(child, child.start_byte, before, child.end_byte, bare, macros)
        before = child.end_byte


def _piece(
    node: Node, start: int, before: int, end: int, bare: str, macros: Macros, method: bool = False
) -> Iterator[RemovableDeclaration]:
    """Yield the piece that a node is, and the methods in it; nothing for other nodes."""
    inner = node
    while inner.type in ("template_declaration", "friend_declaration") and inner.named_children:
        inner = inner.named_children[-1]
    kind = _kind(inner, bare)
    static = kind == "variable" and any(c.type == "storage_class_specifier" for c in inner.children)
    if not kind or (method and not (static or kind in ("function", "prototype"))):
        return  # without a member a class would be another one
    block = inner.child_by_field_name("body") if kind == "function" else None
    lists = [c for c in inner.children if c.type == "field_initializer_list"]
    body = lists[0].start_byte if lists else block.start_byte if block else end
    head = bare[before:body] if kind == "function" else bare[before:end]
    words = frozenset(_WORD.findall(bare[start:end]))
    marks = macros.marks.intersection(_WORD.findall(head))
    constant = bool(re.search(r"\b(const|extern|template)\b", head))
    rest = bool(marks), constant, method, bool(marks) and marks <= _CONSTEXPR
    if kind == "using":
        yield from (
            RemovableDeclaration(kind, *span, _using(bare[span[0] : span[2]]), words, *rest)
            for span in _listed(bare, start, end)
        )
    yield RemovableDeclaration(
        kind, start, body, end, _names(inner, kind, bare[start:end]), words, *rest
    )
    for holder in _descend(inner, "field_declaration_list"):
        last = holder.start_byte
        for child in holder.named_children:
            yield from _piece(child, child.start_byte, last, child.end_byte, bare, macros, True)
            last = child.end_byte


def _kind(node: Node, bare: str) -> str:
    if node.type == "function_definition":
        word = bare[node.start_byte : node.end_byte].split(None, 1)[:1]
        return "type" if word and word[0] in ("class", "struct", "union", "enum") else "function"
    if node.type in ("declaration", "field_declaration"):
        if next(_descend(node, "field_declaration_list"), None) is not None:
            return "type"
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        return "prototype" if declarator is not None else "variable"
    if node.type in _TYPES:
        return "type"
    if node.type in _NAMES:
        return "name"
    if node.type == "using_declaration":
        plain = re.match(r"using\s+(namespace|enum)\b", bare[node.start_byte : node.end_byte])
        return "name" if plain else "using"
    return _KINDS.get(node.type, "")


def _descend(node: Node, kind: str) -> Iterator[Node]:
    """Yield nodes of a kind below one, not those in others or in function bodies."""
    for child in node.children:
        if child.type == kind:
            yield child
        elif child.type not in ("compound_statement", "field_declaration_list"):
            yield from _descend(child, kind)


def _using(text: str) -> frozenset[str]:
    """Return the names that using-declarations give to what is declared elsewhere."""
    return frozenset(re.findall(r"(\w+)\s*(?=[,;]|$)", text))


def _listed(bare: str, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return the places of each part of ``using a::b, c::d;`` with a comma; empty for one part.

    A place has three positions.
    """
    commas = [start + m.start() for m in re.finditer(",", bare[start:end])]
    if not commas:
        return []
    first = start + len("using")
    begins = [first, *(at + 1 for at in commas[:-1]), commas[-1]]
    stops = [*(at + 1 for at in commas), bare.rindex(";", start, end)]
    return [(low, high, high) for low, high in zip(begins, stops, strict=True)]


def _names(node: Node, kind: str, text: str) -> frozenset[str]:
    """Return the names that a node declares, possibly too many."""
    if kind == "using":
        return _using(text)
    found: set[str] = set()
    named = node.child_by_field_name("name")
    if kind == "name":
        waiting = [*node.children_by_field_name("declarator")] or [named or node]
    else:
        waiting = [*node.children_by_field_name("declarator")]
        for holder in (node, *(node.children_by_field_name("type"))):
            waiting += holder.children_by_field_name("name")
        waiting += list(_descend(node, "enumerator_list"))
    while waiting:
        at = waiting.pop()
        if at.type in _IDENTIFIERS and at.text:
            found.add(at.text.decode())
        if at.type not in ("parameter_list", "compound_statement", "template_argument_list"):
            value = at.child_by_field_name("value")
            waiting += [child for child in at.children if child != value]
    return frozenset(found)
