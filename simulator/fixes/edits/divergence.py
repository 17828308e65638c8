"""Uniformity: do all threads of a block reach a place, whatever the arrays contain?

A barrier under a condition on loaded data or a thread index may be reached by all threads in the
tested runs, and by some only with other contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .statements import FUNCTIONS, LOOPS, StatementList, descendants, field_text

if TYPE_CHECKING:
    from tree_sitter import Node

_BARRIER = re.compile(rb"\b__syncthreads|\b__syncwarp|\b(bar|barrier)(\.\w+)*\.sync|\bsync\s*\(")
_SAME = {b"blockIdx", b"blockDim", b"gridDim", b"warpSize"}
_READS = {"subscript_expression", "call_expression", "lambda_expression"}
_DEEP = 8
"""So many variables a value is followed back through."""


def may_diverge(body: StatementList) -> bool:
    """Whether threads of a block may have diverged before a list of statements.

    A barrier of the program under the same condition implies that the condition is uniform.
    """
    child, node = body.statements[0], body.statements[0].parent
    while node is not None and node.type not in FUNCTIONS:
        condition = node.child_by_field_name("condition")
        choice = node.type in ("if_statement", "switch_statement") or node.type in LOOPS
        if choice and condition is not None and child != condition:
            constant = (node.text or b"").startswith(b"if constexpr")
            if not constant and not _BARRIER.search(node.text or b"") and _differs(condition, ()):
                return True
        child, node = node, node.parent
    return False


def _differs(value: Node, followed: tuple[bytes, ...]) -> bool:
    """Whether a value may differ between threads of a block."""
    if any(True for _ in descendants(value, _READS)):
        return True
    if any((n.text or b"").startswith(b"*") for n in descendants(value, {"pointer_expression"})):
        return True
    for field in descendants(value, {"field_expression"}):
        if field_text(field, "argument") not in _SAME:
            return True
    names = {n.text or b"" for n in descendants(value, {"identifier"})} - _SAME - {*followed}
    return any(_varies(value, name, followed) for name in sorted(names))


def _varies(at: Node, name: bytes, followed: tuple[bytes, ...]) -> bool:
    if len(followed) >= _DEEP:
        return True
    root, function = at, None
    while root.parent is not None:
        if root.type in FUNCTIONS and function is None:
            function = root
        root = root.parent
    for made in descendants(root, {"preproc_def"}):
        if field_text(made, "name") == name:
            return bool(re.search(rb"threadIdx|[\[(*]", field_text(made, "value")))
    if function is None:  # in a macro: what that does not declare may be anything
        given = list(_given(root, name))
        return not given or any(_differs(value, (*followed, name)) for value in given)
    kernel = b"__global__" in (function.text or b"").partition(b"{")[0]
    for parameter in descendants(function, {"parameter_declaration"}):
        if _declared(parameter) == name:
            return not kernel
    return any(_differs(value, (*followed, name)) for value in _given(function, name))


def _given(function: Node, name: bytes) -> Iterator[Node]:
    """Yield the values assigned to a variable in a function, including loop steps."""
    for made in descendants(function, {"init_declarator"}):
        if _declared(made) == name:
            yield made
    for made in descendants(function, {"assignment_expression"}):
        if field_text(made, "left") == name:
            yield made


def _declared(node: Node) -> bytes:
    """Return the variable of a declaration."""
    at: Node | None = node
    while at is not None and at.type != "identifier":
        at = at.child_by_field_name("declarator")
    return (at.text or b"") if at is not None else b""
