"""Candidate parities for a wait on the wrong phase of an mbarrier.

Phases of an mbarrier have the parities 0, 1, 0 ...; a loop over several mbarriers returns to each
after a number of iterations. The last argument of a wait is replaced by the parity of the enclosing
loop's iteration, or by the other parity (PTX ISA, ``mbarrier.try_wait.parity``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernels.source.source_edit import Edit, decoded, line_of

from .statements import Point, Syntax, descendants, field_text

if TYPE_CHECKING:
    from tree_sitter import Node

_STAGES = range(1, 5)
"""How many mbarriers a loop may go round."""


def parity_edits(syntax: Syntax, waits: Sequence[Sequence[Point]]) -> Iterator[Edit]:
    """Return edits of the parity of waits, each identified by its place and its call sites."""
    visited = set()
    for point in dict.fromkeys(point for points in waits for point in points):
        for statement in syntax.at(point):
            for node in _last_arguments(statement):
                variable = _round(node)
                for text in _parities(variable) if variable else ():
                    piece = node.start_byte, node.end_byte, text.encode()
                    if (point.file, piece) not in visited:
                        visited.add((point.file, piece))
                        content = syntax.files[point.file]
                        old = decoded(content[node.start_byte : node.end_byte])
                        line = line_of(content, node.start_byte)
                        yield Edit(point.file, (piece,), line, f"for {old} on", text)


def _parities(variable: str) -> Iterator[str]:
    for stages in _STAGES:
        text = f"{variable} / {stages} & 1" if stages > 1 else f"{variable} & 1"
        yield text
        yield f"({text}) ^ 1"


def _last_arguments(statement: Node) -> Iterator[Node]:
    """Yield the last arguments of calls in a statement."""
    for call in descendants(statement, {"call_expression"}):
        given = call.child_by_field_name("arguments")
        if given is not None and given.named_child_count > 1:
            yield given.named_children[-1]


def _round(node: Node) -> str:
    """Return the variable of the innermost ``for`` that declares one."""
    at: Node | None = node
    while at is not None:
        start = at.child_by_field_name("initializer") if at.type == "for_statement" else None
        if start is not None:
            for one in descendants(start, {"init_declarator"}):
                return field_text(one, "declarator").decode("latin-1")
        at = at.parent
    return ""
