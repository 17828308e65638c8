"""Every program of the table, under every schedule, in both builds."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.defects.table import DEFECTS, Defect
from tilescope.cli.main import main

HERE = Path(__file__).parent


def check(defect: Defect, schedule: str):
    options = ["--max", "0", "--json", "-", "--step-limit", "300000", "--schedule", schedule]
    return CliRunner().invoke(main, ["check", *defect.words(), *options])


def named(hazard: dict) -> set[str]:
    """How a row of the table may name a hazard: by any of its lines."""
    lines = {item["line"] for item in hazard["involved"]}
    return {f"{hazard['kind']} {hazard['severity']} {line}" for line in lines}


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: f"{d.file}-{d.entry}")
def test_the_verdict_is_the_same_under_every_schedule(defect: Defect) -> None:
    for schedule in defect.schedules[: 1 if defect.refused else None]:
        result = check(defect, schedule)
        assert result.exception is None or isinstance(result.exception, SystemExit), schedule
        assert result.exit_code == defect.exit, (schedule, result.output)
        if defect.exit == 2:
            assert len(result.stderr.strip().splitlines()) <= 3
            assert re.search(defect.refused, result.stderr)
            continue
        hazards = json.loads(result.stdout)["hazards"]
        found = [named(hazard) for hazard in hazards]
        for names in found:
            assert names & set(defect.finds), (schedule, found)
        below = [named(other) for hazard in hazards for other in hazard.get("follows", ())]
        for wanted in defect.finds:
            assert any(wanted in names for names in found + below), (schedule, found, below)
        if defect.folded:
            assert len(hazards) == 1
            folded = set().union(*(named(other) for other in hazards[0]["follows"]))
            assert folded == set(defect.folded), (schedule, folded)


@pytest.mark.parametrize("defect", [d for d in DEFECTS if d.warned], ids=lambda d: d.file)
def test_the_report_says_it(defect: Defect) -> None:
    assert re.search(defect.warned, CliRunner().invoke(main, ["check", *defect.words()]).output)


def test_every_program_has_a_row() -> None:
    programs = {str(p.relative_to(HERE)) for kind in ("cu", "ptx") for p in HERE.rglob(f"*.{kind}")}
    covered = {d.file for d in DEFECTS} | ELSEWHERE
    assert programs == covered


ELSEWHERE = {"random/slow_8357.ptx", "random/divergence_crash.ptx"}
"""Programs with a test of their own: what they showed is no verdict."""
