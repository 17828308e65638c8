"""Edits that merge a test and a write of a location into one atomic.

``old = s[i]; if (old == 0) { s[i] = key; ... }`` becomes ``old = atomicCAS(&s[i], 0, key); ...``,
``if (v > *m) *m = v;`` becomes ``atomicMax(m, v);``, and ``n = *c; *c = n + 1;`` becomes ``n =
atomicAdd(c, 1);`` (CUDA C++ Programming Guide, "Atomic Functions").
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.source.source_edit import INSTEAD, Edit, decoded, line_of
from kernels.source.syntax import parse

from .statements import FUNCTIONS, Point, Syntax, descendants, field_text, node_text
from .updates import address

if TYPE_CHECKING:
    from tree_sitter import Node

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_LARGEST = {"<": "atomicMax", "<=": "atomicMax", ">": "atomicMin", ">=": "atomicMin"}
"""What a location gets that is written if it compares so with what is written."""
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}
_JUMPS = {"return_statement", "continue_statement", "break_statement", "goto_statement"}
_CHANGES = {"assignment_expression", "update_expression", "init_declarator"}


@dataclass(frozen=True)
class _Test:
    """Comparison with a location or its value; ``operator`` has that on the left.

    Attributes:
        start: Its first byte.
        text: Its text.
        before: End of the preceding part of the condition; -1: it is the whole condition.
    """

    operator: str
    other: str
    start: int = 0
    text: str = ""
    before: int = -1

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class _Write:
    """A statement that writes a location: ``place = value;``."""

    statement: Node
    place: Node
    value: Node

    def same(self, node: Node) -> bool:
        """Whether an expression denotes the location."""
        return _plain(node) == _plain(self.place)


_Same = Callable[["Node"], bool]
"""Whether an expression is what is looked at."""


def claim_edits(syntax: Syntax, points: Iterable[Point]) -> Iterator[Edit]:
    """Yield atomics for writes that follow a test of the same location."""
    visited = set()
    for point in dict.fromkeys(points):
        content = syntax.files[point.file]
        for write in _writes(syntax, point):
            for edit in _edits(point.file, content, write):
                if (edit.file, edit.pieces) not in visited:
                    visited.add((edit.file, edit.pieces))
                    yield edit


def _writes(syntax: Syntax, point: Point) -> Iterator[_Write]:
    for around in syntax.at(point):
        for node in [around, *descendants(around, {"expression_statement"})]:
            if node.type != "expression_statement" or not node.named_children:
                continue
            made = node.named_children[0]
            target, right = (made.child_by_field_name(name) for name in ("left", "right"))
            plain = made.type == "assignment_expression" and field_text(made, "operator") == b"="
            if plain and target is not None and right is not None and not _is_local(target):
                yield _Write(node, target, right)


def _is_local(place: Node) -> bool:
    """Whether a name denotes a thread-local variable."""
    function = _function(place)
    if place.type != "identifier" or function is None:
        return False
    for node in descendants(function, {"declaration", "parameter_declaration"}):
        names = {node_text(name) for name in descendants(node, {"identifier"})}
        if node_text(place) in names and node.end_byte <= place.start_byte:
            return b"__shared__" not in (node.text or b"")
    return False


def _edits(file: Path, content: bytes, write: _Write) -> Iterator[Edit]:
    if any(True for _ in descendants(write.value, {"call_expression", "update_expression"})):
        return
    function = _function(write.statement)
    if function is None:
        return
    yield from _of_conditions(file, content, write)
    for name, look, statement in _looks(function, write):
        for atomic in _read_first(name, statement, write):
            if _unchanged(function, write, look.end_byte, name):
                yield _edit(file, content, (look.start_byte, look.end_byte), atomic, write)


def _of_conditions(file: Path, content: bytes, write: _Write) -> Iterator[Edit]:
    """Yield edits for an ``if`` that tests the location directly."""
    for test, branch, inside in _conditions(write, write.same):
        after = _after(test, write, inside)
        if after is None or not _unchanged(branch, write, test.end, ""):
            continue
        atomic, condition = after
        if inside and _alone(branch, write.statement):
            made, old = f"{atomic};", branch if test.before < 0 else write.statement
            pieces = [(test.before, test.end, b"")] if test.before >= 0 else []
            pieces.append((old.start_byte, old.end_byte, made.encode("latin-1")))
            how = f", without the test {test.text}" if test.before >= 0 else ""
            yield Edit(file, tuple(pieces), line_of(content, old.start_byte), INSTEAD, made, how)
        else:
            yield _edit(file, content, (test.start, test.end), condition, write)


def _edit(file: Path, content: bytes, look: tuple[int, int], text: str, write: _Write) -> Edit:
    """Return the edit that replaces the test by the atomic and removes the write."""
    start, end = look
    pieces = (start, end, text.encode("latin-1")), _gone(content, write.statement)
    line, other = (line_of(content, at) for at in (start, write.statement.start_byte))
    how = f", which leaves out the write on line {other}"
    old = decoded(content[start:end])
    return Edit(file, tuple(sorted(pieces)), line, f"for {old} on", text, how)


def _conditions(write: _Write, same: _Same) -> Iterator[tuple[_Test, Node, bool]]:
    """Yield the tests that control a write: of an enclosing ``if``, or of one that jumps past it.

    Nothing else controls the write in between.
    """
    node, branch = write.statement, write.statement.parent
    if branch is not None and branch.type == "compound_statement" and not _jumps_before(node):
        node, branch = branch, branch.parent
    inner = branch.child_by_field_name("consequence") if branch is not None else None
    if branch is not None and branch.type == "if_statement" and node == inner:
        yield from ((test, branch, True) for test in _last_tests(branch, same, "&&"))
    before = write.statement.prev_named_sibling
    while before is not None and not _decides(before):
        before = before.prev_named_sibling
    if before is not None and before.type == "if_statement" and _leaves(before):
        yield from ((test, before, False) for test in _last_tests(before, same, "||"))


def _jumps_before(statement: Node) -> bool:
    """Whether an earlier statement of the list may leave it."""
    before = statement.prev_named_sibling
    while before is not None:
        if _decides(before):
            return True
        before = before.prev_named_sibling
    return False


def _decides(statement: Node) -> bool:
    """Whether a statement may keep threads from later ones, or makes them wait."""
    text = statement.text or b""
    jumps = statement.type in _JUMPS or any(True for _ in descendants(statement, _JUMPS))
    return jumps or b"sync" in text or b"barrier" in text


def _last_tests(branch: Node, same: _Same, joint: str) -> Iterator[_Test]:
    """Yield the test of the location at the end of a condition.

    The condition is parsed in parts, because the parser takes ``a < b && c > d`` for a template.
    """
    node = branch.child_by_field_name("condition")
    if node is None:
        return
    whole, first = node_text(node), node.start_byte
    if whole.startswith("(") and whole.endswith(")"):
        whole, first = whole[1:-1], first + 1
    parts = whole.split(joint)
    last = parts[-1].strip()
    if any(part.count("(") != part.count(")") for part in parts):
        return
    start = first + len(whole) - len(parts[-1]) + parts[-1].index(last)
    before = first + len(joint.join(parts[:-1]).rstrip()) if len(parts) > 1 else -1
    tree = parse(f"void f() {{ if ({last}) ; }}".encode("latin-1"))
    for made in descendants(tree.root_node, {"condition_clause"}):
        for test in _tests(made.named_children[0], same) if made.named_children else ():
            yield dataclasses.replace(test, start=start, text=last, before=before)
        break


def _tests(node: Node, same: _Same) -> Iterator[_Test]:
    """Yield the comparisons of an expression with the location."""
    if same(node):
        yield _Test("!=", "0")
    inner = node.child_by_field_name("argument")
    negated = node.type == "unary_expression" and node_text(node)[:1] == "!"
    if negated and inner is not None and same(inner):
        yield _Test("==", "0")
    first, right = (node.child_by_field_name(name) for name in ("left", "right"))
    operator = field_text(node, "operator").decode("latin-1")
    if node.type == "binary_expression" and first and right and operator in _TURNED:
        if same(first):
            yield _Test(operator, node_text(right))
        elif same(right):
            yield _Test(_TURNED[operator], node_text(first))


def _after(test: _Test, write: _Write, inside: bool) -> tuple[str, str] | None:
    """Return the atomic for a test and a write, and the resulting condition."""
    place, value = address(write.place), node_text(write.value)
    wanted = test.operator if inside else _OPPOSITE[test.operator]
    same = _bare(value) == _bare(test.other)
    if wanted in _LARGEST:
        atomic = f"{_LARGEST[wanted]}({place}, {value})" if same else ""
    elif wanted == "==":
        atomic = f"atomicCAS({place}, {test.other}, {value})"
    else:
        atomic = f"atomicExch({place}, {value})" if same else ""
    return (atomic, f"{atomic} {test.operator} {test.other}") if atomic else None


# -- what was read before it is compared ---------------------------------------------


def _looks(function: Node, write: _Write) -> Iterator[tuple[str, Node, Node]]:
    """Yield variables with the location's value: name, read and statement."""
    for node in descendants(function, {"init_declarator", "assignment_expression"}):
        names = ("declarator", "value") if node.type == "init_declarator" else ("left", "right")
        name, value = (node.child_by_field_name(one) for one in names)
        early = node.end_byte <= write.statement.start_byte and node.parent is not None
        plain = early and name is not None and name.type == "identifier"
        if plain and name and value and node.parent and write.same(value):
            yield node_text(name), value, node.parent


