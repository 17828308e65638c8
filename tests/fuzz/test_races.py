"""The net of races in the gate: programs judged by hand, and some hundred that reach all of it."""

import pytest

from . import flights, races
from .flight_program import Arrive, Await, Bulk, Copy, ProxyFence, Queue, Step
from .race_clocks import detect
from .race_program import Access, BlockBarrier, Flag, Guard, NamedBarrier, Program, WarpBarrier

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
        set(),
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


ONE = only(0)
FIRST_WARP = Guard(0, 32)
SECOND = Access("shared", "store", 4, guard=Guard(32, 64), start=-32)
OUT = Bulk(0, 0, 64)
BROUGHT = Copy(4, 0, 1, 0, ALL)
IN_BULK = (Arrive(0, ONE, expect=64), Bulk(0, 0, 64, 0))
ARRIVED = Arrive(1, ALL, copies=True)
NEIGHBOUR = Access("shared", "load", 4, flip=63)
NEXT = Access("shared", "load", 4, start=1)
FLIGHTS: dict[str, tuple[tuple[Step, ...], set[tuple[str, str, str]]]] = {
    "a write and a copy that reads, in no order": ((SECOND, OUT), {("shared", "raw", "error")}),
    "a copy that reads, and a write": ((OUT, SECOND), {("shared", "war", "error")}),
    "a fence between the proxies, and a barrier": (
        (SECOND, ProxyFence(ALL), BlockBarrier(), OUT), set(),
    ),
    "a barrier, and the reader's fence": ((SECOND, BlockBarrier(), ProxyFence(ONE), OUT), set()),
    "the reader's fence before it has seen the write": (
        (SECOND, ProxyFence(ONE), BlockBarrier(), OUT), {("shared", "raw", "error")},
    ),
    "the fence of a warp that has not seen the write": (
        (SECOND, ProxyFence(FIRST_WARP), BlockBarrier(), OUT), {("shared", "raw", "error")},
    ),
    "a wait and a barrier": (
        (BROUGHT, Queue("all", 0, ALL), BlockBarrier(), NEIGHBOUR), set(),
    ),
    "a barrier and a wait": (
        (BROUGHT, BlockBarrier(), Queue("all", 0, ALL), NEIGHBOUR), {("shared", "raw", "error")},
    ),
    "one warp waits for what comes in bulk, and both read": (
        (*IN_BULK, BlockBarrier(), Await(0, FIRST_WARP, 0), NEIGHBOUR),
        {("shared", "raw", "error"), ("shared", "raw", "warning")},
    ),
    "one warp waits for what comes in bulk, and tells the other": (
        (*IN_BULK, BlockBarrier(), Await(0, FIRST_WARP, 0), BlockBarrier(), NEIGHBOUR), set(),
    ),
    "a group too few waited for": (
        (BROUGHT, Queue("commit", 0, ALL), Queue("wait", 1, ALL), BlockBarrier(), NEIGHBOUR),
        {("shared", "raw", "error")},
    ),
    "a copy that was not committed": (
        (BROUGHT, Queue("wait", 0, ALL), BlockBarrier(), NEIGHBOUR), {("shared", "raw", "error")},
    ),
    "an arrival of copies, a barrier, and only then a wait": (
        (BROUGHT, ARRIVED, BlockBarrier(), Queue("all", 0, ALL), NEIGHBOUR),
        {("shared", "raw", "error")},
    ),
    "an arrival of copies, a barrier, and then one warp's wait": (
        (BROUGHT, ARRIVED, BlockBarrier(), Queue("all", 0, FIRST_WARP), NEIGHBOUR),
        {("shared", "raw", "error")},
    ),
    "a write with no fence, and one that may have come on top of it": (
        (SECOND, BlockBarrier(), OUT, SECOND),
        {("shared", "raw", "error"), ("shared", "war", "error")},
    ),
    "atomics of several threads, each with a fence": (
        (word("atomic", Guard(0, 8)), ProxyFence(ALL), BlockBarrier(), OUT), set(),
    ),
    "lanes that read before another one's copy, or behind its begin": (
        (*IN_BULK, Await(0, Guard(0, 64, 2), 0), NEXT, Copy(4, 0, 1, 0, only(33))),
        {("shared", "war", "error"), ("shared", "war", "warning")},
    ),
    "atomics of more threads than are followed one by one, half of them with a fence": (
        (word("atomic"), ProxyFence(FIRST_WARP), BlockBarrier(), OUT), {("shared", "raw", "error")},
    ),
    "atomics of that many threads, that all know of a later write with a fence": (
        (word("atomic"), BlockBarrier(), word("store", ONE), ProxyFence(ONE), OUT), set(),
    ),
    "a write while a copy is under way, sent out when both are done": (
        (
            Copy(4, 0, 1, 0, FIRST_WARP), Access("shared", "store", 4, guard=FIRST_WARP),
            Queue("all", 0, ALL), BlockBarrier(), OUT,
        ),
        {("shared", "waw", "error"), ("shared", "raw", "error")},
    ),
    "a write with a fence, and one with none that may have come on top of it": (
        (SECOND, ProxyFence(ALL), BlockBarrier(), OUT, SECOND), {("shared", "war", "error")},
    ),
    "a write on what a thread sends, before or behind what it sends next": (
        (
            Bulk(40, 0, 64), BlockBarrier(), Access("global", "store", 4, guard=Guard(0, 16)),
            Bulk(40, 64, 64),
        ),
        {("global", "waw", "error"), ("global", "waw", "warning")},
    ),
    "who waits for a phase that was over before, and reads what comes in bulk": (
        (*IN_BULK, Await(1, Guard(1), 1), Access("shared", "load", 4, flip=32, guard=Guard(32))),
        {("shared", "raw", "error")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLIGHTS)
def test_asynchronous_copies_judged_by_hand(name: str) -> None:
    steps, expected = FLIGHTS[name]
    program = flights.Program(steps, 64, (1, 64))
    verdict = flights.detect(program)
    assert {key for keys in verdict.wanted for key in keys} == expected
    for schedule in races.SCHEDULES:
        assert flights.difference(program, verdict, schedule) == ""


def test_the_verdict_is_the_slow_detectors() -> None:
    report = races.run(float("inf"), 1, 200)
    assert report.programs == 200
    assert not report.differences, report.differences[0]
    assert not any(map(report.never, ("features", "hazards", "flights")))


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
