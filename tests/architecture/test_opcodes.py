"""Nobody outside the instruction tables asks for an opcode by its name: the rows say it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import simulator
from simulator.isa import TABLE
from simulator.isa.grammar import form
from tests.studies import supported

ROOT = Path(simulator.__file__).parents[1]
FILES = sorted(
    path
    for room in ("simulator", "tilescope", "device")
    for path in (ROOT / room).rglob("*.py")
    if not path.is_relative_to(ROOT / "simulator" / "isa")
    and not path.is_relative_to(ROOT / "simulator" / "native" / "forms")  # the native table
)
MODIFIERS = {
    word
    for rows in TABLE.values()
    for row in rows
    for text in (*row.signatures, *(text for text, _ in row.unsupported_signatures))
    for slot in (*form(text).head, *form(text).slots)
    for word in slot.words
}
"""Words such as ``add``, which are names of atomic operations too."""


def asks(code: str) -> Iterator[str]:
    """Where code depends on the name of an opcode.

    An instruction's ``opcode`` may be shown, in an f-string, and nothing else: whatever compares
    it, looks it up or keeps it, asks. Strings that are opcodes ask where several stand together
    (one alone may be a word of English), and where they go on with a modifier.
    """
    tree = ast.parse(code)
    shown = {
        node
        for text in ast.walk(tree)
        if isinstance(text, ast.FormattedValue)
        for node in ast.walk(text)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "opcode" and node not in shown:
            yield ast.unparse(node)
        beside = _together(node)
        words = [str(item.value) for item in beside if isinstance(item, ast.Constant)]
        known = len(words) > 1 and len(words) == len(beside) and set(words) <= set(TABLE)
        if (known and not MODIFIERS.issuperset(words)) or any(map(_with_modifiers, words)):
            yield ast.unparse(node)


def _with_modifiers(word: str) -> bool:
    return "." in word and word.partition(".")[0] in TABLE


def _together(node: ast.AST) -> list[ast.expr | None]:
    """Expressions that are held against something, or stand beside each other."""
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        return [*node.elts]
    if isinstance(node, ast.Dict):
        return [*node.keys]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        prefix = node.func.attr in ("startswith", "removeprefix", "partition", "split")
        return [*node.args] if prefix else []
    if isinstance(node, ast.MatchOr):
        return [p.value for p in node.patterns if isinstance(p, ast.MatchValue)]
    return []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rows_are_asked(path: Path) -> None:
    assert not list(asks(path.read_text()))


@pytest.mark.parametrize(
    "code",
    [
        "ins.opcode == 'bar'", "ins.opcode in KNOWN", "ins.opcode.startswith('sub')",
        "OTHER[ins.opcode]", "name = ins.opcode", "match ins.opcode:\n  case 'ld': pass",
        "kind in ('exit', 'trap')", "LOADS = frozenset({'ld', 'ldu'})",
        "ends = {'ret': 1, 'exit': 2}",
        "match kind:\n  case 'ld' | 'st': pass",
        "name == 'bar.warp.sync'", "name.startswith('ld.')",
    ],
)  # fmt: skip
def test_an_ask_is_seen(code: str) -> None:
    assert list(asks(code))


@pytest.mark.parametrize(
    "code",
    [
        "hazard.kind == 'trap'", "site.operation in ('add', 'or', 'xor')", "f'{ins.opcode}_{n}'",
        "kinds = ('load', 'store')", "lines.append('bar.sync 0;')", "path.endswith('.call')",
    ],
)  # fmt: skip
def test_other_words_are_not(code: str) -> None:
    assert not list(asks(code))


def test_the_page_is_of_the_rows() -> None:
    """Otherwise: ``python -m tests.studies.supported``."""
    assert supported.PAGE.read_text() == supported.page()
