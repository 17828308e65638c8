"""The simulator's race checks against a reference that is slow and obviously right.

``TILESCOPE_EXAMPLES=3000 pytest tests/test_detector.py`` looks at more programs.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference_detector import (
    AREA,
    Access,
    BlockBarrier,
    Guard,
    NamedBarrier,
    Program,
    Step,
    Verdict,
    WarpBarrier,
    detect,
)

import simulator
from kernels import Kernel

EXAMPLES = int(os.environ.get("TILESCOPE_EXAMPLES", "300"))
MASKS = ((0xFFFF,), (0xFFFF0000,), (0x55555555,), (0x3,), (0x7FFFFFFF,), (0xFFFF, 0xFFFF0000))
THREADS = (4, 31, 32, 33, 40, 64, 70)


def simulated(program: Program, schedule: str | int = "lockstep") -> Verdict:
    """What the simulator says of a program."""
    kernel = Kernel.from_ptx(program.ptx())
    data = np.zeros(AREA, np.uint8)
    run = simulator.launch(
        kernel, program.blocks, program.threads, [data], schedule=schedule, checks={"races"}
    )
    assert all(hazard.kind.endswith("-race") for hazard in run.hazards), run.hazards
    return {(h.space, h.kind.partition("-")[0], h.severity) for h in run.hazards}


@st.composite
def guards(draw: Any, threads: int) -> Guard:
    test = draw(st.sampled_from(["all", "all", "below", "from", "only", "parity", "warp", "lane"]))
    limits = {"all": 0, "parity": 1, "warp": (threads - 1) // 32, "lane": min(31, threads - 1)}
    return Guard(test, draw(st.integers(0, limits.get(test, threads - 1))))


@st.composite
def accesses(draw: Any, threads: int, equal: bool, simple: bool) -> Access:
    kinds = ["load", "load", "store", "store", "atomic"]
    kind = draw(st.sampled_from(kinds[:4] if simple else kinds))
    width = 4 if kind == "atomic" or equal else draw(st.sampled_from([1, 4, 4, 8]))
    return Access(
        "global" if simple else draw(st.sampled_from(["shared", "shared", "global"])),
        kind,
        width,
        flip=draw(st.sampled_from([0, 0, 0, 1, 16, 31, 32, 63])),
        stride=draw(st.sampled_from([1, 1, 1, 0, 2])),
        block=draw(st.sampled_from([0, 64])),
        start=draw(st.sampled_from([0, 0, 0, 1, 32, 64])),
        guard=draw(guards(threads)),
        branch=draw(st.booleans()),
    )


@st.composite
def barriers(draw: Any, threads: int, simple: bool) -> Step:
    kinds = ["block", "block", "warp", "lanes", "named", "arrive"]
    kind = draw(st.sampled_from(kinds[:3] if simple else kinds))
    warps = range((threads + 31) // 32)
    if kind == "block":
        return BlockBarrier()
    if kind == "warp":
        return WarpBarrier()
    if kind == "lanes":
        return WarpBarrier(draw(st.sampled_from(MASKS)))
    order = draw(st.permutations(warps))
    waits = draw(st.integers(1, len(order)))
    if kind == "named" or waits == len(order):
        return NamedBarrier(tuple(order[:waits]))
    return NamedBarrier(tuple(order[:waits]), tuple(order[waits:]))


@st.composite
def programs(draw: Any, simple: bool = False) -> Program:
    """Small kernels: up to ten steps, up to 70 threads, one or two blocks.

    Simple ones have plain accesses to global memory, and whole barriers.
    """
    threads = draw(st.sampled_from(THREADS))
    blocks = draw(st.sampled_from([1, 1, 2]))
    equal = draw(st.sampled_from([False, False, False, True]))
    access = accesses(threads, equal, simple)
    steps = draw(
        st.lists(
            st.one_of(access, access, access, barriers(threads, simple)), min_size=2, max_size=10
        )
    )
    return Program(tuple(_few_bytes(steps, 3 if blocks == 1 else 1)), threads, blocks, equal)


def _few_bytes(steps: list[Step], most: int) -> Iterator[Step]:
    """Stores of single bytes beyond what their values can tell apart become words."""
    count = 0
    for step in steps:
        if isinstance(step, Access) and (step.kind, step.width) == ("store", 1):
            change = {"ordinal": count} if count < most else {"width": 4}
            step = dataclasses.replace(step, **change)
            count += 1
        yield step


ALL = Guard()


def only(thread: int) -> Guard:
    return Guard("only", thread)


def word(kind: str, guard: Guard = ALL, space: str = "shared") -> Access:
    """All the threads of the guard access word 0."""
    return Access(space, kind, 4, stride=0, guard=guard)


HALVES = (0xFFFF, 0xFFFF0000)
CASES: dict[str, tuple[Program, Verdict]] = {
    "two blocks store one word": (
        Program((word("store", only(0), "global"),), 2, 2),
        {("global", "waw", "error")},
    ),
    "two blocks store one value": (
        Program((word("store", only(0), "global"),), 2, 2, equal=True),
        {("global", "waw", "warning")},
    ),
    "neighbouring bytes do not race": (Program((Access("global", "store", 1),), 70), set()),
    "a word over neighbouring bytes does": (
        Program((Access("global", "store", 1), word("load", only(33), "global")), 40),
        {("global", "raw", "error")},
    ),
    "atomics do not race": (Program((word("atomic"), word("atomic")), 70), set()),
    "an atomic and a load do": (
        Program((word("atomic", only(0)), word("load", only(32))), 33),
        {("shared", "raw", "error")},
    ),
    "two warps and a block barrier": (
        Program(
            (Access("shared", "store", 4), BlockBarrier(), Access("shared", "load", 4, 63)), 64
        ),
        set(),
    ),
    "two warps and a warp barrier": (
        Program((Access("shared", "store", 4), WarpBarrier(), Access("shared", "load", 4, 63)), 64),
        {("shared", "raw", "error")},
    ),
    "each warp at a barrier of its own": (
        Program(
            (
                Access("shared", "store", 4),
                NamedBarrier((0,)),
                NamedBarrier((1,)),
                Access("shared", "load", 4, 63),
            ),
            64,
        ),
        {("shared", "raw", "error")},
    ),
    "a warp at a barrier of its own, when the other has left": (
        Program(
            (
                NamedBarrier((1,)),
                Access("shared", "store", 4, start=32),
                Access("shared", "store", 4),
            ),
            33,
        ),
        {("shared", "waw", "error")},
    ),
    "two blocks read, one reads again and writes": (
        Program(
            (
                word("load", only(0), "global"),
                BlockBarrier(),
                Access("global", "load", 4, stride=0, block=1, start=127, guard=only(1)),
                BlockBarrier(),
                Access("global", "store", 4, stride=0, block=1, start=127, guard=only(0)),
            ),
            2,
            2,
        ),
        {("global", "war", "error")},
    ),
    "two halves at one warp barrier": (
        Program(
            (Access("shared", "store", 4), WarpBarrier(HALVES), Access("shared", "load", 4, 31)), 32
        ),
        {("shared", "raw", "warning")},
    ),
    "a store before the thread's own atomic": (
        Program((word("store", only(32)), word("atomic", only(32)), word("atomic", only(0))), 33),
        {("shared", "waw", "error")},
    ),
    "a load before the thread's own atomic": (
        Program((word("load", only(32)), word("atomic", only(32)), word("atomic", only(0))), 33),
        {("shared", "war", "error")},
    ),
    "three warps read, two meet, one of them writes": (
        Program((word("load"), NamedBarrier((0, 2)), word("store", only(0))), 96),
        {("shared", "war", "error")},
    ),
    "all lanes read, three meet, one of them writes": (
        Program((word("load"), WarpBarrier((0xC0000001,)), word("store", only(0))), 32),
        {("shared", "war", "warning")},
    ),
    "readers of two warps, and a writer of one": (
        Program((word("load"), word("store", only(63))), 64),
        {("shared", "war", "error"), ("shared", "war", "warning")},
    ),
    "all store one word": (
        Program((word("store"),), 33),
        {("shared", "waw", "error")},
    ),
    "all store one word, after one warp met": (
        Program((NamedBarrier((0,)), word("store", ALL, "global")), 33),
        {("global", "waw", "error")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_reference_on_programs_judged_by_hand(name: str) -> None:
    program, expected = CASES[name]
    assert detect(program) == expected


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse"])
@pytest.mark.parametrize("name", CASES)
def test_programs_judged_by_hand(name: str, schedule: str) -> None:
    program, expected = CASES[name]
    assert simulated(program, schedule) == expected


PROFILE = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SCHEDULES = st.sampled_from(["lockstep", "warps", "reverse", 1, 2])


@PROFILE
@given(program=programs(simple=True), schedule=SCHEDULES)
def test_a_race_is_found_if_there_is_one(program: Program, schedule: str | int) -> None:
    assert bool(simulated(program, schedule)) == bool(detect(program))


@PROFILE
@given(program=programs(), schedule=SCHEDULES)
def test_same_verdict_as_the_reference(program: Program, schedule: str | int) -> None:
    """No race missed and none invented; of the same kinds and severities under every schedule."""
    assert simulated(program, schedule) == detect(program)
