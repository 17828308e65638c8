"""Edits that might cure a race, likeliest first: a barrier between two statements.

What is proposed here is only tried; ``cures.py`` keeps what a compiler and runs confirm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .source_edit import Edit, Piece, line_of
from .statements import Body, Syntax

if TYPE_CHECKING:
    from tree_sitter import Node

Levels = list[tuple[Body, int]]


def barrier_edits(syntax: Syntax, earlier: Levels, later: Levels, text: str) -> Iterator[Edit]:
    """Places for a statement between two others; each edit comes once.

    In front come places that no branch encloses, then those between the two in the list of
    statements that holds both, the nearest to the earlier one first; then the end and the
    start of a loop around them, then places further in.
    """
    ranked: list[tuple[tuple[int, ...], Body, int]] = []
    for rank, body, gap in _places(earlier, later):
        if gap in body.gaps():
            ranked.append(((body.choices, *rank, len(ranked)), body, gap))
    seen: set[tuple[Path, tuple[Piece, ...]]] = set()
    for _, body, gap in sorted(ranked, key=lambda item: item[0]):
        edit = inserted(syntax, body, gap, text)
        if edit is not None and (edit.file, edit.pieces) not in seen:
            seen.add((edit.file, edit.pieces))
            yield edit


def _places(earlier: Levels, later: Levels) -> Iterator[tuple[tuple[int, ...], Body, int]]:
    """Gaps between statements with their rank: what kind of place, how far away."""
    firsts, seconds = _by_body(earlier), _by_body(later)
    shared = 0
    for key, (body, ones) in firsts.items():
        if key not in seconds:
            continue
        twos, last = seconds[key][1], len(body.statements)
        shared += 1
        between = {g for a in ones for b in twos for g in range(a + 1, b + 1)}
        for gap in sorted(between):
            yield (0, shared, gap), body, gap
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


def _by_body(levels: Levels) -> dict[object, tuple[Body, list[int]]]:
    found: dict[object, tuple[Body, list[int]]] = {}
    for body, index in levels:
        found.setdefault((body.key, body.single), (body, []))[1].append(index)
    return found


def inserted(syntax: Syntax, body: Body, gap: int, text: str) -> Edit | None:
    """A statement put between two of a list, in braces where there were none."""
    content = syntax.files[body.file]
    if body.single:
        return _braced(content, body, gap, text)
    if gap:
        end = _end(content, body.statements[gap - 1])
        line, stop = line_of(content, end), _line_end(content, end)
        if not _ends_line(content, end):
            piece = (end, end, f" {text}".encode())
            return Edit(body.file, (piece,), line, "after", text, _column(content, end))
        indent = _indent(content, body.statements[gap - 1].start_byte)
        piece = (stop, stop, _newline(content, stop) + indent + text.encode())
        return Edit(body.file, (piece,), line, "after", text)
    start = body.statements[0].start_byte
    line = line_of(content, start)
    if not _begins_line(content, start):
        piece = (start, start, f"{text} ".encode())
        return Edit(body.file, (piece,), line, "before", text, _column(content, start))
    indent = _indent(content, start)
    at = start - len(indent)
    piece = (at, at, indent + text.encode() + _newline(content, start))
    return Edit(body.file, (piece,), line, "before", text)


def _braced(content: bytes, body: Body, gap: int, text: str) -> Edit | None:
    """The one statement of a loop or branch together with another, in braces."""
    statement = body.statements[0]
    head = statement.prev_sibling
    while head is not None and head.type == "comment":
        head = head.prev_sibling
    if head is None or statement.parent is None:
        return None
    start, end, opens = statement.start_byte, _end(content, statement), _end(content, head)
    edge = end if gap else start
    where, line = ("after", "before")[not gap], line_of(content, edge)
    if not (_begins_line(content, start) and _ends_line(content, end)):
        first, second = (b"{ ", f" {text} }}") if gap else (f"{{ {text} ".encode(), " }")
        pieces = (start, start, first), (end, end, second.encode())
        return Edit(body.file, pieces, line, where, text, " in braces")
    newline, inner = _newline(content, end), _indent(content, start)
    outer = _indent(content, statement.parent.start_byte)
    stop, code = _line_end(content, end), text.encode()
    opening = (opens, opens, b" {")
    closing = newline + outer + b"}"
    if gap:
        pieces = opening, (stop, stop, newline + inner + code + closing)
    else:
        at = start - len(inner)
        pieces = opening, (at, at, inner + code + newline), (stop, stop, closing)  # type: ignore[assignment]
    return Edit(body.file, pieces, line, where, text, " in braces")


def split_edits(syntax: Syntax, levels: Levels, barrier: str) -> Iterator[Edit]:
    """Edits of a statement that both reads and writes: read, barrier, write."""
    innermost = levels[0][0].key if levels else None
    for place in levels:
        if place[0].key == innermost and place[1] < len(place[0].statements):
            yield from _splits(syntax, [place, *(o for o in levels if o[0].key != innermost)],
                               barrier)  # fmt: skip


def _splits(syntax: Syntax, levels: Levels, barrier: str) -> Iterator[Edit]:
    body, index = levels[0]
    content = syntax.files[body.file]
    value, inside = (_unused(content, name) for name in ("value", "inside"))
    statement = body.statements[index]
    parts = _assignment(statement)
    if parts:
        left, operator, right = parts
        code = [f"auto {value} = {right};", barrier, f"{left} {operator} {value};"]
        yield _replaced(content, body, statement, code, barrier)
        body, index = next(((b, i) for b, i in levels[1:] if b.choices < body.choices), levels[0])
        statement = body.statements[min(index, len(body.statements) - 1)]
    condition = _condition(statement)
    if condition is None or body.single:
        return
    clause, then = condition
    asked = _text(clause)[1:-1].strip()
    if parts := _assignment(then):
        left, operator, right = parts
        code = [
            f"const bool {inside} = {asked};",
            f"auto {value} = {inside} ? {right} : decltype(+{right})();",
            barrier,
            f"if ({inside}) {left} {operator} {value};",
        ]
        yield _replaced(content, body, statement, code, barrier)
    start, (first, end) = statement.start_byte, (clause.start_byte + 1, clause.end_byte - 1)
    between = _newline(content, start) + _indent(content, start)
    code = [f"const bool {inside} = {asked};", barrier, ""]
    ahead = between.join(line.encode("latin-1") for line in code)
    pieces = (start, start, ahead), (first, end, inside.encode())
    yield Edit(body.file, pieces, line_of(content, start), "in place of", barrier)


def reads_and_writes(syntax: Syntax, earlier: Levels, later: Levels) -> tuple[str, int] | None:
    """The statement that two accesses both stand in, if there is one: its kind, and its line.

    A loop is none, nor is a function: there is room for a barrier in them.
    """
    kinds = {"if_statement": "if", "expression_statement": "statement"}
    places = {(body.key, index) for body, index in later}
    for body, index in earlier:
        if (body.key, index) in places and index < len(body.statements):
            node = body.statements[index]
            line = line_of(syntax.files[body.file], node.start_byte)
            return (kinds[node.type], line) if node.type in kinds else None
    return None


def _replaced(content: bytes, body: Body, node: Node, code: list[str], barrier: str) -> Edit:
    start, end = node.start_byte, _end(content, node)
    alone = _begins_line(content, start) and _ends_line(content, end) and not body.single
    between = _newline(content, start) + _indent(content, start) if alone else b" "
    text = between.join(line.encode("latin-1") for line in code)
    if body.single:
        text = b"{ " + text + b" }"
    piece = (start, end, text)
    return Edit(body.file, (piece,), line_of(content, start), "in place of", barrier)


def _assignment(node: Node | None) -> tuple[str, str, str] | None:
    """Left side, operator and right side of a statement that assigns."""
    if node is not None and node.type == "compound_statement" and node.named_child_count == 1:
        node = node.named_children[0]
    if node is None or node.type != "expression_statement" or not node.named_children:
        return None
    inner = node.named_children[0]
    if inner.type != "assignment_expression":
        return None
    parts = [inner.child_by_field_name(name) for name in ("left", "operator", "right")]
    if any(part is None for part in parts):
        return None
    left, operator, right = (_text(part) for part in parts if part is not None)
    return left, operator, right


def _condition(node: Node) -> tuple[Node, Node] | None:
    """The condition, without effects of its own, and the body of an ``if`` without ``else``."""
    if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
        return None
    clause, then = (node.child_by_field_name(name) for name in ("condition", "consequence"))
    if clause is None or then is None or re.search(r"[^=!<>]=[^=]|\+\+|--|;", _text(clause)):
        return None
    return clause, then


def _text(node: Node) -> str:
    return (node.text or b"").decode("latin-1")


def _unused(content: bytes, name: str) -> str:
    """A name like this one that the file does not have."""
    names, number = set(re.findall(rb"[A-Za-z_]\w*", content)), 1
    while (name if number == 1 else f"{name}{number}").encode() in names:
        number += 1
    return name if number == 1 else f"{name}{number}"


def _end(content: bytes, node: Node) -> int:
    """Where a node ends, without the line end that directives have in them."""
    return node.start_byte + len(content[node.start_byte : node.end_byte].rstrip())


def _line_end(content: bytes, offset: int) -> int:
    found = re.compile(rb"[\r\n]").search(content, offset)
    return found.start() if found else len(content)


def _ends_line(content: bytes, offset: int) -> bool:
    """Whether only a comment follows on the line."""
    rest = content[offset : _line_end(content, offset)]
    return re.fullmatch(rb"\s*(/\*([^*]|\*(?!/))*\*/\s*)*(//.*(?<!\\))?", rest) is not None


def _begins_line(content: bytes, offset: int) -> bool:
    return (content[:offset] + b"x").splitlines()[-1].strip() == b"x"


def _indent(content: bytes, offset: int) -> bytes:
    """The white space that the line of a byte begins with."""
    line = (content[:offset] + b"x").splitlines()[-1]
    return line[: len(line) - len(line.lstrip())]


def _newline(content: bytes, offset: int) -> bytes:
    """The line end in use here: that of this line, or of the line before it."""
    found = re.compile(rb"\r\n|\n|\r").search(content, offset)
    if found:
        return found[0]
    ends = re.findall(rb"\r\n|\n|\r", content)
    return ends[-1] if ends else b"\n"


def _column(content: bytes, offset: int) -> str:
    return f", column {len((content[:offset] + b'x').splitlines()[-1])}"
