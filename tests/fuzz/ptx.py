"""Random PTX, held against the scalar interpreter under all schedules."""

from simulator.isa import TABLE
from tests.fuzz import compare
from tests.fuzz.compare import SCHEDULES, difference
from tests.fuzz.ptx_program import Program
from tests.fuzz.ptx_statements import draw
from tests.fuzz.report import Report, seeds
from tests.fuzz.rows import forms


def wrong(program: Program, report: Report | None = None) -> str | None:
    """What is wrong with a program's run, if anything."""
    if report:
        report.launches += len(SCHEDULES)
        for name in program.names:
            report.reach("rows", name.split(".")[0])
            report.reach("forms" if name in report.known["forms"] else "other forms", name)
    return difference(program.launch())


def shrunk(program: Program, what: str) -> str:
    """The smallest program found that still goes wrong in the same way."""
    kind = what.split(":")[1][:18] if ":" in what else what
    return compare.shrunk(program, wrong, kind) + program.ptx()


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    known = {form.name for group in forms().values() for form in group}
    report = Report(known={"rows": set(TABLE), "forms": known})
    return compare.drawn(report, seeds(seconds, seed, count), draw, wrong, shrunk)
