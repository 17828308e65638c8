"""Extents and types of shared arrays from their declarations: PTX has bytes only."""

import ast
import re
from collections.abc import Mapping

from kernels.source.signatures import parted

_DECLARED = r"__shared__\s+([^;=]*?)\b{name}\s*((?:\[[^\[\]]*\])+)"
_VECTOR = re.compile(r"\b(?:float|double|u?int|u?short|u?char)([234])\b")
_KINDS = (
    (r"\b(?:__)?half\b", "h"),
    (r"\b(?:float|double)[1-4]?\b", "f"),
    (r"\b(?:unsigned|u(?:int|char|short|long)[1-4]?|uint\d+_t|size_t)\b", "u"),
    (r"\b(?:signed|int[1-4]?|char[1-4]?|short[1-4]?|long|int\d+_t)\b", "i"),
)
_CONSTANT = re.compile(
    r"#\s*define\s+(\w+)\s+([^\n]+)|"
    r"\b(?:const|constexpr)\s+(?:unsigned\s+|static\s+)*(?:int|unsigned|size_t|long)\s+([^;]+);"
)


def extents(name: str, count: int, source: str, entry: str) -> tuple[int, ...] | None:
    """Return the extents of a shared variable, or ``None`` if its declaration has none.

    Args:
        name: Name of the variable.
        count: Elements of the variable. Extents with another product are refused.
        source: CUDA C++ text.
        entry: The kernel's C++ name with its template arguments.
    """
    for found in re.finditer(_DECLARED.format(name=re.escape(name)), source):
        before = source[: found.start()]
        known = _constants(before, _template(before, entry))
        sizes = [_number(text, known) for text in re.findall(r"\[([^\[\]]*)\]", found[2])]
        vector = _VECTOR.search(found[1])
        if vector and sizes[-1]:
            sizes[-1] *= int(vector[1])
        product = 1
        for size in sizes:
            product *= size or 0
        if product == count:
            return tuple(size for size in sizes if size)
    return None


def kind(name: str, source: str) -> str:
    """Return the kind of a variable's elements, ``f``, ``h`` (f16), ``i``, ``u`` or ``""``."""
    found = re.search(_DECLARED.format(name=re.escape(name)), source)
    if not found:
        return ""
    return next((letter for words, letter in _KINDS if re.search(words, found[1])), "")


def _constants(before: str, known: dict[str, int]) -> dict[str, int]:
    """Return the constants declared in ``before``, by name, added to ``known``."""
    for found in _CONSTANT.finditer(before):
        pairs = [(found[1], found[2].split("//")[0])] if found[1] else []
        for part in (found[3] or "").split(","):
            name, _, text = part.partition("=")
            pairs.append((name.strip(), text))
        for name, text in pairs:
            value = _number(text, known)
            if value is not None:
                known[name] = value
    return known


def _template(before: str, entry: str) -> dict[str, int]:
    """Return the values of the template parameters, from the arguments in the entry's name."""
    given = re.search(r"<(.*)>\s*$", parted(entry)[0])
    declared = re.findall(r"template\s*<([^<>]*)>", before)
    if not given or not declared:
        return {}
    names = [text.split("=")[0].split()[-1] for text in declared[-1].split(",") if text.split()]
    values = [_number(text, {}) for text in given[1].split(",")]
    pairs = zip(names, values, strict=False)
    return {name: value for name, value in pairs if value is not None}


def _number(text: str, known: Mapping[str, int]) -> int | None:
    """Evaluate whole numbers with + - * /; return ``None`` for any other expression."""
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
        a, b = _value(node.left, known), _value(node.right, known)
        if isinstance(node.op, ast.Add):
            return a + b
        if isinstance(node.op, ast.Sub):
            return a - b
        if isinstance(node.op, ast.Mult):
            return a * b
        if isinstance(node.op, ast.Div):
            return a // b
    raise ValueError(ast.dump(node))
