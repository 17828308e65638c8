"""Where statements stand in the user's CUDA C++, as far as a syntax tree tells.

A place in the source is followed outwards: the list of statements that it stands in, the
list that holds that one, and so on to the function, and on to the calls of the function.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.source.source_edit import Edit
from kernels.source.syntax import parse

from .macros import MacroStatements, statement_lists

if TYPE_CHECKING:
    from tree_sitter import Node

LOOPS = {"for_statement", "while_statement", "do_statement", "for_range_loop"}
_DIRECTIVES = {
    "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
}  # fmt: skip
_LISTS = {"compound_statement", "case_statement", *_DIRECTIVES}
FUNCTIONS = {"function_definition", "lambda_expression"}
_JUMPS = {"return_statement", "break_statement", "continue_statement", "goto_statement"}
_NOT_LISTED = {"comment", "preproc_else", "preproc_elif", "preproc_elifdef"}
_NAME = re.compile(rb"[A-Za-z_]\w*")
_CALLS_DEEP = 4
"""How many calls a place is followed outwards."""


@dataclass(frozen=True)
class Point:
    """A line, from 1, of a file; the PTX has one column for a whole line, often the first."""

    file: Path
    line: int


@dataclass(frozen=True)
class StatementList:
    """A list of statements: what stands in braces, or the one statement of a loop or branch.

    Attributes:
        statements: One after the other, comments left out.
        single: Whether it has no braces, so that a second statement needs them.
        choices: Branches around it, within its function.
        loops: Loops around it, likewise.
        macro: Whether it is in a macro, whose lines end with a backslash.
    """

    file: Path
    statements: tuple[Node, ...]
    single: bool
    choices: int
    loops: int
    macro: bool = False

    @property
    def key(self) -> tuple[Path, int, int]:
        """Identity of the statement list: file and byte range."""
        return self.file, self.statements[0].start_byte, self.statements[-1].end_byte

    def gaps(self) -> list[int]:
        """Return the positions of a new statement: in front of that number, or behind the last."""
        return [g for g in range(len(self.statements) + 1) if self._open(g)]

    def _open(self, gap: int) -> bool:
        if gap == 0:
            return True
        before = self.statements[gap - 1]
        if before.type == "preproc_call":  # a #pragma belongs to what follows
            return False
        return before.type not in _JUMPS


class Syntax:
    """The user's files as trees.

    ``taken``: names that edits have given to variables.
    """

    def __init__(self, files: Mapping[Path, bytes]) -> None:
        self.files, self.taken = files, set[bytes]()
        self._names = {file: {*_NAME.findall(content)} for file, content in files.items()}
        self.roots = {file: parse(content).root_node for file, content in files.items()}
        self._macros = MacroStatements(files, self.roots)

    def at(self, point: Point) -> list[Node]:
        """Return the innermost statements that a line has a part of."""
        found: list[Node] = []
        if point.file in self.roots:
            _innermost(self.roots[point.file], point.line - 1, found)
        return found

    def unused(self, file: Path, name: str, which: int = 1) -> str:
        """Return a name like this one that a file does not have; ``which`` of those, from 1."""
        known = self.taken | self._names[file]
        numbered = (f"{name}{number}" if number > 1 else name for number in itertools.count(1))
        free = (one for one in numbered if one.encode() not in known)
        return next(itertools.islice(free, which - 1, None))

    def take(self, edit: Edit) -> None:
        """Reserve the names of an edit's variables."""
        for _, _, put in edit.pieces:
            self.taken |= {*_NAME.findall(put)} - self._names[edit.file]

    def levels(self, points: list[Point]) -> list[tuple[StatementList, int]]:
        """Return the statement lists around a place, innermost first, with its number in each.

        A place comes with the calls it was inlined through: where there are any, other calls of
        the same functions are of other places.
        """
        found: list[tuple[StatementList, int]] = []
        for number, point in enumerate(points, 1):
            for node in self.at(point):
                found += self._around(point.file, node, _CALLS_DEEP * (number == len(points)))
        unique: dict[object, tuple[StatementList, int]] = {}
        for body, index in found:
            unique.setdefault((body.key, body.single, index), (body, index))
        return list(unique.values())

    def all_lists(self, points: list[Point]) -> list[tuple[StatementList, int]]:
        """Return every list of statements of the functions that have these lines."""
        found: list[tuple[StatementList, int]] = []
        for point in points:
            if point.file not in self.roots:
                continue
            for function in descendants(self.roots[point.file], {"function_definition"}):
                if function.start_point.row <= point.line - 1 <= function.end_point.row:
                    for holder in descendants(function, _LISTS):
                        if body := self._body(point.file, holder, holder):
                            found.append((body, 0))
        return found

    def in_macros(self, points: list[Point]) -> list[tuple[StatementList, int]]:
        """Return every list of statements of the macros that these lines call."""
        bodies = [
            self._body(file, holder, holder)
            for point in points
            for file, macro in self._macros.at(point.file, point.line)
            for holder in statement_lists(macro, _LISTS)
        ]
        return [(dataclasses.replace(body, macro=True), 0) for body in bodies if body]

    def _around(self, file: Path, node: Node, depth: int) -> Iterator[tuple[StatementList, int]]:
        child: Node | None = None
        here: Node | None = node
        while here is not None:
            inner = here.child_by_field_name("body")
            if here.type in LOOPS and inner is not None and inner != child:
                made = self._body(file, inner if inner.type in _LISTS else here, inner)
                if made:  # the loop's head comes after its body, and before it
                    yield made, len(made.statements)
            if child is not None and _is_statement(child):
                made = self._body(file, here, child)
                index = made.statements.index(child) if made else None
                if made and index is not None:
                    yield made, index
            if here.type in FUNCTIONS:
                name = _name(here)
                if depth:
                    for at, call in self._calls(name):
                        yield from self._around(at, call, depth - 1)
                if here.type == "function_definition" or name:  # a lambda runs where it is called
                    return
            child, here = here, here.parent

    def _body(self, file: Path, holder: Node, child: Node) -> StatementList | None:
        choices = loops = 0
        single = child != holder and holder.type not in _LISTS
        node: Node | None = holder
        while node is not None and node.type not in FUNCTIONS:
            loops += node.type in LOOPS
            if node.type == "if_statement" and not (node.text or b"").startswith(b"if constexpr"):
                choices += 1
            choices += node.type == "switch_statement"
            node = node.parent
        listed = (child,) if single else tuple(_listed(holder))
        return StatementList(file, listed, single, choices, loops) if listed else None

    def called(self, node: Node) -> list[StatementList]:
        """Return the bodies of the user's functions that are called in a statement."""
        found = []
        for call in descendants(node, {"call_expression"}):
            names = _NAME.findall(re.sub(rb"<.*", b"", field_text(call, "function")))
            for file, root in self.roots.items() if names else ():
                for function in descendants(root, {"function_definition"}):
                    holder = function.child_by_field_name("body")
                    if _name(function).encode() == names[-1] and holder is not None:
                        body = self._body(file, holder, holder)
                        found += [body] if body else []
        return found

    def _calls(self, name: str) -> Iterator[tuple[Path, Node]]:
        """Yield calls of a function, or of a macro that calls it."""
        if not name:
            return
        names = {name.encode()}
        for root in self.roots.values():
            for node in descendants(root, {"preproc_function_def", "preproc_def"}):
                value, defined = node.child_by_field_name("value"), field_text(node, "name")
                if value is not None and re.search(rb"\b%b\b" % name.encode(), value.text or b""):
                    names.add(defined)
        for file, root in self.roots.items():
            for node in descendants(root, {"call_expression"}):
                called = re.findall(rb"\w+", re.sub(rb"<.*", b"", field_text(node, "function")))
                if called and called[-1] in names:
                    yield file, node


