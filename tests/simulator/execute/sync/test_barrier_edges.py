"""Barriers at the edges: arrivals of several warps, guards, exited threads, lanes apart."""

import numpy as np
import pytest

import simulator
from tests.oracles import interpreter
from tests.support.launches import SCHEDULES, entry

HEAD = """\
.shared .align 4 .u32 s[96];
ld.param.u64 %d0, [out]; ld.param.u32 %r1, [n];
mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
setp.lt.u32 %p, %r0, %r1; shr.u32 %r2, %r0, 5;
setp.eq.u32 %w0, %r2, 0; setp.eq.u32 %w1, %r2, 1; setp.eq.u32 %w2, %r2, 2;
"""


def launched(
    body: str, threads: int, n: int = 0, schedule: str | int = "lockstep", blocks: int = 1
) -> tuple[list[int], simulator.Run]:
    out = np.zeros(threads, np.uint32)
    run = simulator.launch(entry(HEAD + body), blocks, threads, [out, n], schedule=schedule)
    return out.tolist(), run


def kinds(run: simulator.Run) -> list[str]:
    return [hazard.kind for hazard in run.hazards]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("first", ["bar.arrive 1, 64;", "barrier.arrive 1, 64;"])
def test_who_passes_a_guarded_arrival_goes_on_once(first: str, schedule: str | int) -> None:
    add = "red.global.add.u32 [%d0], 1;"
    out, run = launched(f"@%w0 {first}\n{add}\n@%w1 bar.sync 1, 64;\n{add}", 64, 0, schedule)
    assert kinds(run) == []
    assert out[0] == run.counters.global_atomic.accesses == 2 * 64


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warps_that_arrive_one_after_the_other(schedule: str | int) -> None:
    """Two warps produce, and arrive at two places; the third waits for both, and reads."""
    body = """
mov.u64 %d3, s; add.u64 %d4, %d3, %d1; add.u32 %r3, %r0, 100;
@%w0 bra A; @%w1 bra B;
bar.sync 1, 96;
ld.shared.u32 %r4, [%d4+-256]; ld.shared.u32 %r5, [%d4+-128];
add.u32 %r4, %r4, %r5; st.global.u32 [%d2], %r4; bra E;
A: st.shared.u32 [%d4], %r3; bar.arrive 1, 96; bra E;
B: st.shared.u32 [%d4], %r3; bar.arrive 1, 96;
E: bar.sync 2;
"""
    out, run = launched(body, 96, schedule=schedule)
    assert kinds(run) == []
    assert out[64:] == [100 + t + 132 + t for t in range(32)]


@pytest.mark.slow_cases("1", "reverse")
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warp_has_arrived_when_the_last_of_its_lanes_has(schedule: str | int) -> None:
    """Odd lanes leave a loop early, write and arrive; even ones write much later."""
    body = """
.reg .b32 %round, %turn; .reg .pred %left;
mov.u64 %d3, s; add.u64 %d4, %d3, %d1; and.b32 %r3, %r0, 1; setp.eq.u32 %p, %r3, 1;
mov.u32 %round, 0;
B0: mov.u32 %turn, 0;
B1: setp.ge.u32 %left, %turn, 40; @%left bra E1; @%p bra E1;
red.global.add.u32 [%d0], 0; add.u32 %turn, %turn, 1; bra B1;
E1: add.u32 %round, %round, 1; setp.lt.u32 %left, %round, 3; @%left bra B0;
@%w0 st.shared.u32 [%d4], %r0; @%w0 bra A;
bar.sync 1, 64; ld.shared.u32 %r4, [%d4+-128]; st.global.u32 [%d2], %r4; bra E;
A: bar.arrive 1, 64;
E: bar.sync 2;
"""
    out, run = launched(body, 64, schedule=schedule)
    assert kinds(run) == []
    assert out[32:] == list(range(32))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("@%w0 bar.arrive 1, 64;\n@%w0 bar.sync 1, 64;", []),
        ("@%w0 bar.arrive 1, 96;\n@%w0 bar.arrive 1, 96;\n@%w1 bar.sync 1, 96;", []),
        ("@%w0 bar.arrive 1, 96;\n@%w0 bar.sync 1, 96;", ["deadlock"]),
        ("@%w1 bra E;\n@%p bra A;\nbarrier.sync 1, 64;\nbra E;\nA: barrier.sync 1, 64;\nE:",
         ["deadlock"]),
    ],
)  # fmt: skip
def test_each_arrival_of_a_warp_counts(body: str, found: list[str], schedule: str | int) -> None:
    """As on an H200; its lanes that wait at two places are one warp."""
    told = kinds(launched(f"{body}\nbar.sync 2;", 64, 8, schedule)[1])
    assert sorted(set(told)) == found


