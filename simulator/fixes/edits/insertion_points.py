"""Candidate barriers between two statements, likeliest first.

Candidates are only tried; the search reports those that compilation and runs confirm.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.source.source_edit import Edit, Piece, line_of
from kernels.source.source_text import (
    begins_line,
    column_of,
    ends_line,
    indent_at,
    line_end,
    newline_at,
    node_end,
)  # fmt: skip

from .divergence import may_diverge
from .macros import goes_on
from .statements import LOOPS, Point, StatementList, Syntax, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

Levels = list[tuple[StatementList, int]]


def barrier_edits(
    syntax: Syntax, earlier: Levels, later: Levels, text: str, is_split: bool | None = None,
    late: bool = False,
) -> Iterator[Edit]:  # fmt: skip
    """Yield places for a statement between two others, each edit once.

    ``is_split``: only places where threads of a block may have diverged, or only others. ``late``:
    the nearest to the later statement first, as for a wait.

    The order is: places outside of branches, then in the common statement list starting at the
    earlier statement, then end and start of an enclosing loop, then places further inside.
    """
    ranked: list[tuple[tuple[int, ...], StatementList, int]] = []
    for rank, body, gap in _places(earlier, later, late):
        if gap in body.gaps() and (is_split is None or is_split == may_diverge(body)):
            ranked.append(((body.choices, *rank, len(ranked)), body, gap))
    visited: set[tuple[Path, tuple[Piece, ...]]] = set()
    for _, body, gap in sorted(ranked, key=lambda item: item[0]):
        edit = inserted(syntax, body, gap, text)
        if edit is not None and (edit.file, edit.pieces) not in visited:
            visited.add((edit.file, edit.pieces))
            yield edit


def _places(
    earlier: Levels, later: Levels, late: bool
) -> Iterator[tuple[tuple[int, ...], StatementList, int]]:
    """Yield gaps between statements with their rank: kind of place and distance."""
    firsts, seconds = _by_body(earlier), _by_body(later)
    shared = 0
    for key, (body, ones) in firsts.items():
        if key not in seconds:
            continue
        twos, last = seconds[key][1], len(body.statements)
        shared += 1
        between = {g for a in ones for b in twos for g in range(a + 1, b + 1)}
        for gap in sorted(between):
            yield (0, shared, -gap if late else gap), body, gap
        # Round a loop, or called again, or seen by a schedule that ran the later one first:
        rest = [g for g in range(last + 1) if g not in between]
        turned = sorted(rest, key=lambda g: (g <= max(ones), -g if g <= min(twos) else g))
        for number, gap in enumerate(turned):
            yield (1 if body.loops else 3, shared, number), body, gap
    for levels, other, near in ((firsts, seconds, 1), (seconds, firsts, 0)):
        for number, (key, (body, places)) in enumerate(levels.items()):
            if key not in other:
                for gap in body.gaps():
                    yield (2, number, abs(gap - near - places[0])), body, gap


def _by_body(levels: Levels) -> dict[object, tuple[StatementList, list[int]]]:
    found: dict[object, tuple[StatementList, list[int]]] = {}
    for body, index in levels:
        found.setdefault((body.key, body.single), (body, []))[1].append(index)
    return found


def inserted(syntax: Syntax, body: StatementList, gap: int, text: str) -> Edit | None:
    """Return the insertion of a statement into a list, with braces if necessary."""
    content = syntax.files[body.file]
    if body.single:
        return _braced(content, body, gap, text)
    if gap:
        end = node_end(content, body.statements[gap - 1])
        line, stop = line_of(content, end), line_end(content, end)
        if body.macro and goes_on(content, end):
            code = _indent(content, body, gap) + text.encode() + b" \\"
            return Edit(
                body.file, ((stop, stop, newline_at(content, stop) + code),), line, "after", text
            )
        if body.macro or not ends_line(content, end):
            piece = (end, end, f" {text}".encode())
            return Edit(body.file, (piece,), line, "after", text, column_of(content, end))
        piece = (
            stop,
            stop,
            newline_at(content, stop) + _indent(content, body, gap) + text.encode(),
        )
        return Edit(body.file, (piece,), line, "after", text)
    start = body.statements[0].start_byte
    line = line_of(content, start)
    if body.macro or not begins_line(content, start):
        piece = (start, start, f"{text} ".encode())
        return Edit(body.file, (piece,), line, "before", text, column_of(content, start))
    at = start - len(indent_at(content, start))
    code = _indent(content, body, gap) + text.encode()
    piece = (at, at, code + newline_at(content, start))
    return Edit(body.file, (piece,), line, "before", text)


def _indent(content: bytes, body: StatementList, gap: int) -> bytes:
    """Return the indentation of a list, from the statement nearest to a gap that begins a line.

    Directives are in column 0, and a first statement may follow its brace.
    """
    near = body.statements[max(gap - 1, 0)]
    for node in (near, *body.statements[gap:], *reversed(body.statements[:gap])):
        if not node.type.startswith("preproc") and begins_line(content, node.start_byte):
            return indent_at(content, node.start_byte)
    return indent_at(content, body.statements[0].start_byte) + b"    "


def _braced(content: bytes, body: StatementList, gap: int, text: str) -> Edit | None:
    """Return an edit that puts a single statement of a branch and another into braces."""
    statement = body.statements[0]
    head = statement.prev_sibling
    while head is not None and head.type == "comment":
        head = head.prev_sibling
    if head is None or statement.parent is None:
        return None
    start, end, opens = statement.start_byte, node_end(content, statement), node_end(content, head)
    edge = end if gap else start
    where, line = ("after", "before")[not gap], line_of(content, edge)
    if not (begins_line(content, start) and ends_line(content, end)):
        first, second = (b"{ ", f" {text} }}") if gap else (f"{{ {text} ".encode(), " }")
        pieces = (start, start, first), (end, end, second.encode())
        return Edit(body.file, pieces, line, where, text, " in braces")
    newline, inner = newline_at(content, end), indent_at(content, start)
    outer = indent_at(content, statement.parent.start_byte)
    stop, code = line_end(content, end), text.encode()
    opening = (opens, opens, b" {")
    closing = newline + outer + b"}"
    if gap:
        pieces = opening, (stop, stop, newline + inner + code + closing)
    else:
        at = start - len(inner)
        pieces = opening, (at, at, inner + code + newline), (stop, stop, closing)  # type: ignore[assignment]
    return Edit(body.file, pieces, line, where, text, " in braces")


def reads_and_writes(
    syntax: Syntax, earlier: Levels, later: Levels, lines: tuple[Point, Point]
) -> tuple[str, int] | None:
    """Return kind and line of the innermost statement that contains both accesses; else ``None``.

    Loops and calls do not count, as a barrier fits inside them. Nor does an ``if`` with both
    accesses in loops, such as a producer and a consumer: their iterations alternate.
    """
    kinds = {"if_statement": "if", "expression_statement": "statement"}
    places = {(body.key, index) for body, index in later}
    for body, index in earlier:
        if (body.key, index) in places and index < len(body.statements):
            node = body.statements[index]
            first, last = node.start_point.row + 1, node.end_point.row + 1
            inside = all(p.file == body.file and first <= p.line <= last for p in lines)
            if node.type not in kinds or not inside or _turns(node, lines):
                return None
            return kinds[node.type], line_of(syntax.files[body.file], node.start_byte)
    return None


def _turns(statement: Node, lines: tuple[Point, Point]) -> bool:
    """Whether separate loops in a statement contain two lines."""
    rows = [(at.start_point.row, at.end_point.row) for at in descendants(statement, LOOPS)]
    return all(any(low < point.line <= high + 1 for low, high in rows) for point in lines)
