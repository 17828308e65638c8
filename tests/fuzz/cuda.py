"""Random CUDA C++, held against the scalar interpreter in both builds under all schedules."""

import re

from simulator.isa import TABLE

from . import compare
from .compare import SCHEDULES, difference
from .cuda_program import Program, draw
from .report import Report, seeds

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
    return compare.shrunk(program, wrong, kind, 150) + program.source()


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    report = Report(known={"rows": set(TABLE)})
    return compare.drawn(report, seeds(seconds, seed, count), draw, wrong, shrunk)
