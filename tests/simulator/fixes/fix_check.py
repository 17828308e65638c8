"""What tests of fixes share: ``tilescope check`` in this process, and tables of programs.

A table is a text file of sections. Each begins with a line ``=== name: words``, the words as on the
command line behind the file's name; ``=== name (slow): words`` is for the gate's second stage.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support import paths
from tilescope.cli.main import main

HERE = Path(__file__).parent
DEFECTS = paths.DEFECTS / "check"


def check(*words: Any) -> Result:
    result = CliRunner().invoke(main, ["check", *(str(word) for word in words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def launch(file: Path, grid: int, block: int | str, *arguments: Any) -> tuple[Any, ...]:
    return file, "--grid", grid, "--block", block, *arguments


def hazards(*words: Any) -> list[dict[str, Any]]:
    found = json.loads(check(*words, "--json", "-").stdout)["hazards"]
    assert isinstance(found, list)
    return found


def fixed(file: Path, *words: Any) -> str:
    """Return what ``--fix`` makes of a file, which is clean then."""
    assert check(file, *words, "--fix").exit_code == 0
    again = check(file, *words, "--fail-on", "warning")
    assert again.exit_code == 0, again.stdout
    return file.read_text()


def fixed_source(tmp_path: Path, source: str, *words: Any) -> str:
    """Return what ``--fix`` makes of a source with a launch's words."""
    file = tmp_path / "my.cu"
    file.write_text(source)
    return fixed(*launch(file, *words))


@dataclass(frozen=True)
class Section:
    """A program of a table: its name, the words behind the file's, and its lines."""

    name: str
    slow: bool
    words: tuple[str, ...]
    lines: tuple[str, ...]

    def text(self, marks: str) -> str:
        """Return one side of a diff: the lines that begin with one of the marks."""
        return "".join(f"{line[1:]}\n" for line in self.lines if line[:1] in marks)


def sections(name: str) -> dict[str, Section]:
    """Read a table."""
    found = {}
    _, *parts = ("\n" + (HERE / name).read_text()).split("\n=== ")
    for part in parts:
        head, *lines = part.rstrip("\n").split("\n")
        title, _, words = head.partition(": ")
        slow = title.endswith(" (slow)")
        title = title.removesuffix(" (slow)")
        assert title not in found, title
        found[title] = Section(title, slow, tuple(shlex.split(words)), tuple(lines))
    return found


def cases(table: dict[str, Section]) -> list[Any]:
    """Return the names of a table as parameters of a test."""
    return [pytest.param(name, marks=[pytest.mark.slow] * s.slow) for name, s in table.items()]
