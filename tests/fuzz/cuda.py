"""Random CUDA C++, held against the scalar interpreter in both builds under all schedules.

The two builds are then held against each other, as ``tilescope check`` does.
"""

import re

import numpy as np

from kernels import Kernel
from simulator.isa import TABLE
from tests.fuzz import compare
from tests.fuzz.compare import SCHEDULES, difference
from tests.fuzz.cuda_program import Program, draw
from tests.fuzz.report import Report, seeds
from tilescope.check.checker import Checker
from tilescope.check.launcher import Launcher
from tilescope.cli.target import Target

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
    return apart(program)


def apart(program: Program) -> str | None:
    """What is said of the results of the two builds, which are the same but for contraction."""
    launch = program.launch(BUILDS[0])
    kernel = Kernel.from_cuda(program.source(), launch.entry)
    args = [np.array(a) if isinstance(a, np.ndarray) else a for a in launch.args]
    target = Target("k", kernel, launch.grid, launch.block, args, launch.shared_bytes)
    found = Checker(Launcher(target, checks="none", quiet=True)).check(BUILDS, fixes=False).hazards
    return f"builds: {compare.first_line(found[0])}" if found else None


def shrunk(program: Program, what: str) -> str:
    """The smallest program found that still goes wrong in the same way."""
    kind = re.sub(r"[0-9]+.*", "", what.split(": ", 2)[-1])[:24]
    return compare.shrunk(program, wrong, kind, 150) + program.source()


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    report = Report(known={"rows": set(TABLE)})
    return compare.drawn(report, seeds(seconds, seed, count), draw, wrong, shrunk)