def _innermost(node: Node, row: int, found: list[Node]) -> bool:
    """Collect the statements that have a part of a row, and none inside them that has."""
    inside = False
    for child in node.children:
        if child.start_point.row <= row <= child.end_point.row:
            inside = _innermost(child, row, found) or inside
    body = node.child_by_field_name("body") if node.type in LOOPS else None
    head = body is not None and node.start_point.row <= row <= body.start_point.row
    if (head or not inside) and _is_statement(node):
        found.append(node)
        inside = True
    return inside


def _is_statement(node: Node) -> bool:
    """Whether a node is one of a list of statements, or all there is of a list without braces."""
    parent = node.parent
    if parent is None or not node.is_named:
        return False
    if parent.type in _LISTS:
        return any(node == other for other in _listed(parent))
    return _is_single(parent, node) and node.type not in _LISTS


def _is_single(holder: Node, child: Node) -> bool:
    """Whether a node is the whole body of a loop or branch."""
    if holder.type in LOOPS:
        return child == holder.child_by_field_name("body")
    if holder.type == "if_statement":
        return child == holder.child_by_field_name("consequence")
    return holder.type == "else_clause" and child == holder.named_children[-1]


def _listed(holder: Node) -> Iterator[Node]:
    """Yield the statements of a list."""
    labels = [holder.child_by_field_name(name) for name in ("value", "condition", "name")]
    for node in holder.named_children:
        if node.type not in _NOT_LISTED and node not in labels:
            yield node


def descendants(root: Node, types: set[str]) -> Iterator[Node]:
    """Yield all nodes of some types, in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in types:
            yield node
        waiting += reversed(node.named_children)


def node_text(node: Node) -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode("latin-1")


def field_text(node: Node, name: str) -> bytes:
    """Return the text of a node's part; empty where it has none."""
    child = node.child_by_field_name(name)
    return (child.text or b"") if child is not None else b""


def _name(function: Node) -> str:
    """Return the name a function or a lambda is called by; empty for a kernel or where unknown."""
    if function.type == "lambda_expression":
        parent = function.parent
        named = parent is not None and parent.type == "init_declarator"
        return field_text(parent, "declarator").decode(errors="replace") if named and parent else ""
    declarator = function.child_by_field_name("declarator")
    text = (function.text or b"").partition(b"{")[0]
    if b"__global__" in text or declarator is None:
        return ""
    while (inner := declarator.child_by_field_name("declarator")) is not None:
        declarator = inner
    words = re.findall(rb"~?\w+", declarator.text or b"")
    return words[-1].decode(errors="replace") if words else ""
