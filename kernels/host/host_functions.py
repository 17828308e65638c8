"""Declarations of a program's host code besides variables: short functions, structure fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..source.syntax import declared, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

_CONFIGURATION = re.compile(rb"<<<([^;]{0,2000}?)>>>")
_SPACED = re.compile(rb"(<<\s*<)([^;]{0,500}?)(>>\s*>)(?=\s*\()")
_BRACED = re.compile(rb"(?:^|,)\s*\{([^{}()]*)\}(?=\s*(?:,|$))")
LAUNCHING = re.compile(
    r"(cudaLaunch(?:Cooperative)?Kernel)(?:Ex|ExC)?|cuLaunch(?:Cooperative)?Kernel(?:Ex)?"
)
"""Functions that launch kernels; the first group: whole, with the arguments in an array."""


@dataclass(frozen=True)
class HostFunction:
    """A function that returns an expression of its parameters.

    Attributes:
        params: (type, name) of each; ``kind``: the type that it returns.
    """

    kind: str
    params: tuple[tuple[str, str], ...]
    result: Node


@dataclass
class Declared:
    """Declarations by name; ``None`` for ambiguous names.

    Attributes:
        fields: Field types of each structure by name.
        braced: Positions of brace lists that were replaced by brackets.
    """

    functions: dict[str, HostFunction | None] = field(default_factory=dict)
    fields: dict[str, dict[str, str] | None] = field(default_factory=dict)
    braced: frozenset[int] = frozenset()


def without_spaces(text: bytes) -> bytes:
    """Return a text whose launches have ``<<<`` and ``>>>`` as one word each. Lines stay."""

    def joined(m: re.Match[bytes]) -> bytes:
        opened, closed = (re.sub(rb"\S", b"", m[i]) for i in (1, 3))
        spaced = opened or (closed and b">>>" not in m[2])
        return b"<<<" + opened + m[2] + closed + b">>>" if spaced else m[0]

    return _SPACED.sub(joined, text)


def without_braces(text: bytes) -> tuple[bytes, frozenset[int]]:
    """Return a text whose launches have brackets for braces, ``<<<(3, 2), (32, 32)>>>``, and where.

    The grammar does not take braces there. Nothing moves.
    """
    made, places = bytearray(text), set()
    for launch in _CONFIGURATION.finditer(text):
        inside = launch[1]
        for found in _BRACED.finditer(inside):
            begin, end = (launch.start(1) + at for at in (found.start(1) - 1, found.end(1)))
            made[begin : begin + 1], made[end : end + 1] = b"(", b")"
            places.add(begin)
    return bytes(made), frozenset(places)


def declarations(root: Node, braced: frozenset[int]) -> Declared:
    """Return the functions and structures of a file."""
    found = Declared(braced=braced)
    for node in descendants(root, ("compound_statement",)):
        if node.type == "function_definition":
            name, function = _function(node)
            found.functions[name] = None if name in found.functions else function
        elif node.type == "struct_specifier":
            named, body = (node.child_by_field_name(n) for n in ("name", "body"))
            if named and body:
                name = _text(named)
                found.fields[name] = None if name in found.fields else _fields(body)
    return found


def _function(node: Node) -> tuple[str, HostFunction | None]:
    declarator, kind = (node.child_by_field_name(n) for n in ("declarator", "type"))
    named, _ = declared(declarator)
    listed = declarator.child_by_field_name("parameters") if declarator else None
    body = node.child_by_field_name("body")
    statements = [n for n in body.named_children if n.type != "comment"] if body else []
    name = _text(named) if named else ""
    if listed is None or kind is None or [n.type for n in statements] != ["return_statement"]:
        return name, None
    params = []
    for param in listed.named_children:
        typed = param.child_by_field_name("type")
        inner, around = declared(param.child_by_field_name("declarator"))
        if param.type != "parameter_declaration" or not inner or not typed or around:
            return name, None
        params.append((_text(typed), _text(inner)))
    result = statements[0].named_children
    return name, HostFunction(_text(kind), tuple(params), result[0]) if result else None


def _fields(body: Node) -> dict[str, str]:
    found = {}
    for node in body.named_children:
        typed = node.child_by_field_name("type")
        if node.type != "field_declaration" or typed is None:
            continue
        for declarator in node.children_by_field_name("declarator"):
            named, around = declared(declarator)
            if named and all(one.type == "pointer_declarator" for one in around):
                found[_text(named)] = _text(typed) + "*" * len(around)
    return found


def _text(node: Node) -> str:
    return (node.text or b"").decode("ascii")
