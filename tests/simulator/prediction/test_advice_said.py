"""What advice says: its line, its figures and its promise are those of one and the same defect."""

import re
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from simulator import Prediction
from simulator.gpus.occupancy import max_shared, occupancy
from simulator.gpus.table import ARCHITECTURES
from simulator.prediction.advice.advice import Advice

SOURCE = """
#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" {
__global__ void own_places(int* out) {
    atomicMax(&out[I], 7);
}
__global__ void anywhere(const int* where, int* out) {
    atomicMax(&out[where[I]], 7);
}
__global__ void barriers(const float* in, float* out, int rounds) {
    float v = in[I];
    #pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        v = v * 1.5f + 1;
        __syncthreads();
    }
    out[I] = v;
}
__global__ void two_tables(const float* a, const float* b, float* out, int n) {
    float s = 0;
    for (int k = 0; k < n; k++)
        s += a[k] * threadIdx.x;
    for (int k = 0; k < 600; k++)
        s += b[(k & 255) * 8 + (threadIdx.x & 7)];
    out[I] = s;
}
__global__ void table_and_own(const float* table, const float* own, float* out) {
    float s = own[I];
    for (int k = 0; k < 64; k++)
        s += table[k * 1024 + threadIdx.x];
    out[I] = s;
}
__global__ void turned(const float* in, float* out) {
    extern __shared__ float s[];
    s[threadIdx.x] = in[I];
    __syncthreads();
    out[I] = s[255 - threadIdx.x];
}
__global__ void busy_word(const int* in, int* few, int* many) {
    int v = in[I];
    atomicMax(&many[I], v);
    atomicMax(&many[I + 1048576], v);
    atomicMax(&few[v & 3], v);
}
__global__ void busy_shared_word(int* out) {
    __shared__ int s[256];
    s[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 8; k++)
        atomicMax(&s[(threadIdx.x + k) & 255], k);
    for (int k = 0; k < 6; k++)
        atomicMax(&s[k], k + threadIdx.x);
    __syncthreads();
    out[I] = s[threadIdx.x];
}
__global__ void sum(const float* in, float* sum) {
    atomicAdd(sum, in[I]);
}
__global__ void apart(const float* a, const float* b, float* out) {
    out[I] = a[2 * I] + b[32 * I];
}
__global__ void inverted(const unsigned char* in, unsigned char* out, int pitch) {
    int x = blockIdx.x * 256 + threadIdx.x;
    if (x < pitch)
        out[blockIdx.y * pitch + x] = 255 - in[blockIdx.y * pitch + x];
}
}
"""
MANY = 1 << 20


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def predicted(entry: str, grid: int, block: int, *args: Any, **more: Any) -> Prediction:
    return simulator.predict(Kernel.from_cuda(SOURCE, entry), grid, block, args, **more)


def advised(rule: str, entry: str, grid: int, block: int, *args: Any, **more: Any) -> Advice:
    found = predicted(entry, grid, block, *args, **more).advice
    print(*found, sep="\n")
    return next(advice for advice in found if advice.rule == rule)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["own_places", "anywhere"])
