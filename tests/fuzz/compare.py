"""A program run by the simulator and by the interpreter, and what differs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.compiler.process import CompilerCrash
from tests.fuzz.report import Difference, Report
from tests.fuzz.tree import shrink
from tests.oracles import interpreter

SCHEDULES: tuple[str | int, ...] = ("lockstep", "warps", "reverse", 12345)

STEPS = 20_000_000
"""Instructions that the interpreter runs of a block: half a minute of them."""


@dataclass
class Launch:
    """One launch: PTX, entry, shape and arguments (arrays of unsigned integers, and numbers).

    Attributes:
        kernel: What is launched, if it is more than the PTX.
        members: Of arrays of bytes, the bits of an element that belong to members.
    """

    ptx: str
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[Any]
    shared_bytes: int = 0
    kernel: Kernel | None = None
    members: bytes | None = None


def expected(
    launch: Launch, order: int | None = None, nan: Callable[[int, str], int] | None = None
) -> list[bytes]:
    """What the interpreter says the arrays hold afterwards (``nan``: see there)."""
    given = [
        bytearray(a.tobytes()) if isinstance(a, np.ndarray) else a.tobytes() for a in launch.args
    ]
    return interpreter.run(
        launch.ptx, launch.entry, launch.grid, launch.block, given, launch.shared_bytes,
        order=order, nan=nan, steps=STEPS,
    )  # fmt: skip


def simulated(launch: Launch, schedule: str | int, checks: str = "all") -> tuple[list[bytes], Any]:
    """What the simulator says they hold, and its run."""
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in launch.args]
    kernel = launch.kernel or Kernel.from_ptx(launch.ptx, launch.entry)
    run = simulator.launch(
        kernel, launch.grid, launch.block, args, launch.shared_bytes, schedule, checks,
        step_limit=200_000,
    )  # fmt: skip
    return [a.tobytes() for a in args if isinstance(a, np.ndarray)], run


def difference(launch: Launch, schedules: Sequence[str | int] = SCHEDULES) -> str | None:
    """What is wrong with the simulator's results, if anything.

    Where something is, the interpreter mixes the threads: if that changes the result, the
    program is at fault, and the words begin with ``generator``.
    """
    wanted = expected(launch)
    said = against(launch, wanted, schedules)
    if said and expected(launch, order=1) != wanted:
        return "generator: the program's result depends on the order of its threads"
    return said


def against(
    launch: Launch, wanted: list[bytes], schedules: Sequence[str | int], checks: str = "all"
) -> str | None:
    """What the simulator does otherwise than is wanted, if anything."""
    for schedule in schedules:
        try:
            found, run = simulated(launch, schedule, checks)
        except Exception as error:
            return f"{schedule}: {type(error).__name__}: {error}"
        for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if a != b:
                return f"{schedule}: {place(number, a, b)}"
        if run.hazards:
            return f"{schedule}: invented hazard: {first_line(run.hazards[0])}"
    return None


def place(number: int, found: bytes, wanted: bytes) -> str:
    """The first 64-bit word that differs."""
    words = [np.frombuffer(x.ljust(-(-len(x) // 8) * 8, b"\0"), np.uint64) for x in (found, wanted)]
    where = np.nonzero(words[0] != words[1])[0]
    at = int(where[0])
    return (
        f"array {number}, word {at}: {int(words[0][at]):#x}, not {int(words[1][at]):#x} "
        f"({len(where)} of {len(words[0])} words)"
    )


def first_line(hazard: Any) -> str:
    return f"{hazard.kind}: {str(hazard).splitlines()[0]}"


def shrunk(program: Any, wrong: Callable[[Any], str | None], kind: str, tries: int = 400) -> str:
    """The smallest program found that still goes wrong in the same way."""

    def fails() -> bool:
        try:
            said = wrong(program)
        except Exception:
            return False
        return said is not None and kind in said

    for tree in program.trees():
        shrink(tree, fails, tries)
    return f"// grid {program.grid} block {program.block}: {wrong(program)}\n"


def drawn(
    report: Report, numbers: Iterator[int], draw: Callable[[int], Any],
    wrong: Callable[[Any, Report], str | None], small: Callable[[Any, str], str],
) -> Report:  # fmt: skip
    """Draw programs and note what is wrong with them, five times at most."""
    for number in numbers:
        program = draw(number)
        report.programs += 1
        try:
            what = wrong(program, report)
        except CompilerCrash as crash:  # a find of another kind
            report.notes.append(f"seed {number}: {crash}")
            continue
        except interpreter.Livelock:
            report.notes.append(f"seed {number}: not checked: more than {STEPS:,} steps of a block")
            continue
        if what:
            report.differences.append(Difference(number, what, small(program, what)))
            if len(report.differences) >= 5:
                report.notes.append("stopped after five differences")
                break
    return report
