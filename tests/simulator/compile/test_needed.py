"""Registers of lanes that wait elsewhere: kept if they are read again, else written over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulator
from simulator.compile.codegen.liveness import ALL
from simulator.compile.compiler import compile_ptx
from tests.support.launches import BUILDS, SCHEDULES, compiled, entry

LOOP = """(float *out, const float *in, int w, int h, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float s = -1;
  if (x < w && y < h) {
    s = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) s += in[y * n + i] + in[i * w + x];
  }
  if (x < w + 2 && y < h) out[y * (w + 2) + x] = s;
}"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("build", BUILDS)
def test_what_is_read_where_lanes_meet_again_is_kept(build: str, schedule: str | int) -> None:
    kernel, (w, h, n) = compiled(LOOP, build=build), (13, 11, 3)
    data = np.arange(64, dtype=np.float32)
    out = np.zeros((h, w + 2), np.float32)
    simulator.launch(kernel, (2, 2), (8, 8), [out, data, w, h, n], schedule=schedule)
    x, y = np.arange(w), np.arange(h)[:, None]
    expected = sum(data[y * n + i] + data[i * w + x] for i in range(n))
    np.testing.assert_array_equal(out[:, :w], expected)
    assert (out[:, w:] == -1).all()


SHUFFLE = """
mov.u32 %r0, %tid.x;
mov.u32 %r1, %r0;
mov.u32 %r5, 0;
setp.ge.u32 %p, %r0, 16;
@%p bra JOIN;
LOOP:
add.u32 %r1, %r1, 100;
shfl.sync.idx.b32 %r2, %r1, 20, 31, 0xffff;
add.u32 %r5, %r5, 1;
setp.lt.u32 %q, %r5, 3;
@%q bra LOOP;
mov.u32 %r0, %r2;
JOIN:
ld.param.u64 %d0, [out];
mov.u32 %r3, %tid.x;
mad.wide.u32 %d1, %r3, 4, %d0;
st.global.u32 [%d1], %r0;
"""


def test_what_lanes_may_be_asked_for_is_kept() -> None:
    """Lane 20 waits elsewhere, not named, and has what it had."""
    out = np.zeros(32, np.uint32)
    run = simulator.launch(entry(SHUFFLE), 1, 32, [out, 0])
    assert out.tolist() == [20] * 16 + list(range(16, 32))
    assert run.hazards


def test_nothing_is_known_of_calls() -> None:
    called = compiled("""
        __device__ __noinline__ int f(int i) { return i * i; }
        extern "C" __global__ void k(int *out) { out[threadIdx.x] = f(threadIdx.x); }""")
    assert compile_ptx(called.ptx, "k").needed.live_at({0}) is ALL
    plain = compiled(LOOP)
    assert compile_ptx(plain.ptx, "k").needed.live_at({0}) is not ALL


@pytest.mark.slow
@given(
    block=st.sampled_from([(16, 16), (32, 4), (8, 8), (24, 2)]), w=st.integers(1, 200),
    h=st.integers(1, 60), n=st.integers(1, 3), split=st.integers(0, 3),
)  # fmt: skip
def test_counters_of_ragged_shapes(
    block: tuple[int, int], w: int, h: int, n: int, split: int
) -> None:
    """Sectors and lanes of each request, counted one by one."""
    grid = -(-(w + split) // block[0]), -(-h // block[1])
    data, out = np.zeros(10_000, np.float32), np.zeros((h, w + 2), np.float32)
    run = simulator.launch(compiled(LOOP), grid, block, [out, data, w, h, n])
    x, y = (a.reshape(-1) for a in np.meshgrid(np.arange(block[0]), np.arange(block[1])))
    expected = np.zeros((2, 3), int)
    for by, bx in np.ndindex(grid[1], grid[0]):
        for warp in range(0, len(x), 32):
            at_x = x[warp : warp + 32] + bx * block[0]
            at_y = y[warp : warp + 32] + by * block[1]
            on = (at_x < w) & (at_y < h)
            loads = [a for i in range(n) for a in (at_y * n + i, i * w + at_x)]
            stored = (at_x < w + 2) & (at_y < h)
            for kind, lanes, accesses in (
                (0, on, loads), (1, stored, [at_y * (w + 2) + at_x]),
            ):  # fmt: skip
                for address in accesses if lanes.any() else ():
                    sectors = len(np.unique(address[lanes] // 8))
                    expected[kind] += 1, np.count_nonzero(lanes), sectors
    counters = run.counters
    found = [
        [t.requests, t.accesses, t.sectors] for t in (counters.global_load, counters.global_store)
    ]
    assert found == expected.tolist()
