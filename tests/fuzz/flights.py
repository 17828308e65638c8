"""The part of the net of races that has asynchronous copies, ``mbarrier`` and proxies."""

import random

import numpy as np

import simulator
from kernels import Kernel
from tests.fuzz.flight_clocks import Verdict, detect
from tests.fuzz.flight_draw import draw
from tests.fuzz.flight_program import AREA, SOURCE, Arrive, Await, Bulk, Program, Queue
from tests.fuzz.race_program import NamedBarrier
from tests.fuzz.report import Difference, Report

FEATURES = {
    "Access", "Arrive", "Arrive copies", "Arrive relaxed", "Await", "Await relaxed",
    "BlockBarrier", "Bulk in", "Bulk out", "Copy", "Fence",
    "NamedBarrier", "NamedBarrier arrive", "ProxyFence", "Queue all", "Queue commit",
    "Queue commit bulk", "Queue wait", "Queue wait bulk", "Queue wait bulk read", "WarpBarrier",
    "clean", "race",
}  # fmt: skip

Told = tuple[str, str, str, str, frozenset[int], int]
"""Of a hazard: space, kind, severity, message, steps and count."""


def hold(seed: int, schedule: str | int, report: Report) -> None:
    """Hold the simulator to the detector in the program of a seed."""
    program = draw(random.Random(seed))
    expected = detect(program)
    report.programs += 1
    report.launches += 1
    for feature in features(program) | {"race" if expected.wanted else "clean"}:
        report.reach("flights", feature)
    wrong = difference(program, expected, schedule)
    if wrong:
        program = smaller(program, schedule, wrong.split(":")[0])
        wrong = difference(program, detect(program), schedule)
        text = "\n".join([*map(str, program.steps), program.ptx()[0]])
        report.differences.append(Difference(seed, f"{schedule}: {wrong}", text))


def difference(program: Program, expected: Verdict, schedule: str | int) -> str:
    """What the simulator says otherwise than the detector, or in lockstep; empty if nothing."""
    hazards = told(program, schedule)
    found = {(space, kind[:3], severity) for space, kind, severity, *_ in hazards}
    for hazard in hazards:
        _, kind, _, said, steps, _ = hazard
        if not kind.endswith("-race"):
            return f"unexpected {kind}: {said}"
        if not steps <= expected.steps:
            return f"invented: steps {sorted(steps - expected.steps)} named: {hazard}"
    if found - expected.allowed:
        return f"invented: {sorted(found - expected.allowed)}"
    missed = [sorted(keys) for keys in expected.wanted if not keys & found]
    if missed:
        return f"missed: {sorted(missed)}"
    lockstep = hazards if schedule == "lockstep" else told(program, "lockstep")
    if _settled(hazards) == _settled(lockstep):
        return ""
    return f"unlike lockstep: {hazards}, not {lockstep}"


def _settled(hazards: list[Told]) -> list[Told]:
    """But for what another race decides: whether copies send equal bytes to the same place.

    Pairs that do are warned of, apart from those that do not. (Seeds 230008566 and 1300005909:
    what they send is being written while they read it.)
    """
    if not any(h[0] == "shared" and h[2] == "error" for h in hazards):
        return hazards
    sent = [h for h in hazards if h[:2] == ("global", "waw-race")]
    steps = frozenset(step for h in sent for step in h[4])
    told = [h for h in hazards if h not in sent]
    told += [("global", "waw-race", "", "", steps, 0)] if sent else []
    return sorted(told, key=lambda h: (*h[:4], sorted(h[4]), h[5]))


def told(program: Program, schedule: str | int) -> list[Told]:
    """The hazards that the simulator finds, with the steps that each names."""
    text, steps = program.ptx()
    source = np.random.default_rng(1).integers(64, 256, SOURCE).astype(np.uint8)
    result = simulator.launch(
        Kernel.from_ptx(text), program.blocks, program.threads, [np.zeros(AREA, np.uint8), source],
        schedule=schedule, checks={"races"}, step_limit=100_000,
    )  # fmt: skip
    return [
        (
            h.space, h.kind, h.severity, h.message,
            frozenset(steps[item.ptx_line] for item in h.involved if item.ptx_line in steps),
            h.count,
        )
        for h in result.hazards
    ]  # fmt: skip


def features(program: Program) -> set[str]:
    """What a program has in it."""
    found = set()
    for step in program.steps:
        name = type(step).__name__
        if isinstance(step, Queue):
            name += f" {step.what}" + " bulk" * step.bulk + " read" * step.read
        elif isinstance(step, Bulk):
            name += " out" if step.barrier < 0 else " in"
        elif isinstance(step, Arrive | Await) and step.relaxed:
            name += " relaxed"
        elif isinstance(step, Arrive) and step.copies:
            name += " copies"
        elif isinstance(step, NamedBarrier) and step.arrives:
            name += " arrive"
        found.add(name)
    return found


def smaller(program: Program, schedule: str | int, kind: str) -> Program:
    """The program with fewer steps that differs still, and in the same way."""
    at = len(program.steps) - 1
    while at >= 0:
        step = program.steps[at]
        steps = program.steps[:at] + program.steps[at + 1 :]
        fewer = Program(steps, program.threads, program.counts, program.blocks)
        kept = isinstance(step, Await | Arrive) or (isinstance(step, Bulk) and step.barrier >= 0)
        if not kept and difference(fewer, detect(fewer), schedule).startswith(kind):
            program = fewer
        at -= 1
    return program
