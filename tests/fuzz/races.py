"""The net of races: random programs, the simulator's verdict against a slow detector's.

Kind, severity, the instructions and the number of pairs have to agree under every schedule.
"""

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from simulator.races.report.pairs import MAX_PAIRS
from tests.fuzz import flights
from tests.fuzz.race_clocks import Verdict, detect, reach_of
from tests.fuzz.race_draw import draw, stores_bytes
from tests.fuzz.race_program import (
    AREA,
    LOCKS,
    Access,
    BlockBarrier,
    ClusterArrive,
    ClusterWait,
    Fence,
    Guard,
    Lock,
    NamedBarrier,
    Program,
    WarpBarrier,
)
from tests.fuzz.report import Difference, Report, seeds

SCHEDULES: tuple[str | int, ...] = ("lockstep", "warps", "reverse", 1, 2)
FLIGHTS = 3
"""Every so many programs one has asynchronous copies."""
FEATURES = {
    "vector", "partial warp", "several blocks", "block barrier", "warp barrier", "warp mask",
    "predicate", "byte stores", "named barrier", "arrive", "volatile", "relaxed.cta",
    "relaxed.gpu", "atomic.cta", "atomic.gpu", "atomic.sys", "quiet", "fence.cta", "fence.gpu",
    "fence.sys", "flag", "flag ignored", "release/acquire", "mixed sizes", "equal values",
    "cluster", "several clusters", "cluster barrier", "cluster barrier in two parts",
    "relaxed arrival", "another block's shared memory", "relaxed.cluster", "atomic.cluster",
    "fence.cluster", "looks without acquire", "readers' lock", "lock let go early",
}  # fmt: skip
HAZARDS = {
    f"{space} {kind} {severity}"
    for space in ("shared", "global")
    for kind in ("raw", "war", "waw")
    for severity in ("error", "warning")
}


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs and hold the simulator to the detector."""
    known = {"features": FEATURES, "hazards": HAZARDS, "flights": flights.FEATURES}
    report = Report(known=known)
    for number in seeds(seconds, seed, count):
        if number % FLIGHTS == 0:
            schedule = SCHEDULES[number // FLIGHTS % len(SCHEDULES)]
            flights.hold(number, schedule, report)
            continue
        program = draw(random.Random(number))
        report.programs += 1
        for feature in features(program):
            report.reach("features", feature)
        expected = detect(program)
        for space, kind, severity, *_ in expected:
            report.reach("hazards", f"{space} {kind} {severity}")
        report.reach("hazards", "none", not expected)
        schedule = SCHEDULES[number % len(SCHEDULES)]
        report.launches += 1
        wrong = difference(program, expected, schedule)
        if wrong:
            program = smaller(program, schedule)
            wrong = difference(program, detect(program), schedule)
            report.differences.append(
                Difference(number, f"{schedule}: {wrong}", f"{program}\n{program.ptx()[0]}")
            )
    return report


def difference(program: Program, expected: Verdict, schedule: str | int) -> str:
    """What the simulator says otherwise than the detector; empty if nothing."""
    text, steps = program.ptx()
    args = [np.zeros(AREA, np.uint8), np.zeros(LOCKS + 2 * len(program.steps), np.int32)]
    result = simulator.launch(
        Kernel.from_ptx(text), program.blocks, program.threads, args, schedule=schedule,
        checks={"races"}, step_limit=100_000,
    )  # fmt: skip
    counts: dict[tuple[str, ...], list[int]] = {}
    racing = {step for key in expected for step in key[3:]}
    for hazard in result.hazards:
        if not hazard.kind.endswith("-race"):
            return f"unexpected {hazard.kind}: {hazard.message}"
        reach = next(
            word for word in ("lane", "warp", "block") if f"another {word}" in hazard.message
        )
        at = {steps[item.ptx_line] for item in hazard.involved}
        locked = any(isinstance(program.steps[step], Lock) for step in at)
        kind = "raw" if locked and hazard.kind[:3] == "war" else hazard.kind[:3]
        key = (hazard.space, kind, hazard.severity, reach)
        counts.setdefault(key, []).append(hazard.count)
        if not at <= racing:
            return f"{key} names other instructions: {hazard}"
    wanted: dict[tuple[str, ...], set[tuple[int, int]]] = {}
    for (space, kind, severity, *_), pairs in expected.items():
        for pair in pairs:
            wanted.setdefault((space, kind, severity, reach_of(pair, program)), set()).add(pair)
    if counts.keys() != wanted.keys():
        more, less = sorted(counts.keys() - wanted.keys()), sorted(wanted.keys() - counts.keys())
        return f"found {more} too many, {less} missed"
    for key, found in counts.items():  # several hazards may share pairs
        most = min(len(wanted[key]), MAX_PAIRS)  # from which on a hazard's are not counted
        if len(found) == 1 and found != [most]:
            return f"{key}: {found[0]} pairs, not {most}"
    return ""


def smaller(program: Program, schedule: str | int) -> Program:
    """The program with fewer steps that differs still."""
    at = len(program.steps) - 1
    while at >= 0:
        steps = program.steps[:at] + program.steps[at + 1 :]
        fewer = replace(program, steps=steps)
        if _matched(fewer) and difference(fewer, detect(fewer), schedule):
            program = fewer
        at -= 1
    return program


def _matched(program: Program) -> bool:
    """Whether threads wait at their cluster's barrier behind each arrival, and nowhere else."""
    at = [step for step in program.steps if isinstance(step, ClusterArrive | ClusterWait)]
    turns = [(ClusterArrive, ClusterWait)[i % 2] for i in range(len(at))]
    return len(at) % 2 == 0 and list(map(type, at)) == turns


