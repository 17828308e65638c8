"""Statements in macros: an edit of a line that expands a macro goes to the macro."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.source.source_text import line_end
from kernels.source.syntax import descendants, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_DEFINITIONS = {"preproc_function_def", "preproc_def"}
_WORD = re.compile(rb"[A-Za-z_]\w*")
_DEEP = 4
"""How many macros in macros are followed."""

Macro = tuple[Path, "Node"]
"""The file of a macro with statements, and its text as a tree, at the places that it has there."""


class MacroStatements:
    """Macros of some files that expand to statements or functions, parsed on demand."""

    def __init__(self, files: Mapping[Path, bytes], roots: Mapping[Path, Node]) -> None:
        self._files, self._roots = files, roots
        self._trees: dict[bytes, list[Macro]] = {}

    def at(self, file: Path, line: int) -> list[Macro]:
        """Return the macros that a line expands, transitively."""
        found: list[Macro] = []
        lines = self._files[file].splitlines() if file in self._files else []
        called = _WORD.findall(lines[line - 1]) if 0 < line <= len(lines) else []
        for _ in range(_DEEP):
            new = [m for name in dict.fromkeys(called) for m in self._named(name) if m not in found]
            found += new
            called = [word for _, tree in new for word in _WORD.findall(tree.text or b"")]
        return found

    def _named(self, name: bytes) -> list[Macro]:
        if name not in self._trees:
            self._trees[name] = [
                (file, _alone(self._files[file], node))
                for node, file in self._definitions.get(name, ())
            ]
        return self._trees[name]

    @functools.cached_property
    def _definitions(self) -> dict[bytes, list[tuple[Node, Path]]]:
        found: dict[bytes, list[tuple[Node, Path]]] = {}
        for file, root in self._roots.items():
            for node in descendants(root, _DEFINITIONS) if b"define" in self._files[file] else ():
                if node.type in _DEFINITIONS and b";" in _part(node, "value"):
                    found.setdefault(_part(node, "name"), []).append((node, file))
        return found


def goes_on(content: bytes, offset: int) -> bool:
    """Whether the line of a byte continues in the next, by a backslash."""
    return content[offset : line_end(content, offset)].strip() == b"\\"


def statement_lists(macro: Node, types: set[str]) -> Iterator[Node]:
    """Yield the statement lists in a macro, outermost first."""
    waiting = [macro]
    while waiting:
        node = waiting.pop(0)
        whole = node == macro and all(
            child.type.endswith("statement") or child.type == "declaration"
            for child in node.named_children
        )
        if node.type in types or whole:
            yield node
        waiting += node.named_children


def _part(node: Node, name: str) -> bytes:
    child = node.child_by_field_name(name)
    return (child.text or b"") if child is not None else b""


def _alone(content: bytes, definition: Node) -> Node:
    """Parse a macro's body as a text of its own, with the same positions."""
    value = definition.child_by_field_name("value")
    assert value is not None
    blank = re.sub(rb"[^\r\n]", b" ", content[: value.start_byte])
    body = re.sub(rb"\\(?=[ \t]*\r?(\n|$))", b" ", content[value.start_byte : value.end_byte])
    return parse(blank + body).root_node
