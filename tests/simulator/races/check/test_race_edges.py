"""Where a verdict on races hangs on one condition: found by mutations of the race checks."""

import functools
import gc
import re
import sys
import weakref
from typing import Any

import pytest

import simulator
from kernels import Kernel
from simulator import Hazard
from simulator.compile import compiler
from simulator.compile.program import Program
from simulator.races.check import barrier_intervals
from simulator.races.report.pairs import MAX_PAIRS
from simulator.races.report.program_order import ProgramOrder
from tests.support.launches import SCHEDULES, compiled, ints


def races(source: str, grid: int, block: int, *sizes: int, schedule: Any) -> list[Hazard]:
    run = simulator.launch(compiled(source), grid, block, ints(*sizes), schedule=schedule)
    return [h for h in run.hazards if h.kind.endswith("-race")]


# -- a lock that only some let go with a fence ------------------------------------------------

LOCKED = (
    "(int* lock, int* d) {{ if ({0}) {{ while (atomicCAS(lock, 0, 1) != 0); __threadfence();"
    " {1}; if ({2}) __threadfence(); atomicExch(lock, 0); }} }}"
)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_doubtful_lock_orders_two_equal_writes(schedule: str | int) -> None:
    """What two others write elsewhere, with the same statement, is not in question."""
    store = "d[blockIdx.x / 2] = blockIdx.x / 2 ? 7 : 9"
    source = LOCKED.format("threadIdx.x == 0", store, "blockIdx.x != 3")
    (hazard,) = races(source, 4, 32, 1, 2, schedule=schedule)
    assert (hazard.kind, hazard.severity, hazard.count) == ("waw-race", "warning", 1)
    assert any("same value" in note for note in hazard.notes)


@pytest.mark.slow_cases("reverse")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("grid", "block", "who", "value", "distance"),
    [
        (1, 32, "threadIdx.x < 3", "threadIdx.x", "another lane of the warp"),
        (1, 96, "threadIdx.x % 32 == 5", "threadIdx.x / 32", "another warp"),
        (3, 32, "threadIdx.x == 5", "blockIdx.x", "another block"),
    ],
)
def test_whom_a_doubtful_lock_keeps_out(
    grid: int, block: int, who: str, value: str, distance: str, schedule: str | int
) -> None:
    """Of three threads the last to come lets go without a fence, or the first, or both."""
    for fenced in ("< 2", "> 0", "== 1"):
        source = LOCKED.format(who, f"d[0] = {value}", f"{value} {fenced}")
        (hazard,) = races(source, grid, block, 1, 1, schedule=schedule)
        assert (hazard.kind, hazard.severity) == ("waw-race", "error")
        assert hazard.count == (3 if fenced == "== 1" else 2)
        assert distance in hazard.message


