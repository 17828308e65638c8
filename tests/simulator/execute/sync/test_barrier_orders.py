"""Barriers that some warps only arrive at, against every order in which warps can come to them."""

import random

import pytest

from tests.oracles import interpreter
from tests.simulator.execute.sync.test_barrier_edges import HEAD, by_warp, launched
from tests.support.launches import SCHEDULES, entry

State = tuple[tuple[int, ...], frozenset[int], tuple[str, str] | None, tuple[tuple[int, bool], ...]]
"""Each warp's next event, the warps that wait, and how and by whom the barrier is being filled."""


def outcomes(events: str) -> set[str]:
    """How a program may end: ``ok``, ``hang`` or ``ways``, whichever warp is slow.

    The rule is an H200's (``docs/measured.md``): a warp's coming counts at once; who comes in
    another way before the barrier is full stops the GPU.
    """
    warps = [warp.split() for warp in events.split("|")]
    found: set[str] = set()
    seen: set[State] = set()

    def filled(state: State) -> State:
        """The state after a barrier has let go."""
        places, waits, way, come = state
        living = sum(w in waits or places[w] < len(warps[w]) for w in range(len(warps)))
        if way is None or len(come) < (int(way[0]) // 32 if way[0] else living):
            return state
        return places, waits - {w for w, _ in come}, None, ()

    todo: list[State] = [((0,) * len(warps), frozenset(), None, ())]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        places, waits, way, come = state
        able = [w for w in range(len(warps)) if w not in waits and places[w] < len(warps[w])]
        if not able:
            after = filled(state)
            if after != state:
                todo.append(after)
            else:
                found.add("hang" if waits else "ok")
        for w in able:
            event = warps[w][places[w]]
            moved = (*places[:w], places[w] + 1, *places[w + 1 :])
            mine = event[1:], event[0] * (event[0] in "RP")
            if way not in (None, mine):
                found.add("ways")
                continue
            waiting = waits if event[0] == "A" else waits | {w}
            todo.append(filled((moved, waiting, mine, (*come, (w, event[0] != "A")))))
    return found


EVENTS = (
    "A64 S64",
    "A64 S",
    "A32 S64 A64",
    "A64 S64 S",
    "A64 S64 S96 A96",
    "S S64",
    "A64 S64 R64 A32",
    "R64 P64 A64",
)


@pytest.mark.parametrize("seed", range(16))
def test_what_is_told_can_happen(seed: int) -> None:
    """And what may fail in some order is told under every schedule, what cannot under none."""
    rng = random.Random(seed)
    for _ in range(3):
        choice = rng.choice(EVENTS).split()
        events = "|".join(
            " ".join(rng.choices(choice, k=rng.randrange(4))) for _ in range(rng.randrange(2, 4))
        )
        possible = outcomes(events)
        told_by = set()
        body, threads = by_warp(events)
        for schedule in SCHEDULES:
            _, run = launched(body, threads, schedule=schedule)
            wrong = {"ways" if h.case == "ways" else "hang" for h in run.hazards
                     if h.case == "ways" or h.kind == "deadlock"}  # fmt: skip
            assert (wrong or {"ok"}) <= possible, (events, schedule)
            assert wrong or possible == {"ok"}, (events, schedule)
            told_by.add((frozenset(wrong), *(h.count for h in run.hazards if h.kind == "deadlock")))
        assert len(told_by) == 1, events
        try:
            kernel = entry(HEAD + body)
            interpreter.run(kernel.ptx, "k", (1,), (threads,), [bytearray(4 * threads), bytes(4)])
            told = "ok"
        except interpreter.Deadlock as error:
            told = "ways" if "several ways" in str(error) else "hang"
        assert told in possible, events


FLAGS = """
.reg .b32 %f; .reg .pred %set; mov.u64 %d3, s; shl.b32 %r3, %r2, 2; cvt.u64.u32 %d4, %r3;
add.u64 %d4, %d3, %d4; sub.u64 %d5, %d3, %d4; add.u64 %d5, %d5, %d3;
st.shared.u32 [%d4], 0; bar.sync 2;
bar.arrive 1, 64;
st.volatile.shared.u32 [%d4], 1;
SPIN: {load} %f, [%d5+4]; setp.eq.u32 %set, %f, 0; @%set bra SPIN;
bar.sync 1;
"""


@pytest.mark.slow_cases("warps")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("load", "told"), [("ld.volatile.shared.u32", []), ("ld.shared.u32", [1])])
def test_what_flags_put_in_order_cannot_happen(
    load: str, told: list[int], schedule: str | int
) -> None:
    """A read that a compiler may leave out waits for nobody."""
    _, run = launched(FLAGS.format(load=load), 64, schedule=schedule)
    assert [1 for h in run.hazards if h.case == "ways"] == told


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_other_orders_are_told_for_each_block_and_line(schedule: str | int) -> None:
    """Blocks in which a warp does not arrive are right: there nothing can come too early."""
    body = """
mov.u32 %r3, %ctaid.x; setp.eq.u32 %p, %r3, 1; @%p bra LAST;
bar.arrive 1, 64;
LAST: bar.sync 1;
"""
    _, run = launched(body, 64, schedule=schedule, blocks=3)
    (hazard,) = run.hazards
    assert (hazard.kind, hazard.case, hazard.count) == ("barrier-divergence", "ways", 2 * 32)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("events", "held"),
    [
        ("S64|S64 A64|A64 S64", [14]),
        ("S64 S64|S64|S64", [14]),
        ("A64 S64|S64 A64", [18]),
        ("A64 A64 S64 S64|A64 A64 S64 S64", [16]),  # (an H200 whose waits came late ended)
        ("S64|S64 S64|S64", [17]),
        ("A64 S64|A64 S64", []),
        ("A64|S64 A64|S64 S64", [22]),
    ],
)
def test_who_may_be_held_for_ever_in_another_order(
    events: str, held: list[int], schedule: str | int
) -> None:
    body, threads = by_warp(events)
    _, run = launched(body, threads, schedule=schedule)
    told = [line.ptx_line for h in run.hazards for line in h.involved]
    assert [h.case for h in run.hazards] == ["orders"] * bool(held)
    assert told == held


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("events", "chance"),
    [
        ("S64|S64|S64|S64", True),
        ("S64 zS|S64 zS|zS S64|zS S64", False),
        ("S64|S64|S64|S64|S64|S64", True),
        ("S64 S64|S64 S64", False),
        ("A64|S64|A64|S64", False),
        ("S32|S32 S32|S32", False),
    ],
)
def test_who_meets_whom_is_left_to_chance(events: str, chance: bool, schedule: str | int) -> None:
    """More warps wait at a barrier than it counts, and none of them is known to come later."""
    body, threads = by_warp(events)
    _, run = launched(body, threads, schedule=schedule)
    assert [h.severity for h in run.hazards if h.case == "chance"] == ["error"] * chance


def test_what_no_order_ends_is_told_as_it_stands() -> None:
    """Three warps at one barrier of two: there is none after it that the others could wait for."""
    _, run = launched("bar.sync 1, 64;", 96)
    assert [h.case for h in run.hazards] == ["never"]
