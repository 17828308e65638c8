"""The net of races in the gate: programs judged by hand, and some hundred that reach all of it."""

import pytest

from tests.fuzz import races
from tests.fuzz.race_clocks import detect
from tests.fuzz.race_program import (
    Access,
    BlockBarrier,
    Flag,
    Guard,
    Lock,
    NamedBarrier,
    Program,
    WarpBarrier,
)

ALL = Guard()


def only(thread: int) -> Guard:
    return Guard(thread, thread + 1)


def word(kind: str, guard: Guard = ALL, space: str = "shared") -> Access:
    """All the threads of the guard access word 0."""
    return Access(space, kind, 4, 1, "gpu" if kind == "atomic" else "weak", stride=0, guard=guard)


HALVES = (0xFFFF, 0xFFFF0000)
CASES: dict[str, tuple[Program, set[tuple[str, str, str]]]] = {
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
            (Access("shared", "store", 4), BlockBarrier(), Access("shared", "load", 4, flip=63)), 64
        ),
        set(),
    ),
    "two warps and a warp barrier": (
        Program(
            (Access("shared", "store", 4), WarpBarrier(), Access("shared", "load", 4, flip=63)), 64
        ),
        {("shared", "raw", "error")},
    ),
    "each warp at a barrier of its own": (
        Program(
            (
                Access("shared", "store", 4),
                NamedBarrier((0,)),
                NamedBarrier((1,)),
                Access("shared", "load", 4, flip=63),
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
                Access("global", "load", 4, stride=0, far=1, start=127, guard=only(1)),
                BlockBarrier(),
                Access("global", "store", 4, stride=0, far=1, start=127, guard=only(0)),
            ),
            2,
            2,
        ),
        {("global", "war", "error")},
    ),
    "two halves at one warp barrier": (
        Program(
            (
                Access("shared", "store", 4),
                WarpBarrier(HALVES),
                Access("shared", "load", 4, flip=31),
            ),
            32,
        ),
        {("shared", "raw", "warning")},
    ),
    "a lane hears of a store through another, each in groups of two kinds": (
        Program(
            (
                word("store", only(0)),
                WarpBarrier(HALVES),
                WarpBarrier((0xFF00FF, 0xFF00FF00)),
                word("load", only(24)),
            ),
            32,
        ),
        set(),
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
    "a flag, and a barrier of the block that finds it instead of a wide fence": (
        Program(
            (
                word("store", Guard(0, 1, block=1), "global"),
                Flag((1, 0), (0, 0), "gpu", "cta"),
                BlockBarrier(),
                word("load", Guard(5, 6, block=0), "global"),
            ),
            31,
            2,
        ),
        {("global", "raw", "warning")},
    ),
    "the same, behind a load of the sector": (
        Program(
            (
                word("store", Guard(0, 1, block=1), "global"),
                Access("global", "load", 4, stride=0, start=5, guard=Guard(9, 10, block=0)),
                Flag((1, 0), (0, 0), "gpu", "cta"),
                BlockBarrier(),
                word("load", Guard(5, 6, block=0), "global"),
            ),
            31,
            2,
        ),
        {("global", "raw", "error")},
    ),
    "the same, and a fence before the barrier": (
        Program(
            (
                word("store", Guard(0, 1, block=1), "global"),
                Flag((1, 0), (0, 0), "gpu", "gpu"),
                BlockBarrier(),
                word("load", Guard(5, 6, block=0), "global"),
            ),
            31,
            2,
        ),
        set(),
    ),
    "a readers' lock": (Program((Lock(((0, 0), (1, 0), (0, 32))),), 33, 2), set()),
    "a readers' lock that one reader lets go early": (
        Program((Lock(((1, 0), (0, 0), (0, 32)), 2),), 33, 2),
        {("global", "raw", "error")},
    ),
    "a flag, and nothing but a narrow fence": (
        Program(
            (
                word("store", Guard(0, 1, block=1), "global"),
                Flag((1, 0), (0, 0), "gpu", "cta"),
                word("load", Guard(0, 1, block=0), "global"),
            ),
            31,
            2,
        ),
        {("global", "raw", "error")},
    ),
    "all store one word, after one warp met": (
        Program((NamedBarrier((0,)), word("store", Guard(), "global")), 33),
        {("global", "waw", "error")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_programs_judged_by_hand(name: str) -> None:
    program, expected = CASES[name]
    verdict = detect(program)
    assert {key[:3] for key in verdict} == expected
    for schedule in races.SCHEDULES:
        assert races.difference(program, verdict, schedule) == ""


@pytest.mark.slow
def test_the_verdict_is_the_slow_detectors() -> None:
    report = races.run(float("inf"), 1, 200)
    assert report.programs == 200
    assert not report.differences, report.differences[0]
    assert not any(map(report.never, ("features", "hazards", "flights")))


@pytest.mark.slow_cases("...its own copy", "a phase that...", "a write with...")
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(600, id="what arrives at an mbarrier is not there before its phase is over"),
        pytest.param(61304436, id="a write with no fence, racing with a copy that came before"),
        pytest.param(61455039, id="a phase that some lanes' copies arrive in, others' do not"),
        pytest.param(80300538, id="of many writes in no order all are asked for a fence"),
        pytest.param(80151783, id="a lane before or behind another's wait for its own copy"),
        pytest.param(72303723, id="who knows of what is sent, before or behind another's wait"),
    ],
)
def test_a_draw_that_finds_what_two_hundred_do_not(seed: int) -> None:
    assert not races.run(float("inf"), seed, 1).differences
