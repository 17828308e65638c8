"""The extents of shared arrays, which PTX flattens to bytes: out of their declarations."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

_DECLARED = r"__shared__\s+[^;=]*?\b{name}\s*((?:\[[^\[\]]*\])+)"
_CONSTANTS = (
    r"#\s*define\s+(\w+)\s+(.+)",
    r"\b(?:const|constexpr)\s+(?:unsigned\s+|static\s+)*(?:int|unsigned|size_t|long)\s+"
    r"(\w+)\s*=\s*([^;,]+)",
)


def extents(name: str, count: int, source: str, entry: str) -> tuple[int, ...] | None:
    """Extents of a shared variable.

    Args:
        name: The variable.
        count: Its elements in all; extents that do not multiply to it are refused.
        source: The CUDA source.
        entry: The kernel as C++ writes it, with its template arguments.

    Returns:
        ``None`` where the source does not tell.
    """
    for found in re.finditer(_DECLARED.format(name=re.escape(name)), source):
        known = _constants(source) | _template(source[: found.start()], entry)
        sizes = [_number(text, known) for text in re.findall(r"\[([^\[\]]*)\]", found[1])]
        product = 1
        for size in sizes:
            product *= size or 0
        if product == count:
            return tuple(size for size in sizes if size)
    return None


def _constants(source: str) -> dict[str, int]:
    known: dict[str, int] = {}
    for pattern in _CONSTANTS:
        for name, text in re.findall(pattern, source):
            value = _number(text.split("//")[0], known)
            if value is not None:
                known[name] = value
    return known


def _template(before: str, entry: str) -> dict[str, int]:
    """Template parameters of the function at hand, by the arguments in the entry's name."""
    given = re.search(r"<(.*)>\s*$", entry)
    declared = re.findall(r"template\s*<([^<>]*)>", before)
    if not given or not declared:
        return {}
    names = [text.split("=")[0].split()[-1] for text in declared[-1].split(",") if text.split()]
    values = [_number(text, {}) for text in given[1].split(",")]
    pairs = zip(names, values, strict=False)
    return {name: value for name, value in pairs if value is not None}


def _number(text: str, known: Mapping[str, int]) -> int | None:
    """A constant expression's value; ``None`` for anything but whole numbers and + - * /."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _value(tree, known)
    except (SyntaxError, KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _value(node: ast.expr, known: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, known), _value(node.right, known)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left // right
    raise ValueError(ast.dump(node))
