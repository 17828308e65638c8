"""Kernels of other kinds: transforms in place, products by warps. Layout and sentence by rules."""

import functools

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.tilescope.view.test_story import content
from tilescope.view import Story

FFT = """
extern "C" __global__ void fft(const float* re_in, const float* im_in,
                               float* re_out, float* im_out) {
    __shared__ float re[64], im[64];
    int t = threadIdx.x;
    for (int i = t; i < 64; i += 32) {
        int to = __brev(i) >> 26;
        re[to] = re_in[i];
        im[to] = im_in[i];
    }
    __syncthreads();
    for (int half = 1; half < 64; half *= 2) {
        int k = t % half;
        int a = (t / half) * 2 * half + k, b = a + half;
        float s, c;
        sincospif(-(float)k / half, &s, &c);
        float xr = re[b] * c - im[b] * s, xi = re[b] * s + im[b] * c;
        float ur = re[a], ui = im[a];
        __syncthreads();
        re[a] = ur + xr; im[a] = ui + xi;
        re[b] = ur - xr; im[b] = ui - xi;
        __syncthreads();
    }
    for (int i = t; i < 64; i += 32) {
        re_out[i] = re[i];
        im_out[i] = im[i];
    }
}
"""
IN_PLACE = """
extern "C" __global__ void shift(float* m) {
    __shared__ float row[32];
    int t = threadIdx.x;
    row[t] = m[t];
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        float next = row[(t + 3) % 32] + 1.0f;
        __syncthreads();
        row[t] = next;
        __syncthreads();
    }
    m[t] = row[t];
}
"""
BY_WARPS = """
extern "C" __global__ void gemv(const float* A, const float* x, float* y, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int j = lane; j < columns; j += 32)
        sum += A[row * columns + j] * x[j];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) y[row] = sum;
}
"""


@functools.cache
def story(source, name, grid, threads, *shapes):
    rng = np.random.default_rng(3)
    args = [rng.normal(size=s).astype(np.float32) if isinstance(s, tuple) else s for s in shapes]
    run = simulator.launch(Kernel.from_cuda(source, name), grid, threads, args, trace=True)
    return Story(run, name)


CASES = {
    "fft": ((FFT, "fft", 1, 32, (64,), (64,), (64,), (64,)), "rows",
            "6 rounds, each pairing elements twice as far apart, make every element of re_out "
            "from all 64 in shared memory."),
    "in place": ((IN_PLACE, "shift", 1, 32, (32,)), "rows",
                 "5 rounds between barriers change 32 values of m in place."),
    "gemv": ((BY_WARPS, "gemv", 4, 128, (16, 100), (100,), (16,), 16, 100), "plain",
             "Each of 4 blocks makes 4 elements of y from 400 elements of A and all of x."),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_layout_and_sentence(name):
    launch, layout, said = CASES[name]
    found = content(story(*launch))
    assert found["layout"] == layout
    assert "".join(text for text, _ in found["title"]) == said


@pytest.mark.slow
def test_the_page_opens_with_a_thread_that_takes_part(open_page):
    """Of a row of 100, the last beat of 32 products has 4 lanes."""
    shown = open_page(story(*CASES["gemv"][0]))
    assert "takes no part" not in shown.text(".code:not(.ptx)")
    assert shown.terms()
    arrays = shown.story.run.trace.maps
    block, thread = shown.state("block"), shown.state("thread")
    row, lane = block * 4 + thread // 32, thread % 32
    before = arrays[0].before.view(np.float32).reshape(16, 100), arrays[1].before.view(np.float32)
    first = float(before[0][row, lane] * before[1][lane])
    assert shown.terms()[0] == pytest.approx(first, abs=6e-4)


@pytest.mark.slow
def test_a_barrier_names_the_threads_that_it_lets_go(open_page):
    """Threads that have left the kernel do not meet the others."""
    source = """extern "C" __global__ void some(float* out) {
        __shared__ float tile[64];
        if (threadIdx.x >= 48) return;
        tile[threadIdx.x] = threadIdx.x;
        __syncthreads();
        out[threadIdx.x] = tile[47 - threadIdx.x];
    }"""
    shown = open_page(story(source, "some", 1, 64, (64,)))
    beats = shown.page.evaluate("tilescopePage.state.beats.map(beat => [beat.kind, beat.to])")
    shown.look(pos=next(to for kind, to in beats if kind == 2))
    assert "48 of 64 threads meet here" in shown.text("#say")
