"""Mutants of functions, as source text."""

import ast
import copy
from collections.abc import Iterator

SWAPS = {ast.Lt: ast.LtE, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And}
"""Operators, and what a mutant has in their place."""


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Sources with one change each, and what was changed."""
    tree = ast.parse(source)
    places = [node for function in tree.body if isinstance(function, ast.FunctionDef)
              for node in ast.walk(function)]  # fmt: skip
    for number, node in enumerate(places):
        for what in ("swap", "true", "false", "zero", "drop"):
            other = copy.deepcopy(tree)
            mutated = [n for f in other.body if isinstance(f, ast.FunctionDef)
                       for n in ast.walk(f)][number]  # fmt: skip
            if _mutate(mutated, what):
                line = ast.unparse(node).splitlines()[0]
                yield f"{getattr(node, 'lineno', 0)} {what}: {line}", ast.unparse(other)


def _mutate(node: ast.AST, what: str) -> bool:
    """Change a node in place, if it can be changed so."""
    if what == "swap" and isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        node.ops = [SWAPS[type(node.ops[0])]()]
        return True
    if what == "swap" and isinstance(node, ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
        return True
    if what in ("true", "false") and isinstance(node, ast.If):
        node.test = ast.Constant(value=int(what == "true"))
        return True
    if what == "zero" and isinstance(node, ast.Return) and node.value is not None:
        changed = not (isinstance(node.value, ast.Constant) and node.value.value == 0)
        node.value = ast.Constant(value=0)
        return changed
    calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if what == "drop" and (calls or isinstance(node, ast.AugAssign)):
        node.__dict__.update(ast.Pass().__dict__)
        node.__class__ = ast.Pass  # type: ignore[assignment]
        return True
    return False
