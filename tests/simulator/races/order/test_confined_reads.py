"""Reads of ``volatile`` shared memory that order nothing: the same reports, for less work."""

import sys
from types import FrameType

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.races.order import release_acquire
from simulator.rerun import other_orders

SOURCE = """
__device__ unsigned scanned(volatile unsigned* s, unsigned value) {
    int lane = threadIdx.x % 32, at = 2 * threadIdx.x - lane;
    s[at] = 0; at += 32; s[at] = value; MEET;
    for (int d = 1; d < 32; d *= 2) { unsigned x = s[at - d]; MEET; s[at] += x; MEET; }
    return s[at];
}
extern "C" __global__ void k(unsigned* out) {
    __shared__ unsigned p[128], q[64], flag[2];
    unsigned t = threadIdx.x;
    if (t < 2) flag[t] = 0;
    q[t] = t;
    __syncthreads();
    USE;
    __syncthreads();
    out[blockIdx.x * 64 + t] = q[t];
}
"""
SCAN = "unsigned r = scanned(p, t & 1); q[t / 32 * 32 + (t & 1 ? r - 1 : 16 + t % 32 - r)] = t"
MEET = "__syncwarp()"
VOLATILE = "((volatile unsigned*)flag)"
CASES = {
    "a scan names an address": (SCAN, ""),
    "with warp barriers": (SCAN, MEET),
    "with a fence": ("__threadfence_block(); " + SCAN, ""),
    "a part of the block meets": (SCAN.replace(";", "; __barrier_sync_count(1, 64);", 1), ""),
    "a branch on it": ("unsigned r = scanned(p, t & 1); if (r > 7) q[r % 32] = t", ""),
    "a flag": (
        f"if (t == 40) {{ q[3] = 9; {VOLATILE}[0] = 1; }} if ({VOLATILE}[0]) q[t] = q[3]", "",
    ),
    "a flag that is taken back": (
        f"if (t == 40) {VOLATILE}[0] = 1; if (t == 3 && {VOLATILE}[0]) flag[0] = 2", "",
    ),
    "a thread that leaves": (
        f"if (t == 40) {{ {VOLATILE}[0] = 1; return; }} unsigned r = {VOLATILE}[0]; "
        f"__syncthreads(); if (t == 5 + r) {VOLATILE}[0] = 2", "",
    ),
    "a lock": (
        "bool done = false; while (!done) if (atomicCAS(flag, 0, 1) == 0) { q[3] += t; "
        f"done = true; {VOLATILE}[0] = 0; }}", "",
    ),
}  # fmt: skip
CLEAN = ("with warp barriers", "a flag that is taken back")


def run(use: str, meet: str, build: str) -> simulator.Run:
    source = SOURCE.replace("USE", use).replace("MEET", meet)
    return simulator.launch(
        Kernel.from_cuda(source, "k", build=build), 2, 64, [np.zeros(128, "u4")]
    )


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("case", CASES)
def test_reports_are_those_with_all_reads_followed(
    case: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(*CASES[case], build)
    for module in (release_acquire, other_orders):
        monkeypatch.setattr(module, "confined_reads", lambda *_: frozenset())
    followed = run(*CASES[case], build)
    assert [h.to_dict() for h in found.hazards] == [h.to_dict() for h in followed.hazards]
    assert (not found.hazards) == (case in CLEAN)


def test_a_scan_that_names_an_address_costs_little_more_than_one_that_does_not() -> None:
    def calls(use: str) -> int:
        number = 0

        def count(frame: FrameType, event: str, _: object) -> None:
            nonlocal number
            number += event == "call" and "races" in frame.f_code.co_filename

        sys.setprofile(count)
        try:
            run(use, "", "device")
        finally:
            sys.setprofile(None)
        return number

    assert calls(SCAN) < 2 * calls("q[t] = scanned(p, t & 1)")
