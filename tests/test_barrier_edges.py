"""Barriers at the edges: arrivals of several warps, guards, exited threads, lanes apart."""

import numpy as np
import pytest
from launches import SCHEDULES, entry

import simulator

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
@pytest.mark.parametrize("count", ["", ", 96"])
def test_warps_that_arrive_one_after_the_other(count: str, schedule: str | int) -> None:
    """Two warps produce, and arrive at two places; the third waits for both, and reads."""
    body = f"""
mov.u64 %d3, s; add.u64 %d4, %d3, %d1; add.u32 %r3, %r0, 100;
@%w0 bra A; @%w1 bra B;
bar.sync 1{count};
ld.shared.u32 %r4, [%d4+-256]; ld.shared.u32 %r5, [%d4+-128];
add.u32 %r4, %r4, %r5; st.global.u32 [%d2], %r4; bra E;
A: st.shared.u32 [%d4], %r3; bar.arrive 1, 96; bra E;
B: st.shared.u32 [%d4], %r3; bar.arrive 1, 96;
E: bar.sync 2;
"""
    out, run = launched(body, 96, schedule=schedule)
    assert kinds(run) == []
    assert out[64:] == [100 + t + 132 + t for t in range(32)]


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
@pytest.mark.parametrize("count", ["", ", 64"])
def test_four_arrivals_of_two_warps_are_two_full_times(count: str, schedule: str | int) -> None:
    """An arrival and a wait of one, two waits of the other: nobody is left, in any order."""
    body = f"""
@%w0 bra A;
bar.sync 1{count};
bar.sync 1{count};
bra E;
A: bar.arrive 1, 64;
bar.sync 1{count};
E: bar.sync 2;
"""
    assert kinds(launched(body, 64, schedule=schedule)[1]) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("count", ["", ", 64"])
@pytest.mark.parametrize("then", ["bar.sync 2;", "@%w0 bra A;\nbar.sync 2;\nA: bar.sync 2;"])
def test_three_arrivals_of_two_warps_leave_one_waiting(
    then: str, count: str, schedule: str | int
) -> None:
    """32 + 64 threads come to a barrier of 64: the last 32 wait for as many, which never come."""
    _, run = launched(f"@%w0 bar.arrive 1, 64;\nbar.sync 1{count};\n{then}", 64, schedule=schedule)
    assert kinds(run) == ["deadlock"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("@%w0 bar.arrive 1, 64;\n@%w0 bar.sync 1, 64;", []),
        ("@%w0 bar.arrive 1, 96;\n@%w0 bar.arrive 1, 96;\n@%w1 bar.sync 1, 96;", []),
        ("@%w0 bar.arrive 1, 96;\n@%w0 bar.sync 1, 96;", ["deadlock"]),
        ("@%w1 bra E;\n@%p bra A;\nbarrier.sync 1, 64;\nbra E;\nA: barrier.sync 1, 64;\nE:",
         ["deadlock"]),
        ("@%w0 bra A; bar.sync 1; bra E; A: bar.sync 1, 64; E:", ["deadlock"]),
    ],
)  # fmt: skip
def test_each_arrival_of_a_warp_counts(body: str, found: list[str], schedule: str | int) -> None:
    """As on an H200; its lanes that wait at two places are one warp. The last one is refused
    there as an illegal instruction: a barrier has a count for all, or for none."""
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


RIGHT = {
    "arrives_twice": "@%w0 bra A; S; S; bra E; A: bar.arrive 1, 64; bar.arrive 1, 64; E:",
    "all_arrive": "bar.arrive 1, 64; S;",
    "all_arrive_twice": "bar.arrive 1, 64; bar.arrive 1, 64; S; S;",
    "in_turns": "@%w0 bra A; S; bar.arrive 1, 64; bra E; A: bar.arrive 1, 64; S; E:",
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sync", ["bar.sync 1", "bar.sync 1, 64"])
@pytest.mark.parametrize("name", RIGHT)
def test_each_time_64_threads_have_come(name: str, sync: str, schedule: str | int) -> None:
    body = f"{RIGHT[name].replace('S;', sync + ';')}\nbar.sync 2;"
    assert kinds(launched(body, 64, schedule=schedule)[1]) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_block_keeps_its_arrivals_while_another_uses_its_own(schedule: str | int) -> None:
    body = """
mov.u32 %r3, %ctaid.x; setp.eq.u32 %q, %r3, 1;
@%w0 bar.arrive 1, 64;
@%q bar.sync 3;
@%w1 bar.sync 1;
bar.sync 2;
"""
    assert kinds(launched(body, 64, schedule=schedule, blocks=3)[1]) == []


def test_blocks_differ_in_who_has_arrived() -> None:
    """In even blocks a warp arrives ahead, in the odd ones it comes and waits."""
    body = """
mov.u32 %r3, %ctaid.x; and.b32 %r3, %r3, 1; setp.eq.u32 %q, %r3, 0; and.pred %q, %q, %w0;
@%q bra A;
bar.sync 1; bra E;
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
    assert ("deadlock" in kinds(run)) == (word == "sync")
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
