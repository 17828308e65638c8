"""Candidate edits that split a statement for a barrier inside of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernels.source.source_edit import Edit, line_of
from kernels.source.source_text import (
    begins_line,
    ends_line,
    indent_at,
    line_end,
    newline_at,
    node_end,
)

from .divergence import may_diverge
from .insertion_points import Levels
from .statements import StatementList, Syntax, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

BETWEEN = "split by"
"""What ``Edit.where`` says of a statement that is split."""


def split_edits(
    syntax: Syntax, earlier: Levels, later: Levels, barrier: str, is_split: bool
) -> Iterator[Edit]:
    """Yield edits that place a barrier between two accesses of one statement or ``if``.

    A divergent ``if`` is closed before the barrier and reopened behind it. Values read in a
    condition or on the right of an assignment are read into a variable. Comma expressions become
    statements. ``is_split``: only places where threads of a block may have diverged, or only
    others.
    """
    visited = set()
    places = {(body.key, index) for body, index in later}
    for body, index in earlier:
        if (body.key, index) not in places or index >= len(body.statements):
            continue
        if body.single and not _commas(body.statements[index]):
            continue
        if may_diverge(body) != is_split:
            continue
        for edit in _splits(syntax, body, body.statements[index], (earlier, later), barrier):
            if (edit.file, edit.pieces) not in visited:
                visited.add((edit.file, edit.pieces))
                yield edit


def split_assignment(
    syntax: Syntax, body: StatementList, index: int, number: int, barrier: str, behind: bool
) -> Edit | None:
    """Return an assignment, or an ``if`` around one, with a barrier inside.

    ``number``: of simultaneous splits, from 1. ``behind``: with another barrier behind it.
    """
    statement = body.statements[index]
    value, inside = (syntax.unused(body.file, name, number) for name in ("value", "inside"))
    if parts := _assignment(statement):
        code = _halves(parts, value, barrier)
    elif (condition := _condition(statement)) and (parts := _assignment(condition[1])):
        code = _guarded(parts, _asked(condition[0]), (value, inside), barrier)
    else:
        return None
    code += [barrier] * behind
    return _replaced(syntax.files[body.file], body, statement, code, barrier)


def _halves(parts: tuple[str, str, str], value: str, barrier: str) -> list[str]:
    target, operator, right = parts
    return [f"auto {value} = {right};", barrier, f"{target} {operator} {value};"]


def _guarded(
    parts: tuple[str, str, str], asked: str, names: tuple[str, str], barrier: str
) -> list[str]:
    (target, operator, right), (value, inside) = parts, names
    return [
        f"const bool {inside} = {asked};",
        f"auto {value} = {inside} ? {right} : decltype(+{right})();",
        barrier,
        f"if ({inside}) {target} {operator} {value};",
    ]


def _splits(
    syntax: Syntax,
    body: StatementList,
    statement: Node,
    levels: tuple[Levels, Levels],
    barrier: str,
) -> Iterator[Edit]:
    content = syntax.files[body.file]
    value, inside = (syntax.unused(body.file, name) for name in ("value", "inside"))
    if parts := _assignment(statement):
        yield _replaced(content, body, statement, _halves(parts, value, barrier), barrier)
    if commas := _commas(statement):
        code = [line for part in commas for line in (f"{part};", barrier)]
        yield _replaced(content, body, statement, code[:-1], barrier)
        yield _replaced(content, body, statement, code, barrier)  # it is a loop's
    condition = _condition(statement)
    if condition is None:
        return
    clause, then = condition
    asked = _asked(clause)
    start = statement.start_byte
    space = newline_at(content, start) + indent_at(content, start)
    ahead = f"const bool {inside} = {asked};".encode("latin-1")
    again = (clause.start_byte + 1, clause.end_byte - 1, inside.encode())
    line = line_of(content, start)
    code_ahead = space.join([ahead, barrier.encode(), b""])
    yield Edit(body.file, ((start, start, code_ahead), again), line, BETWEEN, barrier)
    nested = _condition(then)
    if nested is not None:  # one if is all there is in another
        last, _ = nested
        both = f"const bool {inside} = {_operand(asked)} && {_operand(_asked(last))};"
        code_ahead = space.join([both.encode("latin-1"), barrier.encode(), b""])
        again = (clause.start_byte + 1, last.end_byte - 1, inside.encode())
        yield Edit(body.file, ((start, start, code_ahead), again), line, BETWEEN, barrier)
        return
    for inner, first in levels[0]:  # both in one branch, in different statements
        seconds = [index for other, index in levels[1] if other.key == inner.key]
        if inner.single or inner.file != body.file or inner.key[1] < then.start_byte:
            continue
        if inner.key[2] > then.end_byte or inner.choices != body.choices + 1:
            continue
        for gap in sorted({g for second in seconds for g in range(first + 1, second + 1)}):
            if gap not in inner.gaps():
                continue
            end = node_end(content, inner.statements[gap - 1])
            closing = [b"}", barrier.encode(), f"if ({inside}) {{".encode()]
            if ends_line(content, end):
                end = line_end(content, end)
                between = space + space.join(closing)
            else:
                between = b" " + b" ".join(closing)
            pieces = (start, start, ahead + space), again, (end, end, between)
            yield Edit(body.file, pieces, line, BETWEEN, barrier)
    if parts := _assignment(then):
        code = _guarded(parts, asked, (value, inside), barrier)
        yield _replaced(content, body, statement, code, barrier)


def _replaced(
    content: bytes, body: StatementList, node: Node, code: list[str], barrier: str
) -> Edit:
    start, end = node.start_byte, node_end(content, node)
    alone = begins_line(content, start) and ends_line(content, end) and not body.single
    between = newline_at(content, start) + indent_at(content, start) if alone else b" "
    text = between.join(line.encode("latin-1") for line in code)
    if body.single:
        text = b"{ " + text + b" }"
    piece = (start, end, text)
    return Edit(body.file, (piece,), line_of(content, start), BETWEEN, barrier)


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
    target, operator, right = (node_text(part) for part in parts if part is not None)
    return target, operator, right


def _commas(node: Node) -> list[str]:
    """Return the expressions of a statement with commas between; none of another one."""
    found: list[str] = []
    waiting = node.named_children[:1] if node.type == "expression_statement" else []
    while waiting:
        at = waiting.pop()
        sides = [at.child_by_field_name(name) for name in ("right", "left")]
        if at.type == "comma_expression" and all(sides):
            waiting += [side for side in sides if side is not None]
        else:
            found.append(node_text(at))
    return found if len(found) > 1 else []


def _condition(node: Node) -> tuple[Node, Node] | None:
    """Return condition (without side effects) and body of an ``if`` without ``else``."""
    if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
        return None
    clause, then = (node.child_by_field_name(name) for name in ("condition", "consequence"))
    if clause is None or then is None or re.search(r"[^=!<>]=[^=]|\+\+|--|;", node_text(clause)):
        return None
    return clause, then


def _asked(clause: Node) -> str:
    """Return a condition without its parentheses."""
    return node_text(clause)[1:-1].strip()


def _operand(asked: str) -> str:
    """Return a condition as one side of an "and"."""
    return f"({asked})" if re.search(r"\|\||[?,]", asked) else asked