def _read_first(name: str, statement: Node, write: _Write) -> Iterator[str]:
    """Yield atomics for a location that is read into a variable before it is written."""
    place, value = address(write.place), node_text(write.value)
    target, right = (write.value.child_by_field_name(one) for one in ("left", "right"))
    if write.value.type == "binary_expression" and target and right:
        operator = field_text(write.value, "operator").decode("latin-1")
        straight = _between(statement, write.statement) == []
        for one, other in ((target, right), (right, target)):
            if straight and node_text(one) == name and operator in ("+-" if one == target else "+"):
                step = node_text(other) if operator == "+" else f"-({node_text(other)})"
                yield f"atomicAdd({place}, {step})"
    if re.search(rf"\b{re.escape(name)}\b", value):
        return
    for test, branch, inside in _conditions(write, lambda one: node_text(one) == name):
        top = branch if inside else write.statement
        only = _between(statement, top) == ([] if inside else [branch])
        after = _after(test, write, inside)
        if test.before < 0 and only and after is not None and name not in test.other:
            yield after[0]


def _between(first: Node, last: Node) -> list[Node] | None:
    """Return the controlling statements between two of one list; ``None``: different lists."""
    found, node = [], last.prev_named_sibling
    while node is not None and node != first:
        found += [node] if _decides(node) else []
        node = node.prev_named_sibling
    return found if node is not None else None