# -- blocks that wait, and blocks that do not ------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("others", ["__syncthreads();", ""])
def test_a_flag_raised_after_a_barrier_of_its_block(others: str, schedule: str | int) -> None:
    """Whether the other block comes to a barrier as well makes no difference."""
    source = (
        "(volatile int* f, int* d, int* o) { int t = threadIdx.x; if (blockIdx.x == 0) {"
        " if (t == 5) { d[0] = 1; FENCE } __syncthreads(); if (t == 40) f[0] = 1; }"
        " else { OTHERS if (t == 0) { while (f[0] == 0); __threadfence(); o[0] = d[0]; } } }"
    ).replace("OTHERS", others)
    fenced = source.replace("FENCE", "__threadfence();")
    assert races(fenced, 2, 64, 1, 1, 1, schedule=schedule) == []
    (hazard,) = races(source.replace("FENCE", ""), 2, 64, 1, 1, 1, schedule=schedule)
    assert (hazard.kind, hazard.severity, hazard.count) == ("raw-race", "error", 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("blocks", [1, 2])
def test_what_is_written_too_late_is_a_race_whoever_has_left(
    blocks: int, schedule: str | int
) -> None:
    """One block has met as a whole, the other not at all: no part of a block has met."""
    source = (
        "(int* o) { __shared__ int s[64]; if (blockIdx.x) return; __syncthreads();"
        " o[threadIdx.x] = s[63 - threadIdx.x]; s[threadIdx.x] = threadIdx.x; }"
    )
    run = simulator.launch(compiled(source), blocks, 64, ints(64), schedule=schedule)
    assert {(h.kind, h.count) for h in run.hazards} == {("war-race", 32)}


# -- barriers of some warps ------------------------------------------------------------------

SHORT = {
    f"{how}({number})": f'asm volatile("bar.{how} {number}, 64;" ::: "memory")'
    for how in ("sync", "arrive")
    for number in (1, 2)
}


def warps(*bodies: str) -> str:
    """A kernel each of whose three warps does something; its first lane is ``first``."""
    text = "(int* o) { __shared__ int s[4]; bool first = threadIdx.x % 32 == 0; "
    for number, body in enumerate(bodies):
        text += f"if (threadIdx.x / 32 == {number}) {{ {body} }} "
    for short, long in SHORT.items():
        text = text.replace(short, long)
    return text + "}"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_who_has_not_arrived_is_not_waited_for(schedule: str | int) -> None:
    """The second warp waits for the third, not for the first."""
    source = (
        "(int* o) { __shared__ int s[4]; int t = threadIdx.x; if (t == 0) s[1] = t + 5;"
        " if (t == 64) s[2] = t; if (t >= 64) arrive(1); else if (t >= 32) sync(1);"
        " if (t == 32) o[0] = s[1] + s[2]; }"
    )
    for short, long in SHORT.items():
        source = source.replace(short, long)
    (hazard,) = races(source, 1, 96, 1, schedule=schedule)
    assert (hazard.kind, hazard.severity, hazard.count) == ("raw-race", "error", 1)
    assert {part.thread for part in hazard.involved} == {(0, 0, 0), (32, 0, 0)}


HEARD = {
    "before it arrived": ("if (first) s[0] = threadIdx.x; sync(1);", "sync(1); arrive(2);", False),
    "after it arrived": ("if (first) s[0] = threadIdx.x; sync(1);", "arrive(2); sync(1);", True),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("before", ["", "sync(2);"])
@pytest.mark.parametrize("when", HEARD)
def test_a_warp_hands_on_what_it_had_heard(when: str, before: str, schedule: str | int) -> None:
    """The first warp writes, the second meets it and tells the third, which reads."""
    writer, between, racy = HEARD[when]
    reader = "sync(2); if (first) o[0] = s[0];"
    found = races(warps(writer, before + between, before + reader), 1, 96, 1, schedule=schedule)
    assert [(h.kind, h.count) for h in found] == ([("raw-race", 1)] if racy else [])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_another_arrival_tells_nothing_of_the_first(schedule: str | int) -> None:
    """The second warp hears of the write after it arrived, before the fourth arrives."""
    source = (
        "(int* o) { __shared__ int s[4]; int t = threadIdx.x, w = t / 32; BAR(w > 0, sync 3, 96);"
        " if (t == 0) s[1] = t + 5; BAR(w == 1, arrive 2, 96); BAR(w < 2, sync 1, 64);"
        " BAR(w == 3, arrive 2, 96); BAR(w == 2, sync 2, 96); if (t == 64) o[0] = s[1]; }"
    )
    asm = r'if (\1) asm volatile("bar.\2, \3;" ::: "memory")'
    source = re.sub(r"BAR\((.*?), (.*?), (.*?)\)", asm, source)
    found = races(source, 1, 128, 1, schedule=schedule)
    assert [(h.kind, h.count) for h in found] == [("raw-race", 1)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_rounds_of_arrivals(schedule: str | int) -> None:
    """The first warp hands over numbers twice; it waits until the first have been read."""
    put = "s[threadIdx.x + 1] = threadIdx.x + 3; arrive(2);"
    get = "sync(2); o[threadIdx.x - 32] += s[threadIdx.x - 31];"
    source = warps(f"{put} sync(1); {put}", f"{get} sync(1); {get}").replace("s[4]", "s[40]")
    assert races(source, 1, 64, 32, schedule=schedule) == []


NAMED = (
    "(volatile int* f, int* d, int* o) { int t = threadIdx.x; if (blockIdx.x == 0) { WRITES }"
    " else { READS } }"
)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("writer", "lanes"), [(3, 32), (33, 32), (33, 16), (50, 16)])
def test_a_warp_barrier_tells_of_its_own_lanes_alone(
    writer: int, lanes: int, schedule: str | int
) -> None:
    """A lane of the second warp releases; other barriers of a part of the block are no matter."""
    source = NAMED.replace(
        "WRITES",
        f"if (t == {writer}) d[0] = 1; if (t >= 64) sync(1); else if (t < 32) sync(1);"
        f" if (t >= 32 && t < {32 + lanes}) __syncwarp({(1 << lanes) - 1}u);"
        " if (t == 40) { __threadfence(); f[0] = 1; }",
    ).replace("READS", "if (t == 0) { while (f[0] == 0); __threadfence(); o[0] = d[0]; }")
    for short, long in SHORT.items():
        source = source.replace(short, long)
    found = races(source, 2, 96, 1, 1, 1, schedule=schedule)
    assert [(h.kind, h.count) for h in found] == ([("raw-race", 1)] if writer != 33 else [])


@pytest.mark.parametrize("writer", [3, 70])
@pytest.mark.parametrize("block", [96, 1024])
def test_what_some_warps_had_seen_is_kept_for_every_fence(block: int, writer: int) -> None:
    """However many threads come to it: two warps have met, and the second releases."""
    source = (
        f"(volatile int* f, int* d, int* o) {{ int t = threadIdx.x, b = blockIdx.x;"
        f" if (b == 0 && t == {writer}) d[0] = 1; if (t < 64) sync(1); __threadfence();"
        " if (b == 0 && t == 40) f[0] = 1;"
        " if (b == 1 && t == 0) { while (f[0] == 0); __threadfence(); o[0] = d[0]; } }"
    ).replace("sync(1)", SHORT["sync(1)"])
    found = races(source, 2, block, 1, 1, 1, schedule="lockstep")
    assert [(h.kind, h.count) for h in found] == ([("raw-race", 1)] if writer == 70 else [])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("reader", [3, 33])
def test_what_one_lane_acquires_serves_its_warp_alone(reader: int, schedule: str | int) -> None:
    source = NAMED.replace(
        "WRITES", "if (t == 0) { d[0] = 1; __threadfence(); f[0] = 1; }"
    ).replace(
        "READS",
        "if (t == 0) { while (f[0] == 0); __threadfence(); } if (t >= 32) sync(1);"
        f" __syncwarp(); if (t == {reader}) o[0] = d[0];",
    )
    for short, long in SHORT.items():
        source = source.replace(short, long)
    found = races(source, 2, 96, 1, 1, 1, schedule=schedule)
    assert [(h.kind, h.count) for h in found] == ([("raw-race", 1)] if reader == 33 else [])


# -- work ------------------------------------------------------------------------------------


def calls(kernel: Kernel, args: list[Any], checks: str) -> int:
    """How many functions are called for a launch: a measure of work that no clock disturbs."""
    count = 0

    def note(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        assert simulator.launch(kernel, 1, 64, args, checks=checks).hazards == []
    finally:
        sys.setprofile(None)
    return count


def test_tiles_are_judged_once_not_in_every_round() -> None:
    source = (
        "(const int* a, int* o, int n) { __shared__ int s[64]; int t = threadIdx.x, sum = 0;"
        " for (int i = 0; i < n; ++i) { s[t] = a[t]; __syncthreads(); sum += s[63 - t] + s[5];"
        " __syncthreads(); } o[t] = sum; }"
    )
    for rounds in (5, 100):  # first, so that it is compiled
        args = [*ints(64, 64), rounds]
        work = {checks: calls(compiled(source), args, checks) for checks in ("none", "all")}
    assert work["all"] < 1.7 * work["none"]


@pytest.mark.parametrize("gap", [0, 1])
def test_an_interval_too_long_to_keep_is_looked_at_closely(
    gap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier_intervals, "_LONG", 1)
    source = "(int* o) { __shared__ int s[96]; int t = threadIdx.x; s[t] = t; s[t + GAP] += t; }"
    found = races(source.replace("GAP", str(gap)), 1, 64, 1, schedule="lockstep")
    assert bool(found) == bool(gap)


def test_arrays_that_are_only_read_need_no_second_run() -> None:
    names = [f"a{i}" for i in range(8)]
    parameters = ", ".join(f"const int* {name}" for name in names)
    terms = " + ".join(f"{name}[threadIdx.x]" for name in names)
    kernel = compiled(f"({parameters}, int* o) {{ o[threadIdx.x] = {terms}; }}")
    for _ in range(2):
        args = ints(*[64] * 9)
        work = {checks: calls(kernel, args, checks) for checks in ("none", "all")}
    assert work["all"] < 1.7 * work["none"]


@pytest.mark.slow
def test_threads_of_another_batch_do_the_same() -> None:
    """Blocks 0 and 64 are in two batches, and their instructions have the same addresses."""
    source = "(int* d) { d[blockIdx.x % 64 * 1024 + threadIdx.x] += blockIdx.x; }"
    found = races(source, 128, 1024, 65536, schedule="lockstep")
    assert sorted((h.kind, h.count, h.capped) for h in found) == [
        ("war-race", MAX_PAIRS, True),
        ("waw-race", MAX_PAIRS, True),
    ]


@pytest.mark.slow
def test_the_order_of_a_programs_accesses_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[ProgramOrder]] = []
    init = ProgramOrder.__init__

    def known(self: ProgramOrder, program: Program) -> None:
        init(self, program)
        made.append(weakref.ref(self))

    monkeypatch.setattr(ProgramOrder, "__init__", known)
    kept = functools.cache(compiler._compiled.__wrapped__)
    monkeypatch.setattr(compiler, "_compiled", kept)
    assert races("(int* d) { d[0] += threadIdx.x; }", 1, 64, 1, schedule="warps")
    kept.cache_clear()
    gc.collect()
    assert [order() for order in made] == [None]
