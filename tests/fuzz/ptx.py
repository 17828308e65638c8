"""Random PTX, held against the scalar interpreter under all schedules."""

from __future__ import annotations

from simulator.isa import TABLE

from .compare import SCHEDULES, difference
from .ptx_program import Program
from .ptx_statements import draw
from .report import Difference, Report, seeds
from .rows import forms
from .tree import shrink


def wrong(program: Program) -> str | None:
    """What is wrong with a program's run, if anything."""
    return difference(program.launch())


def shrunk(program: Program, what: str) -> str:
    """The smallest program found that still goes wrong in the same way."""
    kind = what.split(":")[1][:18] if ":" in what else what

    def fails() -> bool:
        try:
            said = wrong(program)
        except Exception:
            return False
        return said is not None and kind in said

    for tree in program.trees():
        shrink(tree, fails)
    said = wrong(program)
    shape = f"// grid {program.grid} block {program.block}: {said}\n"
    return shape + program.ptx()


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    report = Report()
    report.known["rows"] = set(TABLE)
    report.known["forms"] = {form.name for group in forms().values() for form in group}
    for number in seeds(seconds, seed, count):
        program = draw(number)
        report.programs += 1
        report.launches += len(SCHEDULES)
        for name in program.names:
            report.reach("rows", name.split(".")[0])
            report.reach("forms" if name in report.known["forms"] else "other forms", name)
        what = wrong(program)
        if what:
            report.differences.append(Difference(number, what, shrunk(program, what)))
            if len(report.differences) >= 5:
                report.notes.append("stopped after five differences")
                break
    return report
