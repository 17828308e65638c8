"""Unwritten local memory: copying it is no fault, depending on it is one."""

from __future__ import annotations

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.execute import batches

SOURCE = """\
struct Pair { int first, second; };
__device__ __noinline__ Pair passed_on(Pair p) { return p; }
__global__ void copied(const int* in, int* out) {
    Pair p;
    p.first = in[threadIdx.x];
    Pair q = passed_on(p);  // the second member travels, and nobody looks at it
    out[threadIdx.x] = q.first;
}
__global__ void used(const int* in, int* out) {
    Pair p;
    p.first = in[threadIdx.x];
    Pair q = passed_on(p);
    out[threadIdx.x] = q.first + q.second;
}
__global__ void branched(const int* in, int* out) {
    int x[4];
    x[in[threadIdx.x] % 4] = 1;
    if (x[(in[threadIdx.x] + 1) % 4] == 7) out[threadIdx.x] = 1;
}
struct Bits { unsigned low : 4, high : 28; };
__global__ void bit_fields(const int* in, int* out) {
    Bits bits;
    bits.low = in[threadIdx.x];
    bits.high = threadIdx.x;
    out[threadIdx.x] = bits.low + bits.high;
}
"""


def launch(entry: str, build: str, trace: bool = False) -> list[tuple[str, tuple[int, ...]]]:
    kernel = Kernel.from_cuda(SOURCE, entry, build=build)
    args = [np.arange(32, dtype=np.int32), np.zeros(32, np.int32)]
    run = simulator.launch(kernel, 1, 32, args, trace=trace)
    return [(h.kind, h.lines) for h in run.hazards]


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("entry", ["copied", "bit_fields"])
def test_what_changes_nothing_is_no_hazard(entry: str, build: str) -> None:
    assert launch(entry, build) == []
    assert launch(entry, build, trace=True) == []


@pytest.mark.parametrize(("entry", "line"), [("used", 12), ("branched", 18)])
def test_what_decides_or_comes_out_is_one(entry: str, line: int) -> None:
    """A value that is stored, and a condition, even one that no fill makes true."""
    found = launch(entry, "source")
    assert {kind for kind, _ in found} == {"uninitialised"}
    assert any(line in lines for _, lines in found)


def test_what_another_block_waits_for_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other content in local memory a block of the next batch waits for ever."""
    monkeypatch.setattr(batches, "LANES", 1)
    source = """
        extern "C" __global__ void k(volatile unsigned* flag, int n) {
            unsigned u[4];
            if (n > 100) u[n % 4] = 1;
            if (blockIdx.x == 0) *flag = u[n % 3];
            else while (*flag > 0x01000000u) ;
        }"""
    args = [np.zeros(1, np.uint32), 3]
    run = simulator.launch(Kernel.from_cuda(source, "k"), 2, 1, args)
    assert [h.kind for h in run.hazards] == ["uninitialised"]