def test_blocks_that_share_no_place_are_not_said_to(entry: str) -> None:
    count = 2 * MANY
    where = np.random.default_rng(0).permutation(count).astype(np.int32)
    args = [where] * (entry == "anywhere") + [np.zeros(count, np.int32)]
    assert not predicted(entry, count // 256, 256, *args).advice


@pytest.mark.slow_cases("1024-1-1...")
@pytest.mark.parametrize(
    ("block", "rounds", "said"),
    [
        (64, 100, "100 barriers a block that order nothing in the blocks tried"),
        (1024, 1, "1 barrier a block that orders nothing in the blocks tried"),
    ],
)
def test_barriers_are_counted_for_a_block(block: int, rounds: int, said: str) -> None:
    args = [np.zeros(2048 * block, np.float32), np.zeros(2048 * block, np.float32), rounds]
    assert advised("unneeded barriers", "barriers", 2048, block, *args).cause == said


@pytest.mark.slow
def test_each_array_has_its_own_number() -> None:
    args = [np.zeros(count, np.float32) for count in (512, 2048, MANY // 4)]
    found = advised("redundant loads", "two_tables", 1024, 256, *args, 512)
    assert found.line == line_of("s += b[")
    assert found.cause == "a block loads each sector 19 times"  # 150 a warp, of 64


@pytest.mark.slow
def test_what_all_blocks_load_is_told_from_what_each_has_for_itself() -> None:
    """L1 keeps half of a table at most."""
    args = [np.zeros(count, np.float32) for count in (65536, MANY, MANY)]
    found = advised("redundant between blocks", "table_and_own", 1024, 1024, *args)
    assert found.line == line_of("s += table[")
    times = re.search("the same ([0-9]+) times", found.cause)
    assert times
    assert 512 <= int(times[1]) <= 1024


@pytest.mark.slow_but("64-45000")
@pytest.mark.parametrize(("registers", "shared"), [(64, 60_000), (48, 60_000), (64, 45_000)])
def test_a_promise_is_what_the_advised_value_gives(registers: int, shared: int) -> None:
    """As many blocks as the next limit allows, and as much as these can have of what limits."""
    args = [np.zeros(MANY, np.float32), np.zeros(MANY, np.float32)]
    options = {"registers": registers, "shared_bytes": shared}
    found = advised("low occupancy", "turned", 4096, 256, *args, **options)
    figure = re.match("[0-9,]+", found.change)
    assert figure
    limiter = "registers" if "registers" in found.change else "shared_bytes"
    mended = options | {limiter: int(figure[0].replace(",", ""))}
    again = predicted("turned", 4096, 256, *args, **mended)
    assert found.changed_ms == pytest.approx(again.time_ms, rel=0.02)


def test_so_many_blocks_can_have_so_much_shared_memory() -> None:
    for chip in ARCHITECTURES.values():
        for blocks in range(1, chip.blocks + 1):
            most = max_shared(chip, blocks)
            held = occupancy(chip, 32, 16, most).limits["shared memory"]
            assert held is not None
            assert held >= blocks
            more = occupancy(chip, 32, 16, most + 1).limits["shared memory"]
            assert more is not None
            assert more < blocks


@pytest.mark.slow
def test_the_line_is_the_one_whose_lanes_wait() -> None:
    args = [np.arange(MANY, dtype=np.int32), np.zeros(4, np.int32), np.zeros(2 * MANY, np.int32)]
    found = advised("serial atomics", "busy_word", 4096, 256, *args)
    assert found.line == line_of("&few[")
    found = advised("serial shared atomics", "busy_shared_word", 4096, 256, np.zeros(MANY, "i4"))
    assert found.line == line_of("&s[k]")
    assert "1,536 passes" in found.cause  # 6 of 8 warps, 32 lanes each


def test_floats_summed_in_the_block_do_not_wait_for_the_word() -> None:
    found = advised("serial atomics", "sum", 4096, 256, np.zeros(MANY, "f4"), np.zeros(1, "f4"))
    assert "adds 256 times" in found.cause
    assert found.gain > 10


@pytest.mark.slow
def test_stride_and_sectors_are_of_one_access() -> None:
    args = [np.zeros(count * MANY // 4, np.float32) for count in (2, 32, 1)]
    found = advised("strided", "apart", 1024, 256, *args)
    assert found.cause == "lanes 128 bytes apart, 32 sectors a request for 4"


@pytest.mark.slow
def test_a_barrier_that_other_blocks_need_is_not_said_to_order_nothing() -> None:
    """The first block's threads stay by themselves; those of the others do not."""
    source = """__global__ void k(const float* x, float* y, int far) {
        __shared__ float s[1024];
        int t = threadIdx.x, other = blockIdx.x ? far : 0;
        float a = x[blockIdx.x * 1024 + t];
        for (int i = 0; i < 128; i++) {
            s[t] = a + i; __syncthreads(); a += s[t ^ other]; __syncthreads();
        }
        y[blockIdx.x * 1024 + t] = a; }"""
    arrays = [np.zeros(264 * 1024, np.float32) for _ in range(2)]
    kernel = Kernel.from_cuda(source, "k")
    for far, said in ((32, False), (0, True)):
        found = simulator.predict(kernel, 264, 1024, [*arrays, far]).advice
        assert any(advice.rule == "unneeded barriers" for advice in found) == said


NEAREST = """
__global__ void nearest(const float2* points, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float best = 1e30f;
    int found = -1;
    for (int k = 0; k < n; k++) {
        float x = points[k].x - points[i].x, y = points[k].y - points[i].y, d = x * x + y * y;
        if (k != i && d < best) {
            best = d;
            found = k;
        }
    }
    out[i] = found;
}"""


@pytest.mark.parametrize("count", [600, 3000])
def test_no_more_threads_are_advised_than_there_are_elements(count: int) -> None:
    points = np.random.default_rng(0).random((count, 2), np.float32)
    kernel = Kernel.from_cuda(NEAREST, "nearest")
    args = [points, np.zeros(count, np.int32), count]
    found = simulator.predict(kernel, -(-count // 1024), 1024, args).advice
    (few,) = (one for one in found if one.rule == "too few blocks")
    figures = re.fullmatch("split the work over ([0-9]+) blocks of ([0-9]+) threads", few.change)
    assert figures
    blocks, threads = map(int, figures.groups())
    assert count <= blocks * threads < count + 32


LANES = """
struct Point { int x, y, z, w, more[4]; };
extern "C" {
__global__ void rows(const signed char* A, const signed char* B, int* C, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    const int *a = (const int*)(A + row * n), *b = (const int*)(B + col * n);
    int sum = 0;
    for (int k = 0; k < n / 4; ++k)
        sum = __dp4a(a[k], b[k], sum);
    C[row * n + col] = sum;
}
__global__ void field(const Point* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i].y;
}
__global__ void spread(const int* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[8 * i + 1];
}
__global__ void apart(const int* in, int* out, int pitch) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int* mine = in + i * pitch;
    out[i] = *mine;
}
}
"""


@pytest.mark.parametrize(
    ("entry", "fields"), [("rows", False), ("field", True), ("spread", True), ("apart", False)]
)
def test_fields_are_spoken_of_where_there_are_some(entry: str, fields: bool) -> None:
    kernel = Kernel.from_cuda(LANES, entry)
    if entry == "rows":
        matrix = np.ones((64, 64), np.int8)
        args: list[Any] = [matrix, matrix, np.zeros((64, 64), np.int32), 64]
        found = simulator.predict(kernel, (4, 4), (16, 16), args).advice
    else:
        args = [np.ones(8 << 19, np.int32), np.zeros(1 << 19, np.int32), *[8] * (entry == "apart")]
        found = simulator.predict(kernel, 1 << 11, 256, args).advice
    (advice,) = (one for one in found if one.rule == "strided")
    assert ("keep each field in an array of its own" in str(advice)) == fields
    assert ("let neighbouring lanes take neighbouring elements" in str(advice)) != fields


@pytest.mark.parametrize(
    ("name", "tiles"), [pytest.param("matmul_naive", False, marks=pytest.mark.slow),
                        ("matmul_tiled", True)],
)  # fmt: skip
def test_larger_tiles_are_for_kernels_that_have_some(name: str, tiles: bool) -> None:
    entry = library.get(name)
    launch = entry.launch(entry.parse_size("256x256x256"), None, np.random.default_rng(0))
    found = simulator.predict(entry.kernel(None), launch.grid, launch.block, launch.args).advice
    (advice,) = (one for one in found if one.rule == "redundant between blocks")
    assert ("larger tiles" in str(advice)) == tiles


@pytest.mark.slow
@pytest.mark.parametrize(("pitch", "pads"), [(2044, False), (2046, True)])
def test_vector_loads_need_each_row_aligned(pitch: int, pads: bool) -> None:
    """Threads take four bytes at once only where rows begin at multiples of four."""
    image = np.zeros((4096, pitch), np.uint8)
    kernel = Kernel.from_cuda(SOURCE, "inverted")
    found = simulator.predict(kernel, (8, 4096), 256, [image, image.copy(), pitch]).advice
    (small,) = [advice for advice in found if advice.rule == "small transactions"]
    assert ("pad rows to multiples of 4 bytes, and" in small.change) == pads
