"""Programs whose races are known: one verdict under every schedule, in both builds.

The sources of the table's first part stand in ``tests/defects``; what makes each racy, or
not, is said by its name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from simulator import Hazard
from simulator.races.report.pairs import MAX_PAIRS
from tests.support.launches import BUILDS, ONE_FIRST, SCHEDULES, compiled, ints
from tests.support.paths import DEFECTS
from tests.support.race_programs import CASES


def races(
    source: str, entry: str, build: str, grid: int, block: int, args: Sequence[Any], schedule: Any
) -> list[Hazard]:
    kernel = compiled(DEFECTS / source if source.endswith(".cu") else source, entry, build)
    run = simulator.launch(kernel, grid, block, args, schedule=schedule, step_limit=200_000)
    return [h for h in run.hazards if h.kind.endswith("-race")]


# -- kind, severity, lines, pairs and locations -------------------------------------------

Found = tuple[str, str, tuple[int, ...], int, int]


@dataclass(frozen=True)
class Row:
    """A launch, and what is found: kind, severity, lines, pairs of threads, locations."""

    source: str
    entry: str
    grid: int
    block: int
    args: Callable[[], list[Any]]
    found: set[Found]
    note: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.entry}-{self.grid}x{self.block}"


def bins() -> list[Any]:
    return [(np.arange(32) % 4).astype(np.int32), *ints(4)]


GUESS = "../support/first_guess.cu"
TABLE = (
    Row(GUESS, "sum", 2, 64, lambda: [np.zeros(1, np.float32)],
        {("war", "warning", (3, 4), 4096, 1)}, "a compare-and-swap checks"),
    Row(GUESS, "most", 1, 64, lambda: ints(1), {("war", "warning", (8, 9), 1024, 1)}),
    Row(GUESS, "shared_sum", 1, 64, lambda: [np.zeros(1, np.float32)],
        {("war", "warning", (3, 4), 1024, 1)}, "a compare-and-swap checks"),
    Row(GUESS, "first", 2, 1, lambda: ints(1), {("war", "error", (15, 15), 1, 1)}),
    Row(GUESS, "elsewhere", 2, 1, lambda: ints(1, 1), {("war", "error", (17, 18), 1, 1)}),
    Row("check/pairs.cu", "two_threads", 1, 2, lambda: [np.zeros(1, np.int64)],
        {("waw", "error", (1, 1), 1, 1)}, "lanes of one instruction"),
    Row("check/pairs.cu", "sixty_four", 1, 64, lambda: ints(1),
        {("waw", "error", (2, 2), 1024, 1), ("waw", "error", (2, 2), 992, 1)}),
    Row("check/pairs.cu", "sixty_four", 2, 32, lambda: ints(1),
        {("waw", "error", (2, 2), 1024, 1), ("waw", "error", (2, 2), 992, 1)}),
    Row("check/one_warp_lost_update.cu", "count", 1, 32, bins,
        {("war", "warning", (1, 1), 112, 4), ("waw", "error", (1, 1), 112, 4)},
        "an update is lost"),
    Row("check/one_warp_lost_update.cu", "last", 1, 32, lambda: ints(1),
        {("waw", "error", (2, 2), 496, 1)}, "lanes of one instruction"),
    Row("check/schedule_value.cu", "k", 1, 64, lambda: ints(1),
        {("waw", "warning", (2, 2), 1024, 1), ("waw", "warning", (2, 2), 992, 1),
         ("war", "error", (4, 5), 1024, 1), ("war", "warning", (4, 5), 992, 1),
         ("waw", "error", (5, 5), 1024, 1), ("waw", "error", (5, 5), 992, 1)}),
    Row("order/scoped_atomic.cu", "k", 2, 1, lambda: ints(1),
        {("waw", "error", (2, 2), 1, 1)}, "block scope"),
    Row("order/scoped_atomic.cu", "add", 4, 32, lambda: ints(1),
        {("waw", "error", (3, 3), MAX_PAIRS, 1)}, "block scope"),
    Row("order/volatile_race.cu", "k", 4, 32, lambda: ints(1),
        {("waw", "warning", (2, 2), 1984, 1), ("waw", "warning", (2, 2), MAX_PAIRS, 1)}),
    Row("order/volatile_race.cu", "mp", 2, 1, lambda: ints(1, 1, 1),
        {("raw", "warning", (4, 4), 1, 1)}, "volatile neither"),
    Row("order/volatile_race.cu", "inc", 1, 128, lambda: ints(1),
        {("war", "warning", (6, 6), 1984, 1), ("war", "warning", (6, 6), MAX_PAIRS, 1),
         ("waw", "warning", (6, 6), 1984, 1), ("waw", "warning", (6, 6), MAX_PAIRS, 1)}),
    Row("order/volatile_race.cu", "tree", 1, 128, lambda: [np.zeros(1, np.float32)],
        {("raw", "error", (9, 10), 96, 96), ("raw", "warning", (9, 10), 31, 31)}),
    Row("order/stf.cu", "k", 2, 1, lambda: ints(1), {("waw", "error", (4, 5), 1, 1)}),
    Row("order/barred_false.cu", "k", 2, 64,
        lambda: [np.array([0, 70, 0, 3, 40, 0, 0, 1], np.int32), *ints(8), 8], set()),
    Row("random/race_memory.cu", "k", 2, 64, lambda: ints(1, 128),
        {("war", "error", (2, 2), 4096, 1), ("waw", "error", (2, 2), 4096, 1),
         ("war", "error", (2, 2), 2048, 1), ("waw", "error", (2, 2), 2048, 1),
         ("war", "warning", (2, 2), 1984, 1), ("waw", "error", (2, 2), 1984, 1)}),
)  # fmt: skip


@pytest.mark.slow_cases(
    "../support/first_guess.cu:most-1x64", "../support/first_guess.cu:shared_sum-1x64",
    "../support/first_guess.cu:sum-2x64", "order/volatile_race.cu:tree-1x128",
)  # fmt: skip
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_one_verdict_under_every_schedule(row: Row, build: str) -> None:
    for schedule in SCHEDULES:
        hazards = races(row.source, row.entry, build, row.grid, row.block, row.args(), schedule)
        found = {(h.kind[:3], h.severity, h.lines, h.count, h.locations) for h in hazards}
        expected = row.found
        if build == "source" and "scoped" in row.source:  # no lines in CUDA's own functions yet
            found = {(*f[:2], (0, 0), *f[3:]) for f in found}
            expected = {(*f[:2], (0, 0), *f[3:]) for f in expected}
        assert found == expected, schedule
        assert not row.note or any(row.note in n for h in hazards for n in h.notes), schedule


@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize(
    ("body", "lost"),
    [
        ("s[b[t] + 1] = s[b[t] + 1] + 1;", True),
        ("int i = b[t]; int old = s[i]; if (old < 9) s[i] = old + 1;", True),
        ("s[8 + b[t]] = s[b[t]] + t; s[b[t]] = t;", False),  # what was there is not read
        ("s[b[t]] = s[8] + 1; if (t == 40) s[8] = 0;", False),
        ("r[t] = s[b[t]]; s[b[t]] = r[63 - t];", False),  # another thread's
    ],
)
def test_an_update_is_lost_where_its_own_place_was_read(body: str, lost: bool, build: str) -> None:
    text = (
        "(int* b, int* o) { __shared__ int s[16], r[64]; int t = threadIdx.x; if (t < 16) s[t] = t;"
        f" __syncthreads(); {body} __syncthreads(); o[t] = s[t % 16]; }}"
    )
    bins = (np.arange(64) % 4).astype(np.int32)
    hazards = races(text, "k", build, 1, 64, [bins, *ints(64)], "lockstep")
    assert any("update is lost" in note for h in hazards for note in h.notes) == lost


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["lockstep", pytest.param("warps", marks=pytest.mark.slow)])
def test_everybody_adds_to_one_word(schedule: str | int) -> None:
    """65,536 threads: the pairs are far too many, and counting stops at each distance."""
    args = ints(1, 65536)
    hazards = races("random/race_memory.cu", "k", "device", 256, 256, args, schedule)
    found = sorted((h.kind, h.reach, h.severity, h.count, h.capped) for h in hazards)
    assert found == [
        ("war-race", "block", "error", MAX_PAIRS, True),
        ("war-race", "lane", "warning", MAX_PAIRS, True),
        ("war-race", "warp", "error", MAX_PAIRS, True),
        ("waw-race", "block", "error", MAX_PAIRS, True),
        ("waw-race", "lane", "error", MAX_PAIRS, True),
        ("waw-race", "warp", "error", MAX_PAIRS, True),
    ]


# -- racy or not -----------------------------------------------------------------------------


@pytest.mark.slow_cases(
    "...is let go", "a barrier of the grid with...", "a lock with fences",
    "a lock without fences-device", "a lock, a...-device", "acquire, no release",
    "lanes that fence, meet in...-device", "named barriers by...-device", "relaxed on both sides",
    "release and acquire...", "release, no acquire",
)  # fmt: skip
@pytest.mark.parametrize(
    ("build", "schedules"),
    [
        ("device", SCHEDULES),
        ("source", SCHEDULES[1:2]),
        pytest.param("source", SCHEDULES, marks=pytest.mark.slow),
    ],
    ids=["device", "source-one", "source"],
)
@pytest.mark.parametrize("name", CASES)
def test_programs_whose_truth_is_known(
    name: str, build: str, schedules: tuple[str | int, ...]
) -> None:
    source, grid, block, args, racy = CASES[name]
    verdicts = []
    for schedule in schedules:
        hazards = races(source, "k", build, grid, block, args(), schedule)
        verdicts.append({(h.kind, h.severity, h.lines, h.count) for h in hazards})
    assert all(_kinds(verdict) == _kinds(verdicts[0]) for verdict in verdicts), verdicts
    if not name.endswith("no fence of who comes last"):  # which pairs race depends on who does
        assert all(verdict == verdicts[0] for verdict in verdicts), verdicts
    assert bool(verdicts[0]) == racy, verdicts[0]


def _kinds(verdict: set[Any]) -> set[Any]:
    """The hazards of a verdict without how many pairs of threads race."""
    return {(kind, severity, lines) for kind, severity, lines, _ in verdict}


def test_an_atomic_that_changes_nothing_is_a_read() -> None:
    source = (
        "(int* c, int* o) { if (blockIdx.x) o[threadIdx.x] = *c;"
        " else o[threadIdx.x + 32] = atomicAdd(c, VALUE); }"
    )
    for value, severity in (("0", "warning"), ("1", "error")):
        for build in BUILDS:
            text = source.replace("VALUE", value)
            found = races(text, "k", build, 2, 32, ints(1, 64), "lockstep")
            assert {h.severity for h in found} == {severity}, build


@pytest.mark.parametrize("build", ONE_FIRST)
def test_a_volatile_flag_that_is_only_polled(build: str) -> None:
    """No hazard at all; in shared memory neither."""
    text = (
        "(volatile int* f, int* o) { if (blockIdx.x == 0) f[0] = 1;"
        " else { while (f[0] == 0); o[0] = 1; } }"
    )
    assert races(text, "k", build, 2, 1, ints(1, 1), "lockstep") == []
    text = (
        "(int* o) { __shared__ volatile int f; if (threadIdx.x == 0) f = 0; __syncthreads();"
        " if (threadIdx.x == 0) f = 1; if (threadIdx.x == 32) { while (f == 0); o[0] = 1; } }"
    )
    assert races(text, "k", build, 1, 64, ints(1), "lockstep") == []


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("threads", [32, 64])
@pytest.mark.parametrize("where", ["__shared__ volatile int s[65];", "volatile int* s = o + 64;"])
@pytest.mark.parametrize("what", ["o[t] = s[N - 1 - t];", "s[t + 1] = t + 70;"], ids=["raw", "waw"])
def test_lanes_that_share_volatile_data_are_told_of_their_barrier(
    what: str, where: str, threads: int, build: str
) -> None:
    text = f"(int* o) {{ {where} int t = threadIdx.x; s[t] = t; {what} }}"
    found = races(text.replace("N", str(threads)), "k", build, 1, threads, ints(130), "lockstep")
    assert found
    for hazard in found:
        lanes = "another lane" in hazard.message
        assert any("lanes of a warp need __syncwarp()" in n for n in hazard.notes) == lanes
        assert not (lanes and any("use atomics" in note for note in hazard.notes))


def hazards_of(text: str, schedule: str | int) -> set[tuple[str, int]]:
    run = simulator.launch(compiled(text, "k", "device"), 1, 64, ints(64), schedule=schedule)
    return {(h.kind, h.count) for h in run.hazards}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_written_too_late_is_a_race_and_what_never_is_not_initialised(
    schedule: str | int,
) -> None:
    text = (
        "(int* o) { __shared__ int s[64]; WRITE o[threadIdx.x] = s[63 - threadIdx.x];"
        " __syncthreads(); s[threadIdx.x] = 1; __syncthreads(); o[threadIdx.x] += s[threadIdx.x]; }"
    )
    late = text.replace("WRITE", "s[threadIdx.x] = 2;")
    assert hazards_of(late, schedule) == {("raw-race", 32)}
    assert hazards_of(text.replace("WRITE", ""), schedule) == {("uninitialised", 64)}
