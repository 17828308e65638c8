"""Shapes of arrays that a kernel's source declares: ``tile[TILE][TILE + 1]``, in numbers.

A shape is given as far as the text tells it: dimensions of literals, macros, constants, and the
template's arguments that the entry names. Python's ``shared.array`` and ``local.array`` count too.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping

from .element_types import spelled

Shape = tuple[int, ...]
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", re.M)
_CONSTANTS = re.compile(r"\bconst(?:expr)?\b([^;{}]*);")
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*$", re.M)
_ASSIGNED = re.compile(r"^(\w+)[ \t]*=[ \t]*([^\n#]+)", re.M)
_STORAGE = re.compile(
    r"\b(?:__align__|alignas|extern|static|volatile|__shared__)\b(?:\s*\([^()]*\))?"
)
_ELEMENT = re.compile(r"((?:\w+\s+)+)(?:\w+\s*(?:\[[^\[\],]*\]\s*)*,\s*)*")
"""A type's name, and names that are declared with it before another."""
_TEMPLATE = r"template\s*<([^<>]*)>[^;{{}}]*?\b{name}\s*\("
_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.floordiv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_DEEPEST = 8
"""So many names are followed from one to the next."""


def declared(sources: Mapping[str, str], entry: str, name: str, shared: bool) -> list[Shape]:
    """Return the shapes with which arrays of a name are declared, each once."""
    found: dict[Shape, None] = {}
    for file, text in sources.items():
        python = file.endswith(".py")
        plain = text if python else _COMMENT.sub(" ", text)
        names = dict(constants(plain, entry, python))
        for dimensions in _python(plain, name) if python else _cuda(plain, name, shared):
            shape = tuple(value_of(one, names) for one in dimensions)
            if all(size is not None and size > 0 for size in shape):
                found[tuple(size for size in shape if size is not None)] = None
    return list(found)


def shared_element(sources: Mapping[str, str], entry: str, name: str) -> str:
    """Return the element type with which shared arrays of a name are declared, as spelled here.

    Empty if the text does not determine it. A template's parameter is replaced by its argument.
    """
    found = set[str]()
    declaration = rf"\b{re.escape(name)}\s*(?:\[[^\[\];]*\]\s*)*(?=[;,={{])"
    for file, text in sources.items():
        plain = "" if file.endswith(".py") else _COMMENT.sub(" ", text)
        names = dict(constants(plain, entry))
        for match in re.finditer(declaration, plain):
            begin = max(plain.rfind(end, 0, match.start()) for end in ";{}")
            words = _DIRECTIVE.sub("", plain[begin + 1 : match.start()])
            if "__shared__" in words:
                kind = _ELEMENT.fullmatch(_STORAGE.sub("", words).lstrip())
                written = kind[1].strip() if kind else ""
                found.add(spelled(names.get(written, written), sources))
    return found.pop() if len(found) == 1 else ""


def shared_in_python(text: str) -> list[str]:
    """Return the variables of a Python function that are shared arrays, in its order."""
    return re.findall(r"(\w+)\s*=\s*[\w.]*\bshared\.array\s*\(", text)


def local_arrays(sources: Mapping[str, str], code: str) -> list[str]:
    """Return names in a line of code that an array of a function, not shared, is declared with."""
    names = dict.fromkeys(re.findall(r"\b(\w+)\s*\[", code))
    return [
        name for name in names
        if any(
            next(_python(text, name) if file.endswith(".py") else
                 _cuda(_COMMENT.sub(" ", text), name, False), None)
            for file, text in sources.items()
        )
    ]  # fmt: skip


def _cuda(text: str, name: str, shared: bool) -> Iterator[list[str]]:
    pattern = rf"\b{re.escape(name)}\s*((?:\[[^\[\];]+\]\s*)+)(?=[;,={{])"
    for found in re.finditer(pattern, text):
        begin = max(text.rfind(end, 0, found.start()) for end in ";{}")
        words = _DIRECTIVE.sub("", text[begin + 1 : found.start()])
        is_shared = "__shared__" in words or "_shared" in words
        if re.match(r"\s*(?:[\w:<>]+[\s*&]+)+", words) and is_shared == shared:
            yield re.findall(r"\[([^\[\]]+)\]", found[1])


def _python(text: str, name: str) -> Iterator[list[str]]:
    pattern = rf"\b{re.escape(name)}\s*=\s*[\w.]*\b(?:shared|local)\.array\s*\(\s*(?:shape\s*=\s*)?"
    for found in re.finditer(pattern + r"(\([^()]*\)|[^,()]+)", text):
        yield [part for part in found[1].strip("() ").split(",") if part.strip()]


def constants(text: str, entry: str, python: bool = False) -> Iterator[tuple[str, str]]:
    """Yield names and values, as text, of macros, constants and the entry's template arguments."""
    for found in (_ASSIGNED if python else _MACRO).finditer(text):
        yield found[1], found[2]
    for found in () if python else _CONSTANTS.finditer(text):
        for part in found[1].split(","):
            target, _, value = part.partition("=")
            if value and (words := re.findall(r"\w+", target)):
                yield words[-1], value
    name, _, given = entry.partition("<")
    words = re.findall(r"\w+", name)
    template = re.search(_TEMPLATE.format(name=words[-1]), text) if given and words else None
    if template:
        parameters = [part.partition("=")[0].split() for part in template[1].split(",")]
        for parameter, value in zip(parameters, given.rstrip("> ").split(","), strict=False):
            if parameter:
                yield parameter[-1], value


def value_of(text: str, names: Mapping[str, str], deep: int = 0) -> int | None:
    """Return the value of an expression; ``None`` if the text does not determine it."""
    plain = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text.strip())
    plain = re.sub(r"\((?:int|unsigned|size_t|long)\)", "", plain)
    try:
        tree = ast.parse(plain, mode="eval")
    except (SyntaxError, ValueError):
        return None
    return _number(tree.body, names, deep)


def _number(node: ast.expr, names: Mapping[str, str], deep: int) -> int | None:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name) if name in names and deep < _DEEPEST:
            return value_of(names[name], names, deep + 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            one, other = (_number(side, names, deep) for side in (left, right))
            if one is None or other is None or not 0 <= one < 1 << 32 or not 0 <= other < 1 << 32:
                return None
            if isinstance(op, ast.LShift | ast.RShift) and other > 31:
                return None
            if other or not isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
                return int(_OPERATORS[type(op)](one, other))
    return None
