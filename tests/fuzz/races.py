"""The net of races: random programs, the simulator's verdict against a slow detector's.

Kind, severity, the instructions and the number of pairs have to agree under every schedule.
"""

import random
from dataclasses import replace
from typing import Any

import numpy as np

import simulator
from kernels import Kernel

from . import flights
from .race_clocks import Verdict, detect
from .race_program import (
    AREA,
    WARP,
    Access,
    BlockBarrier,
    Fence,
    Flag,
    Guard,
    NamedBarrier,
    Program,
    Step,
    WarpBarrier,
)
from .report import Difference, Report, seeds

SCHEDULES: tuple[str | int, ...] = ("lockstep", "warps", "reverse", 1, 2)
THREADS = (3, 31, 32, 33, 40, 64, 70)
MASKS = (
    (0xFFFFFFFF,), (0xFFFFFFFF,), (0xFFFF,), (0xFFFF0000,), (0x55555555,), (0x3,), (0x7FFFFFFF,),
    (0xFFFF, 0xFFFF0000),
)  # fmt: skip
FLIGHTS = 3
"""Every so many programs one has asynchronous copies."""
FEATURES = {
    "vector", "partial warp", "several blocks", "block barrier", "warp barrier", "warp mask",
    "predicate", "byte stores", "named barrier", "arrive", "volatile", "relaxed.cta",
    "relaxed.gpu", "atomic.cta", "atomic.gpu", "atomic.sys", "quiet", "fence.cta", "fence.gpu",
    "fence.sys", "flag", "flag ignored", "release/acquire", "mixed sizes", "equal values",
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
    args = [np.zeros(AREA, np.uint8), np.zeros(max(1, len(program.steps)), np.int32)]
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
        key = (hazard.space, hazard.kind[:3], hazard.severity, reach)
        counts.setdefault(key, []).append(hazard.count)
        if not {steps[item.ptx_line] for item in hazard.involved} <= racing:
            return f"{key} names other instructions: {hazard}"
    wanted: dict[tuple[str, ...], set[tuple[int, int]]] = {}
    for (space, kind, severity, *_), pairs in expected.items():
        for pair in pairs:
            wanted.setdefault((space, kind, severity, _reach(pair, program)), set()).add(pair)
    if counts.keys() != wanted.keys():
        more, less = sorted(counts.keys() - wanted.keys()), sorted(wanted.keys() - counts.keys())
        return f"found {more} too many, {less} missed"
    for key, found in counts.items():  # several hazards may share pairs
        if len(found) == 1 and found != [len(wanted[key])]:
            return f"{key}: {found[0]} pairs, not {len(wanted[key])}"
    return ""


def _reach(pair: tuple[int, int], program: Program) -> str:
    """How far apart two threads are."""
    (one, mine), (other, yours) = (divmod(thread, program.threads) for thread in pair)
    if one != other:
        return "block"
    return "lane" if mine // 32 == yours // 32 else "warp"


def smaller(program: Program, schedule: str | int) -> Program:
    """The program with fewer steps that differs still."""
    at = len(program.steps) - 1
    while at >= 0:
        steps = program.steps[:at] + program.steps[at + 1 :]
        fewer = Program(steps, program.threads, program.blocks, program.equal)
        if difference(fewer, detect(fewer), schedule):
            program = fewer
        at -= 1
    return program


# -- drawing ---------------------------------------------------------------------------


def draw(rng: random.Random) -> Program:
    """A program of a seed."""
    threads, blocks = rng.choice(THREADS), rng.choice([1, 1, 2, 3])
    equal = rng.random() < 0.2
    if rng.random() < 0.2:
        return Program(tuple(_handed(rng, threads, blocks)), threads, blocks, equal)
    plain = rng.random() < 0.3  # no flags
    steps: list[Step] = []
    for _ in range(rng.randrange(2, 10)):
        if len(steps) > NamedBarrier.NUMBERS - 7:  # each has a number of its own
            break
        kind = rng.random()
        if kind < 0.6:
            ordinal = blocks * sum(map(_stores_bytes, steps))
            steps.append(_access(rng, threads, blocks, equal, ordinal))
        elif kind < 0.72:
            steps.append(BlockBarrier())
        elif kind < 0.8 or (plain and kind < 0.84):
            steps.append(WarpBarrier(rng.choice(MASKS)))
        elif plain or kind < 0.83:
            steps.append(_named(rng, threads))
        elif kind < 0.86:
            steps.append(Fence(rng.choice(["cta", "gpu", "sys"]), _guard(rng, threads, blocks)))
        else:
            flag = _flag(rng, threads, blocks)
            more = [flag] if flag else []
            steps += more if rng.random() < 0.5 else _handed(rng, threads, blocks)
    return Program(tuple(steps), threads, blocks, equal)


def _guard(rng: random.Random, threads: int, blocks: int) -> Guard:
    kind = rng.randrange(5)
    block = rng.choice([-1, -1, rng.randrange(blocks)])
    at = rng.randrange(threads)
    if kind == 0:
        return Guard(block=block)
    if kind == 1:
        return Guard(at, at + 1, block=block)
    if kind == 2:
        return Guard(0, at + 1, block=block)
    if kind == 3:
        return Guard(at, block=block)
    step = rng.choice([2, 32])
    return Guard(step=step, rest=rng.randrange(step), block=block)


def _stores_bytes(step: Step) -> bool:
    return isinstance(step, Access) and (step.kind, step.width) == ("store", 1)


def _access(rng: random.Random, threads: int, blocks: int, equal: bool, ordinal: int) -> Access:
    kind = rng.choice(["load", "load", "load", "store", "store", "store", "atomic", "quiet"])
    atomic = kind in ("atomic", "quiet")
    order = rng.choice(
        ["cta", "gpu", "sys"] if atomic else ["weak"] * 5 + ["volatile", "cta", "gpu"]
    )
    # Beyond three stores of bytes there are too few values to tell them apart.
    bytewise = not atomic and (kind == "load" or equal or ordinal + blocks <= 3)
    width = rng.choice([1, 4, 4, 4, 8] if bytewise else [4, 4, 8])
    weak = not atomic and order in ("weak", "volatile")
    return Access(
        rng.choice(["shared", "global"]), kind, width,
        2 if weak and width >= 4 and rng.random() < 0.2 else 1, order,
        rng.choice([0, 0, 1, 16, 31, 32, 63]), rng.choice([0, 1, 1, 2]), rng.choice([0, 0, 16]),
        rng.choice([0, 0, 1, 16]), _guard(rng, threads, blocks), rng.random() < 0.4, ordinal,
    )  # fmt: skip


def _named(rng: random.Random, threads: int) -> NamedBarrier:
    warps = list(range((threads + 31) // 32))
    rng.shuffle(warps)
    waits = rng.randrange(1, len(warps) + 1)
    arrives = tuple(warps[waits:]) if rng.random() < 0.5 else ()
    return NamedBarrier(tuple(warps[:waits]), arrives)


def _meeting(rng: random.Random, threads: int, thread: int) -> Step:
    """A barrier at which a thread perhaps meets others, not all of them."""
    if threads <= WARP or rng.random() < 0.4:
        return WarpBarrier(rng.choice(MASKS))
    mine, (other, *_) = thread // WARP, rng.sample(range(-(-threads // WARP)), 2)
    both = mine, (other if other != mine else (mine + 1) % -(-threads // WARP))
    return NamedBarrier(*rng.choice([(both,), (both[:1], both[1:]), (both[1:], both[:1])]))


def _flag(rng: random.Random, threads: int, blocks: int) -> Flag | None:
    giver, taker = ((rng.randrange(blocks), rng.randrange(threads)) for _ in range(2))
    if giver == taker or (giver[0] == taker[0] and giver[1] // 32 == taker[1] // 32):
        return None  # lanes of a warp that wait for each other may do so for ever
    itself = rng.random() < 0.3
    scopes = ["cta", "gpu", "gpu", "sys"] if itself else ["cta", "gpu", "gpu", "volatile"]
    fence = ["", "cta", "gpu", "gpu", "gpu", "sys"]
    before, after = ("", "") if itself else (rng.choice(fence), rng.choice(fence))
    return Flag(
        giver, taker, before, after, rng.choice(scopes), rng.choice(scopes), itself,
        rng.random() < 0.85,
    )  # fmt: skip


def _handed(rng: random.Random, threads: int, blocks: int) -> list[Step]:
    """A flag of threads that meet others, who write and fence, or fence and read."""
    flag = _flag(rng, threads, blocks)
    if flag is None:
        return []
    here, there = (
        rng.choice([Guard(block=b), replace(_guard(rng, threads, 1), block=b)])
        for b in (flag.giver[0], flag.taker[0])
    )
    meeting, other = (_meeting(rng, threads, t) for _, t in (flag.giver, flag.taker))
    fence, after = (rng.choice(["cta", "gpu"]) for _ in range(2))
    write = Access("global", "store", 4, start=rng.choice([0, 16]), guard=here)
    read = replace(write, kind="load", flip=rng.choice([0, 1, 16, 31]), guard=there)
    flag = replace(flag, before="", after="")
    behind = [Fence(after, there)] if rng.random() < 0.6 else []
    return [write, Fence(fence, here), meeting, flag, other, *behind, read]


def features(program: Program) -> set[str]:
    """What a program has in it."""
    found = {"several blocks"} if program.blocks > 1 else set()
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
        found |= {"byte stores"} if _stores_bytes(step) else set()
        if step.kind in ("atomic", "quiet"):
            found |= {f"atomic.{step.order}"} | ({"quiet"} if step.kind == "quiet" else set())
        elif step.order != "weak":
            found.add("volatile" if step.order == "volatile" else f"relaxed.{step.order}")
        return found
    if isinstance(step, BlockBarrier):
        return {"block barrier"}
    if isinstance(step, WarpBarrier):
        return {"warp barrier" if step.masks == (0xFFFFFFFF,) else "warp mask"}
    if isinstance(step, NamedBarrier):
        return {"named barrier", "arrive"} if step.arrives else {"named barrier"}
    if isinstance(step, Fence):
        return {f"fence.{step.scope}"}
    words = {"flag"} if step.looks else {"flag ignored"}
    return words | ({"release/acquire"} if step.itself else set())
