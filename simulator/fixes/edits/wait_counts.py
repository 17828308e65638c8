"""Edits that might fix a wait that leaves too much under way: a smaller number, or no ``.read``.

A wait for groups names how many of them may go on (PTX ISA, ``cp.async.wait_group``); one with
``.read`` waits for what copies read alone. What stands in the source between the two accesses is
edited, instead of a second wait behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.source.source_edit import Edit, decoded, line_of

from .statements import LOOPS, Point, Syntax, descendants, field_text

if TYPE_CHECKING:
    from tree_sitter import Node

_FEWER = 4
"""So many smaller numbers are tried for a wait."""
_WAIT = re.compile(rb"wait", re.IGNORECASE)
_PTX = re.compile(rb"wait_group(?:\.read)?(?:\.sync\.aligned)?\s+(\d+)")
_READ = re.compile(rb"(?<=wait_group)[._]read(?![a-z])")


def count_edits(
    syntax: Syntax, waits: Sequence[tuple[int, Sequence[Point]]], later: Sequence[Point], case: str
) -> Iterator[Edit]:
    """Yield other waits in the place of those that are there.

    Args:
        syntax: The source.
        waits: How many groups each leaves, and where it stands, with the calls that led to it.
        later: Where what should come behind stands: a wait of another loop is left as it is.
        case: The race's.
    """
    around = [statement for point in later for statement in syntax.at(point)]
    visited = set()
    for pending, points in waits:
        for file, call in _calls(syntax, points, around):
            old, line = decoded(call.text or b""), line_of(syntax.files[file], call.start_byte)
            for text in _others(call, pending, case):
                piece = call.start_byte, call.end_byte, text
                if (file, piece) not in visited:
                    visited.add((file, piece))
                    yield Edit(file, (piece,), line, f"for {old} on", decoded(text))


def _calls(
    syntax: Syntax, points: Sequence[Point], around: Sequence[Node]
) -> Iterator[tuple[Path, Node]]:
    """Yield calls and ``asm`` of a wait's statements, if one of some others is in its loop."""
    for point in points:
        for statement in syntax.at(point):
            if any(_same_round(statement, other) for other in around):
                for call in descendants(statement, {"call_expression", "gnu_asm_expression"}):
                    yield point.file, call


def _same_round(wait: Node, access: Node) -> bool:
    """Whether the loop around a wait, if there is one, is around an access, too."""
    at: Node | None = wait
    while at is not None and at.type not in LOOPS:
        at = at.parent
    return at is None or at.start_byte <= access.start_byte < at.end_byte


def _others(call: Node, pending: int, case: str) -> Iterator[bytes]:
    """Waits that leave less than this one."""
    text = call.text or b""
    begins = call.start_byte
    spans = [(node.start_byte - begins, node.end_byte - begins) for node in _numbers(call)]
    spans += [found.span(1) for found in _PTX.finditer(text)]
    for fewer in range(1, min(pending, _FEWER) + 1):
        for first, last in spans:
            old = text[first:last]
            new = b"%d" % (pending - fewer) if old.isdigit() else b"%b - %d" % (old, fewer)
            if not old.isdigit() or int(old) == pending:
                yield text[:first] + new + text[last:]
    if case == "sent" and _READ.search(text):
        yield _READ.sub(b"", text)


def _numbers(call: Node) -> Iterator[Node]:
    """Yield the places where a wait's call or ``asm`` may have its number of groups."""
    if call.type == "gnu_asm_expression":
        for operand in descendants(call, {"gnu_asm_input_operand"}):
            value = operand.child_by_field_name("value")
            if value is not None and value.type != "identifier":  # of the function around it
                yield value
    elif _WAIT.search(field_text(call, "function")):
        lists = descendants(call, {"template_argument_list"})
        given = [one for several in lists for one in several.named_children]
        arguments = call.child_by_field_name("arguments")
        if not given and arguments is not None and arguments.named_child_count == 1:
            given = arguments.named_children
        yield from given
