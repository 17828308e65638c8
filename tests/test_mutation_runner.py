"""The runner of mutations of the simulator: it draws by a seed, and changes what runs."""

import gzip
import json
from pathlib import Path

import pytest

pytest.importorskip("mutmut")
pytest.importorskip("coverage")

from simulator.compile import values
from tests.mutation import mutants
from tests.mutation.cover import Map


@pytest.mark.slow
def test_a_seed_draws_the_same_again() -> None:
    first = mutants.drawn("atomics", 5, 3)
    assert len(first) == 5
    assert first == mutants.drawn("atomics", 5, 3)
    assert first != mutants.drawn("atomics", 5, 4)
    for mutant in first:
        text = (mutants.ROOT / mutant.file).read_text().splitlines()
        assert mutant.text.splitlines()[mutant.line - 1] != text[mutant.line - 1]


def test_a_mutant_runs_where_the_function_was_imported() -> None:
    both = values.both
    before = both.__code__
    text = (mutants.ROOT / "simulator/compile/values.py").read_text()
    changed = text.replace("return more", "return 17")
    assert changed != text
    try:
        count = mutants.apply(mutants.Mutant("simulator/compile/values.py", 1, changed, ""))
        assert count == 1
        assert both(None, 3) == 17
    finally:
        both.__code__ = before
    assert both(None, 3) == 3


@pytest.mark.slow
def test_what_stands_in_a_class_body_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs at import: in a live process such a mutant would survive unseen."""
    file = "simulator/compile/recursion.py"
    assert "= field(default_factory=" in (mutants.ROOT / file).read_text()
    monkeypatch.setattr(mutants, "AREAS", {"recursion": (file,)})
    found = mutants.drawn("recursion", 1000, 1)
    assert len(found) > 10
    assert not [mutant for mutant in found if "field(" in mutant.diff]


def test_the_quickest_test_of_a_line_comes_first(tmp_path: Path) -> None:
    content = {
        "seconds": {"slow": 2.0, "quick": 0.1, "other": 0.0},
        "lines": {"f.py": {"slow": hex(1 << 7), "quick": hex(1 << 7 | 1 << 8), "other": hex(2)}},
    }
    path = tmp_path / "map"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    known = Map(path)
    assert known.covering("f.py", 7) == ["quick", "slow"]
    assert known.covering("f.py", 9) == []
