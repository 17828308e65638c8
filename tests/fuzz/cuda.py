"""Random CUDA C++, held against the scalar interpreter in both builds under all schedules."""

from __future__ import annotations

import re

from simulator.isa import TABLE

from .compare import SCHEDULES, difference
from .cuda_program import Program, draw
from .report import Difference, Report, seeds
from .tree import shrink

BUILDS = ("device", "source")


def wrong(program: Program, report: Report | None = None) -> str | None:
    """What is wrong with a program in one of its builds, if anything."""
    for build in BUILDS:
        launch = program.launch(build)
        if report:
            report.launches += len(SCHEDULES)
            for name in re.findall(r"^\s*(?:@!?%\w+\s+)?([a-z]\w*(?:\.\w+(?:::\w+)*)*)\s",
                                   launch.ptx, re.M):  # fmt: skip
                opcode, *modifiers = name.split(".")
                if opcode in TABLE:
                    report.reach("rows", opcode)
                    for modifier in modifiers:
                        report.reach("modifiers", modifier)
        said = difference(launch)
        if said:
            return f"{build}: {said}"
    return None


def shrunk(program: Program, what: str) -> str:
    """The smallest program found that still goes wrong in the same way."""
    kind = re.sub(r"[0-9]+.*", "", what.split(": ", 2)[-1])[:24]

    def fails() -> bool:
        try:
            said = wrong(program)
        except Exception:
            return False
        return said is not None and kind in said

    for tree in program.trees():
        shrink(tree, fails, 150)
    return f"// grid {program.grid} block {program.block}: {wrong(program)}\n{program.source()}"


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    report = Report()
    report.known["rows"] = set(TABLE)
    for number in seeds(seconds, seed, count):
        program = draw(number)
        report.programs += 1
        what = wrong(program, report)
        if what:
            report.differences.append(Difference(number, what, shrunk(program, what)))
            if len(report.differences) >= 5:
                report.notes.append("stopped after five differences")
                break
    return report