def features(program: Program) -> set[str]:
    """What a program has in it."""
    found = {"several blocks"} if program.blocks > 1 else set()
    if program.cluster > 1:
        found.add("several clusters" if program.blocks > program.cluster else "cluster")
    for one, two in itertools.pairwise(program.steps):
        if isinstance(one, ClusterArrive):
            whole = isinstance(two, ClusterWait)
            found.add("cluster barrier" if whole else "cluster barrier in two parts")
    if program.threads % 32:
        found.add("partial warp")
    if program.equal:
        found.add("equal values")
    if len({s.width for s in program.steps if isinstance(s, Access)}) > 1:
        found.add("mixed sizes")
    for step in program.steps:
        found |= _of(step)
    return found


def _of(step: Any) -> set[str]:
    if isinstance(step, Access):
        found = {"vector"} if step.vector > 1 else set()
        found |= {"predicate"} if step.predicate and step.guard != Guard() else set()
        found |= {"byte stores"} if stores_bytes(step) else set()
        found |= {"another block's shared memory"} if step.peer else set()
        if step.kind in ("atomic", "quiet"):
            found |= {f"atomic.{step.order}"} | ({"quiet"} if step.kind == "quiet" else set())
        elif step.order != "weak":
            found.add("volatile" if step.order == "volatile" else f"relaxed.{step.order}")
        return found
    if isinstance(step, BlockBarrier):
        return {"block barrier"}
    if isinstance(step, ClusterArrive):
        return {"relaxed arrival"} if step.relaxed else set()
    if isinstance(step, ClusterWait):
        return set()
    if isinstance(step, WarpBarrier):
        return {"warp barrier" if step.masks == (0xFFFFFFFF,) else "warp mask"}
    if isinstance(step, NamedBarrier):
        return {"named barrier", "arrive"} if step.arrives else {"named barrier"}
    if isinstance(step, Fence):
        return {f"fence.{step.scope}"}
    if isinstance(step, Lock):
        return {"readers' lock"} | ({"lock let go early"} if step.early >= 0 else set())
    words = {"flag"} if step.looks else {"flag ignored"}
    words |= {"looks without acquire"} if step.looks and not (step.itself or step.after) else set()
    return words | ({"release/acquire"} if step.itself else set())
