"""A kind of hazard is one row, and is named in one file more: where it is found.

Read from syntax trees. A name in quotes counts, and so does the name of its row in
``simulator/hazards/kinds.py``. Nobody compares with a kind's name: who asks something of a
kind reads its row.
"""

import ast
from pathlib import Path

import pytest

from simulator.hazards import kinds
from simulator.hazards.kinds import CHECKS, KINDS, Case, HazardKind
from tilescope.policy import Policy

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "simulator" / "hazards" / "kinds.py"
ROWS = {name: row.name for name, row in vars(kinds).items() if isinstance(row, HazardKind)}
ENDS = {"trap", "assert"}
"""How a basic block ends: words of the machine, and of PTX."""
QUOTED = set(KINDS) - set(CHECKS) - ENDS
TAILS = {f"-{name.partition('-')[2]}" for name in KINDS if "-" in name}
"""Whoever has the end of a name in quotes asks for several kinds at once."""


def texts(node: ast.AST) -> set[str]:
    return {
        n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def quoted(tree: ast.AST) -> set[str]:
    """Kinds in quotes; an argument of ``Literal`` would be one as well."""
    return texts(tree) & (QUOTED | TAILS)


def named(tree: ast.AST) -> set[str]:
    """Kinds whose rows a file names."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return {ROWS[name] for name in names & set(ROWS)}


def asked(tree: ast.AST) -> set[str]:
    """Kinds in quotes that something is compared with, or looked up by."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Compare, ast.Subscript, ast.Dict, ast.Set, ast.MatchValue)):
            parts = [k for k in node.keys if k] if isinstance(node, ast.Dict) else [node]
            found |= {text for part in parts for text in texts(part)} & QUOTED
    return found


def trees() -> dict[str, ast.AST]:
    files = [f for room in ("simulator", "tilescope") for f in (ROOT / room).rglob("*.py")]
    return {
        str(file.relative_to(ROOT)): ast.parse(file.read_text()) for file in files if file != TABLE
    }


def test_a_kind_is_named_in_its_row_and_where_it_is_found() -> None:
    where: dict[str, list[str]] = {name: [] for name in KINDS}
    for file, tree in trees().items():
        assert not quoted(tree) & TAILS, file
        assert not asked(tree), file
        for name in quoted(tree) | named(tree):
            where[name].append(file)
    assert {name: files for name, files in where.items() if len(files) != 1} == {}
    assert not [files for files in where.values() if not files[0].startswith("simulator/")]


@pytest.mark.parametrize(
    ("code", "finds"),
    [
        ("if hazard.kind == 'deadlock': pass", asked),
        ("stuck = hazard.kind in {'livelock', 'deadlock'}", asked),
        ("severity = {'bad-mask': 'error'}[kind]", asked),
        ("match kind:\n case 'misaligned': pass", asked),
        ("race = hazard.kind.endswith('-race')", quoted),
        ("name = f'{which}-race'", quoted),
        ("report('read-only', site)", quoted),
        ("findings.add(kinds.WAW_RACE)", named),
        ("findings.add(UNINITIALISED)", named),
    ],
)
def test_what_names_a_kind_is_seen(code: str, finds: object) -> None:
    assert callable(finds)
    assert finds(ast.parse(code))


def test_what_only_sounds_like_a_kind_is_not() -> None:
    tree = ast.parse("if block.kind == 'trap' and 'uninitialised' in chosen: say('a deadlock')")
    assert not asked(tree) | quoted(tree) | named(tree)


def test_texts_have_blanks_that_somebody_fills() -> None:
    """A message, a severity and a policy for each case, whatever the row leaves to it."""
    blanks = dict.fromkeys(["place", "who", "verb", "extent", "space", "width", "line", "word"], "")
    for row in KINDS.values():
        for name in ("", *row.cases) if row.message else row.cases:
            case: Case = row.case(name)
            assert case.message.format_map(blanks | {"value": 0}), (row.name, name)
            for text in (case.branch, case.advice):
                text.format_map(blanks)
            assert case.severity in ("error", "warning")
            assert not case.policy or hasattr(Policy(), case.policy)
