"""Kernels of other kinds: transforms in place, products by warps. Layout and sentence by rules."""

import functools

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.tilescope.view.test_story import blocks, content
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


COMPACT = """
extern "C" __global__ void keep(const float* in, float* out, float* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool positive = i < n && in[i] > 0.0f;
    unsigned mask = __ballot_sync(0xffffffffu, positive);
    int base = 0;
    if (lane == 0 && mask) base = atomicAdd(count, (float)__popc(mask));
    base = __shfl_sync(0xffffffffu, base, 0);
    if (positive) out[base + __popc(mask & ((1u << lane) - 1))] = in[i];
}
"""
NEIGHBOURS = """
extern "C" __global__ void smooth(const float* u, float* v, int nx, int ny) {
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, i = y * nx + x;
    float s = u[i];
    if (x > 0) s += u[i - 1];
    if (y + 1 < ny) s += u[i + nx];
    v[i] = s;
}
"""
BESIDE = """
extern "C" __global__ void paths(float* a_rather_long_distance, float* via_buffer,
                                 int n, int k) {
    int i = threadIdx.y * n + threadIdx.x;
    float through = a_rather_long_distance[i] * k;
    if (through < a_rather_long_distance[i]) {
        a_rather_long_distance[i] = through;
        via_buffer[i] = k;
    }
}
"""
ROWS_OF_TWO = """
extern "C" __global__ void cheapest(const float* wall, const float* first, float* out) {
    __shared__ float row[32];
    int t = threadIdx.x;
    row[t] = first[t];
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        float next = fminf(row[max(t - 1, 0)], row[t]) + wall[32 * i + t];
        __syncthreads();
        row[t] = next;
        __syncthreads();
    }
    out[t] = row[t];
}
"""
POINTS = """
extern "C" __global__ void pull(const float4* points, float3* forces, int n) {
    __shared__ float4 tile[64];
    int i = threadIdx.x;
    float4 me = points[i];
    float3 sum = make_float3(0, 0, 0);
    tile[i] = points[i];
    __syncthreads();
    for (int j = 0; j < 64; ++j) {
        sum.x += (tile[j].x - me.x) * tile[j].w;
        sum.y += (tile[j].y - me.y) * tile[j].w;
        sum.z += (tile[j].z - me.z) * tile[j].w;
    }
    forces[i] = sum;
}
"""


MOST_IDLE = """
__global__ void first(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] + 0.5f * in[n - 1 - i];
}
"""


@functools.cache
def story(source, name, grid, threads, *shapes):
    rng = np.random.default_rng(3)
    args = [rng.normal(size=s).astype(np.float32) if isinstance(s, tuple) else s for s in shapes]
    args = [np.zeros(1, np.float32) if isinstance(s, str) else s for s in args]
    run = simulator.launch(Kernel.from_cuda(source, name), grid, threads, args, trace=True)
    return Story(run, name)


CASES = {
    "fft": ((FFT, "fft", 1, 32, (64,), (64,), (64,), (64,)), "rows",
            "6 rounds, each pairing elements twice as far apart, make every element of re_out "
            "from all 64 in shared memory."),
    "in place": ((IN_PLACE, "shift", 1, 32, (32,)), "rows",
                 "4 rounds between barriers change 32 values of m in place."),
    "gemv": ((BY_WARPS, "gemv", 4, 128, (16, 100), (100,), (16,), 16, 100), "plain",
             "Each of 4 blocks makes 4 elements of y from 400 elements of A and all of x."),
    "compact": ((COMPACT, "keep", 4, 128, (500,), (500,), "counter", 500), "atomics",
                "512 threads in 4 blocks read in and write out, by 16 atomic operations on "
                "1 element of count."),
    "neighbours": ((NEIGHBOURS, "smooth", 4, (16, 4), (16, 16), (16, 16), 16, 16), "planes",
                   "A block makes 64 values of v from 188 loads of u: 2.9 for each value."),
    "rows of two": ((ROWS_OF_TWO, "cheapest", 1, 32, (4, 32), (32,), (32,)), "rows",
                    "4 rounds between barriers turn 160 values of wall and first into "
                    "32 values of out."),
    "beside": ((BESIDE, "paths", 1, (16, 16), (16, 16), (16, 16), 16, 3), "plain",
               "256 threads in 1 block change a_rather_long_distance and write via_buffer."),
    "most blocks idle": ((MOST_IDLE, "first", 16, 32, (64,), (64,), 64), "strips",
                         "Every value of out is made of 2 values of in."),
    "points": ((POINTS, "pull", 1, 64, (64, 4), (64, 3), 64), "planes",
               "A block loads 256 values of points in 64 loads and reads them 4,096 times "
               "for 192 values of forces."),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_layout_and_sentence(name):
    launch, layout, said = CASES[name]
    found = content(story(*launch))
    assert found["layout"] == layout
    assert "".join(text for text, _ in found["title"]) == said


@pytest.mark.parametrize("name", CASES)
def test_counts_of_all_blocks_are_the_counters(name):
    one = story(*CASES[name][0])
    counters = one.run.counters
    found = [beats for _, _, beats, _ in blocks(one)]
    assert len(found) == np.prod(one.run.grid)
    assert sum(beats.loads[-1] for beats in found) == counters.global_load.accesses
    assert sum(beats.reads[-1] for beats in found) == counters.shared_load.accesses
    moved = sum(phase[4] for block in content(one)["blocks"] for phase in block["phases"])
    traffic = counters.global_load, counters.global_store, counters.global_atomic
    assert moved == sum(part.sectors for part in traffic)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_blocks_write_is_what_the_run_wrote(open_page, name):
    shown = open_page(story(*CASES[name][0]))
    run = shown.story.run
    for number in range(int(np.prod(run.grid))):
        shown.look(block=number)
        shown.look(pos=shown.state("story.count"))
        for item in run.trace.maps.values():
            own = np.flatnonzero(item.owner // int(np.prod(run.block)) == number)
            found = shown.page.evaluate(
                """([place, size, all]) => {
                  const { state } = tilescopePage;
                  return all.map((i) => state.blockNow.writer(place, i * size, state.event).value);
                }""",
                [item.number, item.size, own.tolist()],
            )
            assert np.array_equal(np.array(found, item.dtype), item.after.view(item.dtype)[own])


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 360])
@pytest.mark.parametrize("name", CASES)
def test_names_of_arrays_do_not_overlap(open_page, name, width):
    shown = open_page(story(*CASES[name][0]), width=width)
    found = shown.page.locator(".lens .over text[data-name]").evaluate_all(
        "all => all.map(t => t.getBoundingClientRect())"
        ".map(b => [b.left, b.top, b.right, b.bottom])"
    )
    edge = shown.page.locator(".stage-lens").first.bounding_box()
    assert found or CASES[name][1] == "rows"
    for i, (left, top, right, bottom) in enumerate(found):
        assert right <= edge["x"] + edge["width"] + 1
        for x, y, to_x, to_y in found[:i]:
            assert right <= x or to_x <= left or bottom <= y + 3 or to_y <= top + 3


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
