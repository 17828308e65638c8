"""Names that a docstring's ``Attributes:`` or ``Args:`` explain are those of what it documents."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.tree import modules

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
SECTION = re.compile(r"^(?:Attributes|Args):\n((?: {4,}.*\n?|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \(.*?\))?:", re.MULTILINE)


def documented(node: Definition) -> set[str]:
    """Return the names that the sections of a docstring explain."""
    sections = "\n".join(SECTION.findall(ast.get_docstring(node) or ""))
    return set(re.findall(r"\w+", " ".join(ENTRY.findall(sections))))


def parameters(node: ast.AST) -> Iterator[str]:
    """Yield a function's own parameters."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg))


def members(node: ast.ClassDef) -> Iterator[str]:
    """Yield a class's fields, properties, attributes, and parameters of its constructors."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef):
            yield one.name
            if one.name in ("__init__", "__new__"):
                yield from parameters(one)
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        yield from (name.id for to in targets if to for name in ast.walk(to)
                    if isinstance(name, ast.Name))  # fmt: skip
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def test_docstrings_explain_names_that_exist() -> None:
    found = [(module, node) for module, (_, tree) in modules().items()
             for node in ast.walk(tree) if isinstance(node, Definition)]  # fmt: skip
    classes = {node.name: node for _, node in found if isinstance(node, ast.ClassDef)}

    def inherited(node: ast.ClassDef) -> set[str]:
        bases = [re.match(r"[\w.]+", ast.unparse(base)) for base in node.bases]
        names = [base[0].rpartition(".")[2] for base in bases if base]
        above = [inherited(classes[name]) for name in names if name in classes]
        return set(members(node)).union(*above)

    wrong, count = [], 0
    for module, node in found:
        if names := documented(node):
            count += len(names)
            known = inherited(node) if isinstance(node, ast.ClassDef) else set(parameters(node))
            wrong += [f"{module}.{node.name}: {name}" for name in sorted(names - known)]
    assert wrong == []
    assert count > 1000
