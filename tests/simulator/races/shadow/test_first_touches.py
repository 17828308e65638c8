"""Stores far apart: whether a location is written twice is found however they are looked at."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.core.geometry import Geometry
from simulator.races.shadow.write_once import WriteOnceBitmap

SOURCE = """
template <class T>
__device__ void put(T *out, const int *steps) {
    int at = steps[0] + threadIdx.x * steps[1] + threadIdx.y * steps[2]
           + blockIdx.x * steps[3] + blockIdx.y * steps[4];
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * blockIdx.x);
    T value = {};
    value.x = thread + gridDim.x * 1024 * blockIdx.y;
    out[at] = value;
    if (steps[5]) out[at + steps[5]] = value;
}
extern "C" __global__ void one(float1 *out, const int *steps) { put(out, steps); }
extern "C" __global__ void two(float2 *out, const int *steps) { put(out, steps); }
extern "C" __global__ void four(float4 *out, const int *steps) { put(out, steps); }
"""
BLOCK, GRID = (8, 4), (4, 8)
WIDTHS = {"one": 1, "two": 2, "four": 4}


def written(width: int, steps: list[int]) -> np.ndarray:
    """How often each location is, by the definition."""
    counts = range(BLOCK[0]), range(BLOCK[1]), range(GRID[0]), range(GRID[1])
    x, y, bx, by = np.meshgrid(*counts, indexing="ij")
    at = steps[0] + x * steps[1] + y * steps[2] + bx * steps[3] + by * steps[4]
    both = [at, at + steps[5]] if steps[5] else [at]
    places = np.concatenate([place.reshape(-1) for place in both])
    return np.bincount((places[:, None] * width + np.arange(width)).reshape(-1))


def drawn(rng: np.random.Generator) -> list[int]:
    """Steps of a tile whose rows are in its columns; now and then they meet."""
    row = int(rng.choice([1 << 12, 5000, 4001]))
    inner = int(rng.choice([1, 1, 1, 2, 8]))
    down, across = (row, inner) if rng.random() < 0.5 else (inner, row)
    tile = [BLOCK[1] * across, BLOCK[0] * down] if down < across else [BLOCK[0] * down] * 2
    beyond = [max(tile), GRID[0] * max(tile)] if rng.random() < 0.5 else [BLOCK[1] * inner, 8 * row]
    if rng.random() < 0.2:
        beyond[0] -= int(rng.integers(1, 3)) * inner
    again = int(rng.choice([0, 0, 0, 7, 8 * row * 40]))
    return [int(rng.choice([0, 0, 8, 3])), down, across, *beyond, again]


@pytest.mark.slow
@pytest.mark.parametrize("entry", WIDTHS)
def test_a_location_written_twice_is_found_and_no_other(entry: str) -> None:
    kernel, rng = Kernel.from_cuda(SOURCE, entry), np.random.default_rng(WIDTHS[entry])
    seen = {True: 0, False: 0}
    for number in range(14):
        steps = drawn(rng)
        counts = written(WIDTHS[entry], steps)
        out, twice = np.zeros(len(counts), np.float32), bool(counts.max() > 1)
        for workers in (1, 2) if number % 7 == 0 else (1,):
            args = [out.copy(), np.array(steps, np.int32)]
            report = simulator.launch(kernel, GRID, BLOCK, args, workers=workers)
            kinds = {hazard.kind for hazard in report.hazards}
            assert kinds <= {"waw-race"}
            assert bool(kinds) == twice, steps
        seen[twice] += 1
    assert min(seen.values()) > 1, seen


GEOMETRY = Geometry((6, 1, 1), (8, 4, 1), np.arange(6))


def access(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Byte addresses of a batch, (1, 4, 8, 6), and how many each lane accesses."""
    nbytes = int(rng.choice([4, 8, 16]))
    row, inner = int(rng.choice([4000, 4096, 4001])), int(rng.choice([1, 1, 1, 2, 3]))
    steps = [(inner, row), (row, inner), (row, 3 * row)][int(rng.integers(3))]
    x, y, block = np.arange(8), np.arange(4)[:, None], np.arange(6)
    beyond = rng.choice([row, 8 * inner, 40 * row, 32])
    at = x[:, None] * steps[0] + y[..., None] * steps[1] + block * beyond
    at = at[None] + rng.choice([0, 8, 3, 37, 64 * row, 100 * row, 17 * row])
    if rng.random() < 0.2:  # blocks that are not alike
        at = at + rng.integers(0, 9, at.shape) * row * 50
    if rng.random() < 0.1:
        at = (np.arange(192).reshape(6, 4, 8).transpose(1, 2, 0) + int(rng.integers(900)))[None]
    return at.astype(np.int64) * nbytes, nbytes


@pytest.mark.slow
def test_the_table_is_a_set() -> None:
    """Whatever comes after whatever, also in two tables that are merged, and sent elsewhere."""
    rng, seen = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(250):
        home = SimpleNamespace(base=1 << 40, buffer=np.zeros(1 << 24, np.uint8))
        tables, sets = [WriteOnceBitmap(home, 4) for _ in range(2)], [set[int](), set[int]()]
        fresh, last = True, None
        for _ in range(int(rng.integers(1, 5))):
            address, nbytes = access(rng)
            if last and rng.random() < 0.5:  # beside it, or in it, and in no order
                address = last[0] + int(rng.integers(-9, 10)) * last[1]
                address, nbytes = rng.permutation(address.reshape(-1)).reshape(1, 4, 8, 6), last[1]
            if int(address.max()) + nbytes > 1 << 24 or int(address.min()) < 0:
                continue
            last = address, nbytes
            which, site = int(rng.random() < 0.3), SimpleNamespace(nbytes=nbytes, offset=nbytes)
            event = SimpleNamespace(
                site=site, address=address + home.base - nbytes, mask=None, repeated=False
            )
            places = (address.reshape(-1, 1) // 4 + np.arange(nbytes // 4)).reshape(-1).tolist()
            fresh = len({*places}) == len(places) and sets[which].isdisjoint(places)
            GEOMETRY.by_block = None
            assert tables[which].write(event, GEOMETRY) == fresh
            sets[which].update(places)
            if not fresh:
                break
        if fresh and all(sets):
            fresh = sets[0].isdisjoint(sets[1])
            assert tables[0].merge(pickle.loads(pickle.dumps(tables[1]))) == fresh
        seen[fresh] += 1
    assert min(seen.values()) > 50, seen
