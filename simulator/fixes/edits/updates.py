"""Edits that make one atomic operation of an update: ``x += v;`` becomes ``atomicAdd(&x, v);``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kernels.source.source_edit import INSTEAD, Edit, line_of

from .statements import Point, Syntax, descendants, field_text, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

_FUNCTIONS = {"+": "atomicAdd", "-": "atomicSub", "&": "atomicAnd", "|": "atomicOr",
              "^": "atomicXor"}  # fmt: skip
"""What does each operator (CUDA C++ Programming Guide, "Atomic Functions")."""
_CALLS = {"max": "atomicMax", "min": "atomicMin"}
_EITHER = "+&|^"
"""Operators whose sides may change places."""


def update_edits(syntax: Syntax, points: Iterable[Point], wide: bool) -> Iterator[Edit]:
    """Yield each statement of some lines that updates something, with one atomic operation instead.

    ``wide``: it is an integer of 64 bits, signed perhaps, which most of them do not take.
    """
    for point in dict.fromkeys(points):
        content = syntax.files[point.file]
        for around in syntax.at(point):
            nodes = [around, *descendants(around, {"expression_statement"})]
            for node in nodes:
                if node.type != "expression_statement" or not _on(node, point.line):
                    continue
                found = list(_atomics(node.named_children[0] if node.named_children else None))
                for text in [*found, *map(_unsigned, found if wide else ())]:
                    piece = node.start_byte, node.end_byte, text.encode("latin-1")
                    line = line_of(content, node.start_byte)
                    yield Edit(point.file, (piece,), line, INSTEAD, text)
            for node in nodes[:1]:
                for used in descendants(node, {"update_expression"}):
                    if _on(used, point.line) and (text := _counted(used)):
                        piece = used.start_byte, used.end_byte, text.encode("latin-1")
                        line = line_of(content, used.start_byte)
                        yield Edit(point.file, (piece,), line, f"for {node_text(used)} on", text)


def _on(node: Node, line: int) -> bool:
    return bool(node.start_point[0] < line <= node.end_point[0] + 1)


def _atomics(update: Node | None) -> Iterator[str]:
    """Yield atomic calls equivalent to an update expression whose value is unused."""
    if update is None:
        return
    fields = {name: update.child_by_field_name(name)
              for name in ("left", "operator", "right", "argument")}  # fmt: skip
    target, operator, right, argument = fields.values()
    if update.type == "update_expression" and argument is not None and operator is not None:
        yield from _calls(address(argument), node_text(operator)[0], "1")
    elif update.type == "assignment_expression" and target and operator and right:
        if node_text(operator) == "=":
            yield from _spelled_out(target, right)
        else:
            yield from _calls(address(target), node_text(operator)[:-1], node_text(right))


def _counted(update: Node) -> str:
    """Return an atomic call with the value of a ``++`` or ``--``; empty if its value is unused."""
    place, parent = update.child_by_field_name("argument"), update.parent
    if place is None or parent is None or parent.type in ("expression_statement", "for_statement"):
        return ""
    step = "1" if "+" in field_text(update, "operator").decode("latin-1") else "-1"
    atomic = f"atomicAdd({address(place)}, {step})"
    before = update.start_byte == place.start_byte
    return atomic if before else f"({atomic} + {step})"


def _spelled_out(target: Node, right: Node) -> Iterator[str]:
    """Yield atomic calls equivalent to ``x = x + v`` or ``x = max(x, v)``."""
    parts = [right.child_by_field_name(name) for name in ("left", "operator", "right")]
    if right.type == "binary_expression" and all(parts):
        one, operator, other = (node_text(part) for part in parts if part)
        if one == node_text(target):
            yield from _calls(address(target), operator, other)
        elif other == node_text(target) and operator in _EITHER:
            yield from _calls(address(target), operator, one)
    called, given = (right.child_by_field_name(name) for name in ("function", "arguments"))
    if right.type == "call_expression" and called and given and node_text(called) in _CALLS:
        values = [node_text(value) for value in given.named_children]
        if len(values) == 2 and node_text(target) in values:
            values.remove(node_text(target))
            yield f"{_CALLS[node_text(called)]}({address(target)}, {values[0]});"


def _calls(address: str, operator: str, value: str) -> Iterator[str]:
    if operator in _FUNCTIONS:
        yield f"{_FUNCTIONS[operator]}({address}, {value});"
    if operator == "-":  # there is none of floating-point numbers
        yield f"{_FUNCTIONS['+']}({address}, -({value}));"


def _unsigned(call: str) -> str:
    """Return an atomic call on unsigned 64-bit numbers, whose sums have the same bits."""
    name, _, given = call.partition("(")
    return f"{name}((unsigned long long*){given}" if name == _FUNCTIONS["+"] else call


def address(place: Node) -> str:
    """Return the address of a value: ``p`` of ``*p``."""
    while place.type == "parenthesized_expression" and place.named_children:
        place = place.named_children[0]
    pointer = place.child_by_field_name("argument")
    if place.type == "pointer_expression" and pointer and node_text(place).startswith("*"):
        return node_text(pointer)
    return f"&{node_text(place)}"
