"""A kind of hazard is one row, and is named in one file more: the one that finds it.

Read from syntax trees. A name in quotes counts, and so does its row in
``simulator/hazards/kinds.py``, imported. Who asks something of a kind reads its row.
"""

import ast
from pathlib import Path

import pytest

from simulator.hazards import kinds
from simulator.hazards.kinds import CHECKS, KINDS, HazardKind
from tests.support.paths import ROOT
from tilescope.check.policy import Policy

TABLE = Path(kinds.__file__)
ROWS = {name: row.name for name, row in vars(kinds).items() if isinstance(row, HazardKind)}
ENDS = {"trap", "assert"}
"""How a basic block ends: words of the machine, and of PTX."""
QUOTED = {name: name for name in KINDS if name not in ENDS.union(CHECKS)}
QUOTED |= {f"-{name.partition('-')[2]}": name for name in KINDS if "-" in name}
"""Whoever has the end of a name in quotes asks for several kinds at once."""


def named(tree: ast.AST) -> set[str]:
    """The kinds that a file names."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            found.add(QUOTED.get(str(node.value), ""))
        elif isinstance(node, ast.ImportFrom) and str(node.module).endswith("kinds"):
            found.update(ROWS.get(alias.name, "") for alias in node.names)
        elif isinstance(node, ast.Attribute) and any(
            str(part).endswith("kinds") for part in vars(node.value).values()
        ):
            found.add(ROWS.get(node.attr, ""))
    return found - {""}


def test_a_kind_is_named_in_its_row_and_where_it_is_found() -> None:
    where: dict[str, list[str]] = {name: [] for name in KINDS}
    for room in ("simulator", "tilescope"):
        for file in set((ROOT / room).rglob("*.py")) - {TABLE}:
            for name in named(ast.parse(file.read_text())):
                where[name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in where.items() if len(files) != 1} == {}
    assert all(files[0].startswith("simulator/") for files in where.values())


@pytest.mark.parametrize(
    "code",
    ["hazard.kind == 'waw-race'", "{'waw-race': 'error'}", "hazard.kind.endswith('-race')",
     "f'{which}-race'", "report('waw-race')", "hazards.kinds.WAW_RACE",
     "from ..hazards.kinds import WAW_RACE"],
)  # fmt: skip
def test_what_names_a_kind_is_seen(code: str) -> None:
    assert named(ast.parse(code)) == {"waw-race"}


def test_what_only_sounds_like_a_kind_is_not() -> None:
    code = "block.end == 'trap' and 'uninitialised' in chosen and Flow.TRAP and say('a deadlock')"
    assert named(ast.parse(code)) == set()


def test_blanks_of_texts_are_filled_and_policies_are_there() -> None:
    words = ("place", "who", "verb", "extent", "space", "width", "line", "word")
    counts = ("value", "threads", "registers", "bytes", "most", "fit", "each")
    blanks = dict.fromkeys(words, "") | dict.fromkeys(counts, 0) | {"gpu": "", "how": ""}
    for row in KINDS.values():
        for name in ("", *row.cases) if row.message else row.cases:
            case = row.case(name)
            assert case.message.format_map(blanks), (row.name, name)
            for text in (case.branch, case.advice, case.waits, case.note):
                text.format_map(blanks)
            assert not case.policy or hasattr(Policy(), case.policy)
