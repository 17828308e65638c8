"""Programs with asynchronous copies judged by hand: what every schedule has to say."""

import pytest

from tests.fuzz import flights, races
from tests.fuzz.flight_program import Arrive, Await, Bulk, Copy, ProxyFence, Queue, Step
from tests.fuzz.race_program import Access, BlockBarrier, Guard, NamedBarrier
from tests.fuzz.test_races import ALL, only, word

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
    "a word that lanes write, each with a copy of its own on top of it": (
        (
            word("store", FIRST_WARP), Copy(4, 0, 0, 0, ALL), Queue("all", 0, ALL),
            BlockBarrier(), OUT,
        ),
        {("shared", "waw", "error"), ("shared", "waw", "warning")},
    ),
    "lanes that read before another one's copy, or behind its begin": (
        (*IN_BULK, Await(0, Guard(0, 64, 2), 0), NEXT, Copy(4, 0, 1, 0, only(33))),
        {("shared", "war", "error"), ("shared", "war", "warning")},
    ),
    "a lane that reads before another one's copy begins, or behind that, with a third one's wait": (
        (
            *IN_BULK, Await(0, Guard(0, 64, 2), 0), Copy(4, 0, 1, 0, only(34)),
            Queue("all", 0, ONE), Access("shared", "load", 4, flip=1, guard=only(35)),
        ),
        {("shared", "raw", "error")},
    ),
    "a lane that reads before another one's wait in the text, and behind it in some runs": (
        (
            *IN_BULK, Copy(4, 0, 1, 0, only(34)), Queue("all", 0, ONE),
            Await(0, Guard(0, 64, 2, 1), 0), Access("shared", "load", 4, flip=1, guard=only(35)),
            Queue("all", 0, only(34)),
        ),
        {("shared", "raw", "error")},
    ),
    "a lane that reads before another one of its warp sees the phase, or behind that": (
        (
            *IN_BULK, Await(0, Guard(0, 64, 2), 0), Copy(4, 0, 1, 0, only(33)), ARRIVED,
            Await(1, only(42), 0), Access("shared", "load", 4, flip=2, guard=only(35)),
        ),
        set(),
    ),
    "a lane that stores before another one sends, or behind that, with a third one's wait": (
        (
            *IN_BULK, Await(0, Guard(0, 64, 2), 0), Bulk(42, 160, 16),
            Queue("commit", 0, only(42), bulk=True), Queue("wait", 0, ONE, bulk=True),
            word("store", only(43), "global"),
        ),
        {("global", "waw", "error")},
    ),
    "a lane that stores before another one's wait in the text, and behind it in some runs": (
        (
            *IN_BULK, Bulk(42, 160, 16), Queue("commit", 0, only(42), bulk=True),
            Queue("wait", 0, ONE, bulk=True), Await(0, Guard(0, 64, 2, 1), 0),
            word("store", only(43), "global"), Queue("wait", 0, only(42), bulk=True),
        ),
        {("global", "waw", "error")},
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
    "what all read while its last sender may not have waited, behind one who has": (
        (
            Bulk(63, 112, 32, there=112), Queue("commit", 0, only(63), bulk=True), BlockBarrier(),
            Queue("wait", 0, only(63), bulk=True), Bulk(63, 32, 64, there=96),
            Access("global", "load", 4, start=1),
        ),
        {("global", "raw", "error"), ("global", "raw", "warning")},
    ),
    "who waits for a phase that was over before, and reads what comes in bulk": (
        (*IN_BULK, Await(1, Guard(1), 1), Access("shared", "load", 4, flip=32, guard=Guard(32))),
        {("shared", "raw", "error")},
    ),
    "lanes that arrive for others to wait, and write before their warp's last lane arrives": (
        (
            Arrive(1, ALL), Await(1, Guard(0, 64, 2), 0), Await(1, Guard(32, 64), 0),
            NamedBarrier((1,), (0,)), Access("shared", "load", 4, flip=32),
            word("store", Guard(0, 10)), Await(1, FIRST_WARP, 0),
        ),
        {("shared", "waw", "error"), ("shared", "war", "error")},
    ),
    "a wait for the phase before the one in which a copy arrives": (
        (
            Arrive(1, ONE, expect=64), Bulk(0, 0, 64, 1), Arrive(1, Guard(1)), Await(1, ALL, 0),
            Arrive(1, ONE, expect=64), Bulk(0, 64, 64, 1), BlockBarrier(), Await(1, Guard(1), 0),
            Access("shared", "load", 4, start=16, guard=Guard(1, 16)),
        ),
        {("shared", "raw", "error")},
    ),
    "what lanes wrote before they arrived, some behind others": (
        (
            Arrive(1, ALL), word("store", only(1)), Await(1, Guard(0, 32, 2), 0),
            Access("shared", "store", 4, guard=only(2)), NamedBarrier((1,), (0,)),
            Access("shared", "load", 4, guard=only(34), start=-32),
            word("load", only(33)),
        ),
        set(),
    ),
}  # fmt: skip


@pytest.mark.slow_cases(
    "...and both read", "...one who has", "...one's wait", "...or behind that", "...with a fence",
    "a lane that stores...", "a wait for...", "a word that...", "a write on...", "an arrival of...",
    "lanes that arrive...", "lanes that read...",
)  # fmt: skip
@pytest.mark.parametrize("name", FLIGHTS)
def test_asynchronous_copies_judged_by_hand(name: str) -> None:
    steps, expected = FLIGHTS[name]
    program = flights.Program(steps, 64, (1, 64))
    verdict = flights.detect(program)
    assert {key for keys in verdict.wanted for key in keys} == expected
    for schedule in races.SCHEDULES:
        assert flights.difference(program, verdict, schedule) == ""


def test_a_wait_for_too_few_is_that_of_the_copy_s_own_lane() -> None:
    """Odd lanes write over their copies; of all lanes, only even ones wait."""
    steps = (
        Copy(4, 1, 1, 0, ALL), BlockBarrier(), Queue("commit", 0, Guard(low=32), False, False),
        Queue("wait", 1, Guard(step=2), False, False),
        Access("shared", "store", 4, flip=32, stride=0, guard=Guard(step=2, rest=1)),
    )  # fmt: skip
    program = flights.Program(steps, 96, (), 1)
    assert flights.told(program, "lockstep") == flights.told(program, "warps")
