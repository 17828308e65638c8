"""Syntax trees of the product, its import graph, and the names that it defines."""

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "simulator", "device", "tilescope")
"""Top-level packages; each may import those before it."""


@functools.cache
def modules() -> dict[str, tuple[Path, ast.Module]]:
    """Return every module of the product by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path, ast.parse(path.read_text())
    return found


@functools.cache
def imports(name: str) -> frozenset[str]:
    """Return the product modules that a module imports, in functions and for types included."""
    path, tree = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            full = [f"{base}.{alias.name}" for alias in node.names]
            found |= {one if one in modules() else base for one in full}
    return frozenset(found & modules().keys() - {name})


def folder(name: str) -> str:
    """Return the dotted name of the package that a module belongs to."""
    return name if modules()[name][0].name == "__init__.py" else name.rpartition(".")[0]


def place(name: str) -> str:
    """Return a module's place: inside ``simulator`` the folder or module below it."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "simulator" else parts[0]


def components(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the strongly connected components with more than one member (Tarjan, 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for to in graph[name]:
            if to not in order:
                visit(to)
            if to in stack:
                low[name] = min(low[name], low[to])
        if low[name] == order[name]:
            at = stack.index(name)
            component = set(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for name in graph:
        if name not in order:
            visit(name)
    return found


def definitions(tree: ast.Module) -> Iterator[str]:
    """Yield each name that a module binds: classes, functions, parameters, variables, fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, its classes, functions, variables and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