# -- places ----------------------------------------------------------------------------


def _unchanged(around: Node, write: _Write, start: int, but: str) -> bool:
    """Whether the operands of the write have the same values at the test."""
    function = _function(around) or around
    used = [write.place, write.value]
    names = {node_text(n) for one in used for n in (one, *descendants(one, {"identifier"}))}
    for node in descendants(function, _CHANGES):
        if start <= node.start_byte < write.statement.start_byte:
            inner = next((node.child_by_field_name(field) for field in
                          ("left", "argument", "declarator") if node.child_by_field_name(field)),
                         None)  # fmt: skip
            if inner is not None and node_text(inner) in names - {but}:
                return False
    return True


def _gone(content: bytes, statement: Node) -> tuple[int, int, bytes]:
    """Return the removal of a statement, with an otherwise empty ``if`` or line."""
    node, parent = statement, statement.parent
    while parent is not None and _alone(parent, statement):
        above = parent.parent
        if parent.type == "if_statement":
            node = parent
        elif parent.type != "compound_statement" or not above or above.type != "if_statement":
            break
        parent = above
    start, end = node.start_byte, node.end_byte
    if node.parent is not None and node.parent.type not in ("compound_statement",):
        return start, end, b";"
    begin = content.rfind(b"\n", 0, start) + 1
    newline = content.find(b"\n", end)
    alone = not content[begin:start].strip() and newline >= 0
    if alone and not content[end:newline].strip():
        return begin, newline + 1, b""
    while content[end : end + 1] == b" ":
        end += 1
    return start, end, b""


def _alone(branch: Node, statement: Node) -> bool:
    """Whether a statement is the only one of a branch or list."""
    if branch.type not in ("if_statement", "compound_statement"):
        return False
    if branch.type == "if_statement":
        if branch.child_by_field_name("alternative") is not None:
            return False
        body = branch.child_by_field_name("consequence")
        return body is not None and (body == statement or _alone(body, statement))
    listed = [node for node in branch.named_children if node.type != "comment"]
    inner = listed[0] if len(listed) == 1 else None
    return inner is not None and (
        inner == statement or (inner.type == "if_statement" and _alone(inner, statement))
    )


def _leaves(branch: Node) -> bool:
    """Whether an ``if`` contains only a jump."""
    body = branch.child_by_field_name("consequence")
    if body is None or branch.child_by_field_name("alternative") is not None:
        return False
    last = body.named_children[-1] if body.type == "compound_statement" and body.named_children \
        else body  # fmt: skip
    return last.type in _JUMPS


def _function(node: Node) -> Node | None:
    at: Node | None = node
    while at is not None and at.type not in FUNCTIONS:
        at = at.parent
    return at


def _bare(text: str) -> str:
    return re.sub(r"[\s()]", "", text)


def _plain(node: Node) -> str:
    """Return an expression without blanks; ``*p`` becomes ``p[0]``."""
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    text = re.sub(r"\s", "", node_text(node))
    return re.sub(r"^\*(\w+)$", r"\1[0]", text)
