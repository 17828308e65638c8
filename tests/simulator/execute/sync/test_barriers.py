"""Barriers: met by number and count in each block, and whoever does not come is named."""

import re
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.execute.sync.branch_history import BranchHistory
from tests.support.barrier_programs import HEAD, Programs
from tests.support.launches import BUILDS, SCHEDULES, compiled, drawn_later
from tests.support.paths import DEFECTS


def control(run: simulator.Run) -> list[simulator.Hazard]:
    return [h for h in run.hazards if not h.kind.endswith("-race")]


# -- the defects ------------------------------------------------------------------------


@pytest.mark.parametrize("build", BUILDS)
def test_each_block_has_barriers_of_its_own(build: str) -> None:
    source = (DEFECTS / "random" / "barrier_per_block.cu").read_text()
    for schedule in SCHEDULES:
        out = np.zeros(64 * 8, np.int32)
        run = simulator.launch(compiled(source, "k", build), 3, 64, [out], schedule=schedule)
        assert run.hazards == [], schedule
        assert out[:64].tolist() == [1] * 64
        assert sum(out.tolist()) == 64 + 4 * 2 * 64


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", BUILDS)
def test_reductions_in_loops_that_blocks_leave_at_different_times(build: str) -> None:
    source = (DEFECTS / "order" / "barred_false.cu").read_text()
    for schedule in SCHEDULES:
        n = np.array([0, 70, 0, 3, 40, 0, 0, 1], np.int32)
        out = np.full(8, -1, np.int32)
        kernel = compiled(source, "k", build)
        run = simulator.launch(kernel, 2, 64, [n, out, 8], schedule=schedule)
        assert run.hazards == [], schedule
        assert out.tolist() == n.tolist()


def test_arrivals_that_run_ahead() -> None:
    """A warp arrives in each round, and may be ahead of the one that waits, which then hangs."""
    found = []
    kernel = Kernel.from_ptx((DEFECTS / "random" / "divergence_crash.ptx").read_text(), "k")
    for schedule in (*SCHEDULES, 3):
        args = [np.zeros(64, np.int32) for _ in range(3)]
        run = simulator.launch(kernel, (2, 1), (8, 8), args, schedule=schedule)
        found.append([hazard.kind for hazard in run.hazards])
        assert run.counters.barriers or found[-1]
    assert found[:2] == [["deadlock"]] * 2
    assert all(kinds in (["deadlock"], []) for kinds in found)


SKIPPED = """\
warning: a barrier in divergent code: some threads skip it and leave the kernel
  waits   kernel.cu:6  __syncthreads();
          thread (0,0,0) of block (0,0,0)
  branch  kernel.cu:5  if (t < n) {
          thread (64,0,0)
  line 5 keeps threads 64..127 of block (0,0,0) from it
  move the barrier out of the if, line 5"""

RETURNED = """\
warning: a barrier after some threads of the block have exited
  waits   kernel.cu:7  __syncthreads();
          thread (0,0,0) of block (1,0,0)
  exited  kernel.cu:5  if (i >= n) return;
          thread (72,0,0)
  threads 72..127 of block (1,0,0) leave at line 5, before it
  return after the barrier, or put the work under an if instead: line 5"""


@pytest.mark.slow_cases("if (a[t] == i) continue;")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("rounds", ["4", "n"], ids=["unrolled", "loop"])
@pytest.mark.parametrize("way", ["if (a[t] == i) continue;", "if (a[t] == i) { continue; }"])
def test_one_continue_is_one_finding(way: str, rounds: str, build: str) -> None:
    """What comes behind it, or after the loop, follows from it."""
    source = """\
__global__ void k(const int* a, int* o, int n) {
    __shared__ int s[64];
    int t = threadIdx.x, v = 0;
    for (int i = 0; i < ROUNDS; ++i) {
        s[t] = t + i;
        WAY
        __syncthreads();
        v += s[t];
        __syncthreads();
    }
    o[t] = v;
}
"""
    kernel = compiled(source.replace("WAY", way).replace("ROUNDS", rounds), "k", build)
    for schedule in SCHEDULES:
        args = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32), 4]
        run = simulator.launch(kernel, 1, 64, args, schedule=schedule)
        (found,) = run.hazards
        assert found.message == "a barrier in divergent code, which all happen to reach"
        assert found.lines == (7, 6)
        assert found.notes[-1] == "put the work under an if instead of the continue, line 6"


def test_of_whom_nobody_knows_where_they_left_no_line_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BranchHistory, "diverging_branches", lambda *_: [])
    kernel = compiled((DEFECTS / "check" / "divbar4.cu").read_text(), "k", "device")
    args = [np.zeros(256, np.float32), np.zeros(256, np.float32), 200]
    (found,) = simulator.launch(kernel, 2, 128, args).hazards
    assert found.notes == ("threads 72..127 of block (1,0,0) have left the kernel without it",)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("file", "blocks", "arrays", "n", "text"),
    [("divbar3.cu", 1, 1, 64, SKIPPED), ("divbar4.cu", 2, 2, 200, RETURNED)],
)
def test_who_keeps_whom_from_a_barrier(
    file: str, blocks: int, arrays: int, n: int, text: str, build: str
) -> None:
    kernel = compiled((DEFECTS / "check" / file).read_text(), "k", build)
    for schedule in SCHEDULES:
        args: list[Any] = [np.zeros(256, np.float32) for _ in range(arrays)]
        run = simulator.launch(kernel, blocks, 128, [*args, n], schedule=schedule)
        assert [str(hazard) for hazard in run.hazards] == [text], schedule


# -- random programs that are right ------------------------------------------------------


