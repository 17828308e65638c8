"""Schedules: what is free of races gives the same bits under all, and a race shows under some."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from kernels import Kernel, library
from simulator import Run
from tilescope.strategies import float_arrays, ragged_sizes, schedules

REDUCE = """\
__global__ void reduce(const float* x, float* sums, int n) {
    __shared__ float part[96];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int left = blockDim.x; left > 1;) {
        int half = (left + 1) / 2;
        if (t + half < left)
            part[t] += part[t + half];
        left = half;
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
"""
HISTOGRAM = """\
__global__ void histogram(const unsigned char* x, int* counts, int n) {
    __shared__ int bins[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        bins[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[x[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (bins[b])
            atomicAdd(&counts[b], bins[b]);
}
"""
SIZES = ragged_sizes(16, 40)
builds = st.sampled_from(["device", "source"])


@functools.cache
def compiled(source: str, entry: str, build: str) -> Kernel:
    return Kernel.from_cuda(source, entry, build=build)


@functools.cache
def library_kernel(name: str, build: str) -> Kernel:
    return library.get(name).kernel(16, build=build)


def product(name: str, a: Any, b: Any, schedule: str | int, build: str) -> tuple[Run, Any]:
    """C = A B on blocks of 16 x 16."""
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), -1.0, np.float32)
    grid = (-(-n // 16), -(-m // 16))
    args = [a, b, c, m, n, k]
    run = simulator.launch(library_kernel(name, build), grid, (16, 16), args, schedule=schedule)
    return run, c


@settings(max_examples=30, deadline=None)
@given(st.data(), st.tuples(SIZES, SIZES, SIZES), schedules(), builds)
def test_the_tiled_product_has_the_same_bits_under_every_schedule(
    data: st.DataObject, size: tuple[int, int, int], schedule: str | int, build: str
) -> None:
    m, n, k = size
    a, b = data.draw(float_arrays((m, k))), data.draw(float_arrays((k, n)))
    run, c = product("matmul_tiled", a, b, schedule, build)
    assert run.hazards == []
    assert run.schedule == str(schedule)
    assert c.tobytes() == product("matmul_tiled", a, b, "lockstep", build)[1].tobytes()


def sums(x: Any, threads: int, schedule: str | int, build: str) -> tuple[Run, Any]:
    """The sum of each block's numbers."""
    blocks = max(1, -(-len(x) // threads))
    result = np.zeros(blocks, np.float32)
    kernel = compiled(REDUCE, "reduce", build)
    run = simulator.launch(kernel, blocks, threads, [x, result, len(x)], schedule=schedule)
    return run, result


@settings(max_examples=50, deadline=None)
@given(ragged_sizes(32, 300).flatmap(float_arrays), ragged_sizes(32, 96), schedules(), builds)
def test_a_reduction_has_the_same_bits_under_every_schedule(
    x: Any, threads: int, schedule: str | int, build: str
) -> None:
    run, result = sums(x, threads, schedule, build)
    assert run.hazards == []
    assert result.tobytes() == sums(x, threads, "lockstep", build)[1].tobytes()


@settings(max_examples=50, deadline=None)
@given(
    st.binary(min_size=1, max_size=600), st.integers(1, 4), ragged_sizes(32, 128), schedules(),
    builds,
)  # fmt: skip
def test_a_histogram_is_exact_under_every_schedule(
    content: bytes, blocks: int, threads: int, schedule: str | int, build: str
) -> None:
    x = np.frombuffer(content, np.uint8)
    counts = np.zeros(256, np.int32)
    kernel = compiled(HISTOGRAM, "histogram", build)
    run = simulator.launch(kernel, blocks, threads, [x, counts, len(x)], schedule=schedule)
    assert run.hazards == []
    assert (counts == np.bincount(x, minlength=256)).all()


# -- races ------------------------------------------------------------------------------

NAMED: tuple[str | int, ...] = ("lockstep", "warps", "reverse", *range(5))


def random_matrices(size: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((size, size)).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


def test_a_racy_product_is_wrong_under_some_schedule() -> None:
    a, b = random_matrices(32)
    exact = a.astype(np.float64) @ b
    for name in ("matmul_missing_first_barrier", "matmul_missing_second_barrier"):
        wrong = [
            schedule
            for schedule in NAMED
            if abs(product(name, a, b, schedule, "device")[1] - exact).max() > 1e-3
        ]
        assert "lockstep" not in wrong  # the race that testing does not show
        assert "warps" in wrong


def test_a_race_is_found_whatever_the_schedule() -> None:
    a, b = random_matrices(16)
    for schedule in NAMED:
        run, _ = product("matmul_missing_first_barrier", a, b, schedule, "device")
        errors = [hazard for hazard in run.hazards if hazard.severity == "error"]
        races = [hazard for hazard in errors if hazard.kind in ("raw-race", "war-race")]
        assert races, schedule
        assert {"As", "Bs"} & {name for race in races for name in (race.variable, *race.also)}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000))
def test_a_seed_repeats_itself(seed: int) -> None:
    a, b = random_matrices(16)
    first, again = (product("matmul_missing_first_barrier", a, b, seed, "device") for _ in range(2))
    assert first[1].tobytes() == again[1].tobytes()
    assert [str(hazard) for hazard in first[0].hazards] == [str(h) for h in again[0].hazards]
