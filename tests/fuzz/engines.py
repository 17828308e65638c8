"""The net of engines: random programs in the native engine and in NumPy's.

Of programs that native code takes, results, counters and hazards have to be equal; and of all with
native forms in NumPy. Programs of the
net of races are mended so that it takes them; one that runs to its end natively has no race.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import simulator
from kernels import Kernel, unset
from kernels.errors import SimulatorError
from simulator import CHECKS, Run
from simulator.execute.prepare import prepare
from simulator.native import block_ranges, compiled_kernel, engine, jit
from simulator.native.layout import MAY_RACE, REASONS
from tests.fuzz import atomic_orders, cuda_program, ptx_statements, race_draw
from tests.fuzz.race_clocks import detect
from tests.fuzz.race_program import (
    AREA,
    LOCKS,
    Access,
    BlockBarrier,
    Fence,
    Program,
    WarpBarrier,
)
from tests.fuzz.report import Difference, Report, seeds
from tests.support.engines import both, copied, outcome, with_forms

SUSPICION = REASONS[MAY_RACE]
KINDS = {"races: silent", "races: suspected, racy", "races: suspected, none", "ptx: native",
         "cuda: native", "orders: native", "ptx: forms in NumPy",
         "cuda: forms in NumPy"}  # fmt: skip
_EVERY = 12
"""Of so many programs one is of PTX, one of CUDA C++, one of atomics; the others may race."""
_AGAIN = 4
"""Of so many programs that native code gives up one is run in both engines."""


@contextmanager
def quick_compilation() -> Iterator[None]:
    """Compile kernels without optimisation, and leave the user's folder alone."""
    level, folder = compiled_kernel.OPTIMISED, jit.cache_folder
    compiled_kernel.OPTIMISED = compiled_kernel.QUICK
    jit.cache_folder = lambda: None
    try:
        yield
    finally:
        compiled_kernel.OPTIMISED, jit.cache_folder = level, folder


def mended(program: Program, rng: random.Random) -> Program:
    """A program with steps that native code takes alone: plain and atomic ones, and barriers."""
    steps: list[Any] = []
    for step in program.steps:
        if isinstance(step, Access):
            atomic = step.kind in ("atomic", "quiet")
            wide = not atomic or step.order in ("gpu", "sys")
            steps.append(replace(step, order=step.order if wide else "gpu", peer=0))
        elif isinstance(step, Fence) and step.scope == "cluster":
            continue
        elif isinstance(step, (BlockBarrier, WarpBarrier, Fence)):
            steps.append(step)
        if rng.random() < 0.25:
            steps.append(BlockBarrier())
        elif rng.random() < 0.15:
            steps.append(WarpBarrier((0xFFFFFFFF,)))
    return replace(program, steps=tuple(steps), cluster=1)


def race_difference(number: int, report: Report | None = None) -> str:
    """What native code makes otherwise of a program that may race; empty if nothing."""
    rng = random.Random(number)
    program = mended(race_draw.draw(rng), rng)
    if not program.steps:
        return ""
    text, _ = program.ptx()
    kernel = Kernel.from_ptx(text)

    def args() -> list[Any]:
        area = unset((AREA,), np.uint8)  # a quarter of it is written by the host
        area[number % 4 * AREA // 4 : (number % 4 + 1) * AREA // 4] = 0
        return [area, np.zeros(LOCKS + 2 * len(program.steps), np.int32)]

    def differing(*checks: str) -> tuple[list[str], Run]:
        return both(kernel, program.blocks, program.threads, args, checks=set(checks))

    made = prepare(kernel, program.blocks, program.threads, args(), 0, "lockstep", 10**5, False)
    try:
        engine.run(made, {"races"}, None)
    except block_ranges.GaveUp as why:
        if report and str(why).startswith(SUSPICION):
            racy = "racy" if detect(program) else "none"
            report.reach("programs", f"races: suspected, {racy}")
        elif report:
            report.reach("given up", f"races: {why}"[:60])
        # What was begun natively leaves nothing behind that NumPy, which begins again, would see.
        keys = differing("races", "uninitialised")[0] if number % _AGAIN == 1 else []
        return f"{keys}, begun natively\n{program}" if keys else ""
    if report:
        report.reach("programs", "races: silent")
    expected = detect(program)
    if expected:
        return f"native code misses {sorted(map(str, expected))}\n{program}"
    keys, run = differing("races")
    wrong = keys or (run.hazards and run.engine == "native")
    return f"{keys} {run.hazards}\n{program}" if wrong else ""


def launch_difference(launch: Any, name: str, report: Report | None) -> str:
    """What the engines make otherwise of a random program; empty if nothing."""
    kernel = Kernel.from_ptx(launch.ptx, launch.entry)
    how = {"shared_bytes": launch.shared_bytes, "checks": CHECKS}
    try:
        keys, run = both(kernel, launch.grid, launch.block, lambda: copied(launch.args), **how)
        forms = with_forms(kernel, launch.grid, launch.block, copied(launch.args), **how)
        plain = simulator.launch(
            kernel, launch.grid, launch.block, again := copied(launch.args), engine="numpy", **how
        )
    except SimulatorError:
        return ""
    if forms.pop("forms") and report:
        report.reach("programs", f"{name}: forms in NumPy")
    expected = outcome(plain, again)
    keys += [f"{key} with native forms" for key in expected if forms[key] != expected[key]]
    if report:
        if run.engine == "native":
            report.reach("programs", f"{name}: native")
        else:
            report.reach("given up", f"{name}: {run.engine_note}"[:60])
    return f"{keys}\n{launch.ptx}" if keys else ""


def order_difference(number: int, report: Report | None) -> str:
    """What the engines make otherwise of atomics in some order; empty if nothing."""
    launch = atomic_orders.draw(number)
    keys, run = both(launch.kernel(), launch.grid, launch.block, launch.args, checks=CHECKS)
    if report:
        if run.engine == "native":
            report.reach("programs", "orders: native")
        else:
            report.reach("given up", f"orders: {run.engine_note}"[:60])
    return f"{keys}\n{launch.text} {launch.grid} {launch.block}" if keys else ""


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Share blocks among so many threads from the start."""
    cores, alone = block_ranges.cores, block_ranges.ALONE
    block_ranges.cores, block_ranges.ALONE = lambda: count, 0
    try:
        yield
    finally:
        block_ranges.cores, block_ranges.ALONE = cores, alone


def difference(number: int, report: Report | None = None) -> str:
    """What the engines make otherwise of the program of a seed."""
    with threads(1 + number // _EVERY % 3):
        return _difference(number, report)


def _difference(number: int, report: Report | None) -> str:
    if number % _EVERY == 0:
        return launch_difference(ptx_statements.draw(number).launch(), "ptx", report)
    if number % _EVERY == 6:
        return launch_difference(cuda_program.draw(number).launch("device"), "cuda", report)
    if number % _EVERY == 3:
        return order_difference(number, report)
    return race_difference(number, report)


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs and hold the engines to each other."""
    report = Report(known={"programs": KINDS})
    with quick_compilation():
        for number in seeds(seconds, seed, count):
            report.programs += 1
            report.launches += 1
            if wrong := difference(number, report):
                first, _, rest = wrong.partition("\n")
                report.differences.append(Difference(number, first, rest))
    return report