@pytest.mark.slow_but("3")
@pytest.mark.parametrize("seed", [*range(4), *drawn_later(range(4, 12))])
def test_programs_whose_barriers_are_right(seed: int) -> None:
    programs = Programs(seed)
    source = programs.source()
    for build in BUILDS:
        for schedule in SCHEDULES:
            out = np.full(3 * 32 * programs.warps, -1, np.int32)
            args = [out, np.array([2, 0, 3], np.int32)]
            kernel = compiled(source, "k", build)
            run = simulator.launch(kernel, 3, 32 * programs.warps, args, schedule=schedule)
            assert control(run) == [], (seed, build, schedule, source)
            assert not out.any(), (seed, build, schedule, source)


# -- one fault in such a program ---------------------------------------------------------

FAULTS = {
    # Line (relative to the fault's first), kind, severity.
    "skip": (["if (t < 20 + b) {", "    __syncthreads();", "}"],
             [("barrier-divergence", "warning", {0, 1})]),
    "skip_in_else": (["if (t >= 33) {", "    ++step;", "} else", "    __syncthreads();"],
                     [("barrier-divergence", "warning", {0, 3})]),
    "return": (["if (t > 40)", "    return;", "__syncthreads();"],
               [("barrier-divergence", "warning", {0, 2})]),
    "return_in_loop": (["for (int i = 0; i < 3; ++i) {", "    if (t == 50 + i) return;",
                        "    __syncthreads();", "}"],
                       [("barrier-divergence", "warning", {1, 2})]),
    "rounds_of_its_own": (["#pragma unroll 1", "for (int i = 0; i < t / 32 + 1; ++i)",
                           "    __syncthreads();"],
                          [("barrier-divergence", "warning", {1, 2})]),
    "another_round": (["#pragma unroll 1", "for (int i = 0; i < 2; ++i)",
                       "    if (i == t % 2)", "        __syncthreads();"],
                      [("barrier-divergence", "warning", {2, 3})]),
    "elsewhere": (["if (t < 32)", "    __syncthreads();", "else", "    __syncthreads();"],
                  [("barrier-divergence", "error", {0, 1, 3})]),
    "two_of_them": (2 * ["if (t < 16 * rounds[0])", "    __syncthreads();",
                         "else", "    __syncthreads();"],
                    [("barrier-divergence", "error", {0, 1, 3}),
                     ("barrier-divergence", "error", {4, 5, 7})]),
    "then_a_barrier_apart": (["#pragma unroll 1", "for (int i = 0; i < 2; ++i)",
                              "    if (t < 64 && (t & 32))", "        __syncthreads();",
                              "__syncthreads();"],
                             [("barrier-divergence", "error", {2, 3, 4})]),
    "some_a_barrier_more": (["#pragma unroll 1", "for (int i = 0; i < t / 32 + 2; ++i)",
                             "    __syncthreads();", "__syncthreads();", "__syncthreads();"],
                            [("barrier-divergence", "error", {1, 2, 3})]),
    "too_many": (['asm volatile("bar.sync 3, 160;" ::: "memory");'],
                 [("deadlock", "error", {0})]),
    "too_few": (["if (t < 32)", '    asm volatile("bar.sync 3, 64;" ::: "memory");'],
                [("deadlock", "error", {0, 1})]),
    "crosswise": (["if (t < 32)", '    asm volatile("bar.sync 3;" ::: "memory");',
                   "else", '    asm volatile("bar.sync 4;" ::: "memory");'],
                  [("deadlock", "error", {0, 1, 3})]),
    "half_a_warp": (["if (t % 32 < 16)",
                     '    asm volatile("bar.sync 5, %0;" ::"r"(blockDim.x) : "memory");',
                     "__syncthreads();"],
                    [("barrier-divergence", "error", {0, 1})]),
    "count": (["int n = blockDim.x - 8;", 'asm volatile("bar.sync 6, %0;" ::"r"(n) : "memory");'],
              [("barrier-divergence", "error", {1})]),
    "number": (["int n = rounds[0] + 40;",
                'asm volatile("bar.sync %0, %1;" ::"r"(n), "r"(blockDim.x) : "memory");'],
               [("barrier-divergence", "error", {1})]),
}  # fmt: skip


def verdict(run: simulator.Run) -> list[str]:
    return [str(hazard) for hazard in control(run)]


@pytest.mark.slow_but("skip")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", [101, pytest.param(102, marks=pytest.mark.slow)])
def test_one_fault_has_one_verdict(fault: str, seed: int) -> None:
    """Kind, severity, lines, threads, every word: the same in every schedule."""
    programs = Programs(seed)
    programs.warps = 3
    lines, wanted = FAULTS[fault]
    for _ in range(2):
        programs.part("    ", 1)
    first = HEAD.count("\n") + len(programs.lines) + 1
    programs.lines += ["    " + line for line in lines]
    source = HEAD + "\n".join(programs.lines) + "\n    out[b * blockDim.x + t] = wrong;\n}\n"
    shown = []
    for build in BUILDS:
        found = []
        for schedule in SCHEDULES:
            args = [np.zeros(3 * 96, np.int32), np.array([2, 0, 3], np.int32)]
            kernel = compiled(source, "k", build)
            run = simulator.launch(kernel, 3, 96, args, schedule=schedule)
            found.append(verdict(run))
            kinds = [(h.kind, h.severity, {n - first for n in h.lines}) for h in control(run)]
            assert kinds == wanted, (build, schedule, source, verdict(run))
        assert all(f == found[0] for f in found)
        shown.append(found[0])
    without_threads = [re.sub(r"thread.*", "", text) for text in map("\n".join, shown)]
    assert without_threads[0] == without_threads[1]
    assert max(len(line) for text in shown[0] for line in text.splitlines()) <= 80