@pytest.mark.parametrize("barrier", ["bar.sync 1;", "bar.sync 1, 64;"])
def test_arrivals_at_another_barrier_change_nothing(barrier: str) -> None:
    body = f"@%w0 bar.arrive 2, 64;\n{barrier}\n@%w1 bar.sync 2, 64;\n{barrier}"
    for schedule in SCHEDULES:
        _, run = launched(body, 64, schedule=schedule, blocks=3)
        assert kinds(run) == []
        assert run.counters.barriers == 3 * 5


@pytest.mark.parametrize(
    ("number", "right"), [(0, True), (15, True), (16, False), (-1, False), (1 << 31, False)]
)
def test_barriers_have_numbers_from_0_to_15(number: int, right: bool) -> None:
    _, run = launched("bar.sync %r1;", 32, number % (1 << 32))
    assert kinds(run) == ([] if right else ["barrier-divergence"])


@pytest.mark.parametrize("gone", [32, 40, 64])
@pytest.mark.parametrize(("operation", "result"), [("and", 7), ("or", 8), ("popc", 0)])
def test_a_reduction_is_over_the_threads_that_are_left(
    operation: str, result: int, gone: int
) -> None:
    """The predicate is true (``and``) or false in all that come; the others have left."""
    truth = "eq" if operation == "and" else "ne"
    body = f"@!%p ret;\nsetp.{truth}.u32 %q, %r0, %r0;\n" + (
        "bar.red.popc.u32 %r3, 0, %q;\n" if operation == "popc"
        else f"bar.red.{operation}.pred %q, 0, %q;\nselp.u32 %r3, 7, 8, %q;\n"
    ) + "st.global.u32 [%d2], %r3;"  # fmt: skip
    out, run = launched(body, 96, gone)
    assert out == [result] * gone + [0] * (96 - gone)
    assert run.counters.barriers == -(-gone // 32)


@pytest.mark.parametrize("first", ["bar.sync 1;", "barrier.sync 1;", "barrier.sync.aligned 1;"])
@pytest.mark.parametrize("second", ["bar.sync 1;", "barrier.sync 1;", "barrier.sync.aligned 1;"])
@pytest.mark.parametrize("n", [16, 32, 40])
def test_the_lanes_of_a_warp_come_to_an_aligned_barrier_at_one_place(
    first: str, second: str, n: int
) -> None:
    """One that is not aligned they may reach by different ways, and so may whole warps."""
    body = f"@%p bra A;\n{first}\nbra E;\nA: {second}\nE:"
    apart = n % 32 != 0 and not first == second == "barrier.sync 1;"
    for schedule in SCHEDULES:
        _, run = launched(body, 64, n, schedule)
        assert kinds(run) == ["barrier-divergence"] * apart


def test_a_warp_that_left_is_not_counted_at_a_barrier() -> None:
    out, run = launched("@!%p ret;\nbar.sync 0;\nbar.sync 0;\nst.global.u32 [%d2], 1;", 96, 64)
    assert out == [1] * 64 + [0] * 32
    assert run.counters.barriers == 4


def by_warp(events: str) -> tuple[str, int]:
    """Statements of what each warp does, and the threads: ``A64 S | S64`` is an arrival of the
    first warp at barrier 1 with a count, its wait without one, and a wait of the second; ``R``
    and ``P`` reduce, ``n`` before one means ``barrier``, ``z`` barrier 0, ``X`` is an exit."""
    warps = events.split("|")
    body = ["setp.lt.u32 %q, %r0, 2000;"]
    for warp, all_events in enumerate(warps):
        body.append(f"setp.ne.u32 %p3, %r2, {warp}; @%p3 bra W{warp};")
        for event in all_events.split():
            word = "barrier" if "n" in event else "bar"
            letter, count = event.strip("nz")[0], event.strip("nz")[1:]
            at = f"{0 if 'z' in event else 1}{', ' * bool(count)}{count}"
            body.append({
                "A": f"{word}.arrive {at};", "S": f"{word}.sync {at};", "X": "exit;",
                "R": f"{word}.red.popc.u32 %r3, {at}, %q;",
                "P": f"{word}.red.and.pred %q, {at}, %q;",
            }[letter])  # fmt: skip
        body.append(f"W{warp}:")
    return "\n".join(body), 32 * len(warps)


ENDS = """A64|S64  A64|A64|A64  A64|X  A128 A128 A128|S128  A64 A64 A64|S64  S64 S|S64 S  A64|S64|X
S64|S64|S64|S64  A64 S64|A64 S64  A32|  S A64|S S64  R64|R64
nA64|S64  A64|nS64  A96|S96|A96  S R|S R  zA64|zS64"""
HANGS = """A64 A64|S64 S64  A64 A64|S64  A64|A64|S64  A128 A128|S128  A64|S64|S64  A64 S64|S64 S64
A64 S64|S64 A64  A64 S64|S64  S64|  A96|S96|"""
STOPS = """A64|S  A96|S|S  nA64|nS  zA64|zS  A64|R  A64|R64  R64|A64  S|S64  S64|S  R|S  S64|R64
A64|S96|S96  A64|A96|S96  S64|S96|S96  A64|S|X  A96|S96|S  A64|S|S64  A64 S|S64 S  S A64|S64 S
R|R64  P64|R64  P|R  S|nS64  A64 R S64|S64 R S64"""
CHANCE = ["S64|S64|S64|S64"]
"""Of those that end: who meets whom is said by nobody."""


@pytest.mark.slow_cases("A64 A64 A64|S64", "A64|A64|A64", "R64|A64")
@pytest.mark.parametrize(
    ("events", "found"),
    [(events, found) for table, found in ((ENDS, ""), (HANGS, "deadlock"), (STOPS, "ways"))
     for line in table.splitlines() for events in line.split("  ")],
)  # fmt: skip
def test_who_comes_how_to_a_barrier(events: str, found: str) -> None:
    """As an H200 does it if those that wait come late: it hangs, or stops with error 715.

    The interpreter says the same.
    """
    body, threads = by_warp(events)
    for schedule in SCHEDULES:
        _, run = launched(body, threads, schedule=schedule)
        told = {(h.kind, h.case) for h in run.hazards if h.case != "return"}
        if events in CHANCE:
            assert told == {("barrier-divergence", "chance")}, schedule
            continue
        if found == "ways":
            assert told == {("barrier-divergence", "ways")}, schedule
            assert len(run.hazards[0].involved) > 1
        else:
            assert {kind for kind, _ in told} == ({found} if found else set()), schedule
    kernel, arrays = entry(HEAD + body), [bytearray(4 * threads), bytes(4)]
    if found:
        with pytest.raises(interpreter.Deadlock):
            interpreter.run(kernel.ptx, "k", (1,), (threads,), arrays)
    else:
        interpreter.run(kernel.ptx, "k", (1,), (threads,), arrays)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_block_keeps_its_arrivals_while_another_uses_its_own(schedule: str | int) -> None:
    body = """
mov.u32 %r3, %ctaid.x; setp.eq.u32 %q, %r3, 1;
@%w0 bar.arrive 1, 64;
@%q bar.sync 3;
@%w1 bar.sync 1, 64;
bar.sync 2;
"""
    assert kinds(launched(body, 64, schedule=schedule, blocks=3)[1]) == []


def test_blocks_differ_in_who_has_arrived() -> None:
    """In even blocks a warp arrives ahead, in the odd ones it comes and waits."""
    body = """
mov.u32 %r3, %ctaid.x; and.b32 %r3, %r3, 1; setp.eq.u32 %q, %r3, 0; and.pred %q, %q, %w0;
@%q bra A;
bar.sync 1, 64; bra E;
A: bar.arrive 1, 64;
E: bar.sync 2;
red.global.add.u32 [%d0], 1;
"""
    results = []
    for schedule in SCHEDULES:
        out, run = launched(body, 64, schedule=schedule, blocks=4)
        results.append((out[0], kinds(run), run.counters.barriers))
    assert results == [(256, [], 4 * 2 + 2 * 1 + 2 * 2)] * len(SCHEDULES)


@pytest.mark.parametrize("count", ["%r1", "%r3"])
@pytest.mark.parametrize("word", ["sync", "arrive"])
def test_a_count_that_no_block_has(word: str, count: str) -> None:
    """One number for all, and one a thread: neither a hang nor a traceback."""
    body = f"selp.u32 %r3, %r1, 64, %w0;\nbarrier.{word} 1, {count};"
    _, run = launched(body, 64, 0xFFFFFFFF)
    assert all(str(hazard) for hazard in run.hazards)
    assert ("deadlock" in kinds(run)) == (word == "sync" and count == "%r1")
    assert "a barrier for 4,294,967,295 threads" in "".join(map(str, run.hazards))


AGAIN = "add.u32 %r4, %r4, 1; setp.lt.u32 %q, %r4, 3; @%q bra TOP;"


@pytest.mark.parametrize(
    ("count", "kept", "last"), [("", 64, ""), (", 96", 96, ""), ("", 64, AGAIN)]
)
def test_who_is_kept_from_a_barrier_that_waits_for_ever(count: str, kept: int, last: str) -> None:
    """Nobody who has left, unless so many are waited for; and nobody of another block."""
    body = (
        "mov.u32 %r3, %ctaid.x; setp.ne.u32 %q, %r3, 0; mov.u32 %r4, 0;\n"
        "@!%p ret; @%q ret; TOP: @%w0 bra A;\n"
        f"bar.sync 1{count}; bra E; A: bar.sync 2; E: {last}"
    )
    (hazard,) = launched(body, 96, 64, blocks=2)[1].hazards
    assert (hazard.kind, hazard.count) == ("deadlock", kept)
    assert f"keeps threads 0..{kept - 1} of block (0,0,0) from it" in hazard.notes[0]


def test_blocks_whose_threads_come_on_the_same_round_are_not_counted() -> None:
    """In the first of three blocks a warp leaves out the first of two barriers, and goes on."""
    body = """
mov.u32 %r3, %ctaid.x; setp.eq.u32 %q, %r3, 0; and.pred %q, %q, %w0;
mov.u32 %r4, 0; selp.u32 %r6, 3, 2, %q;
LOOP: add.u32 %r4, %r4, 1; setp.eq.and.u32 %p, %r4, 1, %q; @%p bra SKIP; bar.sync 0;
SKIP: setp.lt.u32 %p, %r4, %r6; @%p bra LOOP;
"""
    (hazard,) = launched(body, 64, blocks=3)[1].hazards
    assert (hazard.kind, hazard.count) == ("barrier-divergence", 2 * 64)
