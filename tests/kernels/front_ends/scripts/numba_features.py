"""What Numba's documents show besides: atomics, a grid's barrier, records, warps and so on."""

import math

import numpy as np
from numba import cuda, float32

SQUARES = np.arange(10, dtype=np.float32) ** 2
RECORD = np.dtype([("rank", np.int32), ("x", np.float64), ("v", np.float32, (3,))], align=True)


@cuda.jit
def extremes(values, out):
    """Largest, smallest, sum."""
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.max(out, 0, values[i])
        cuda.atomic.min(out, 1, values[i])
        cuda.atomic.add(out, 2, values[i])


@cuda.jit
def rotate(x, rounds):
    """Each round after the whole grid's last."""
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(rounds):
        left = x[(i - 1) % x.size]
        grid.sync()
        x[i] = left + 1
        grid.sync()


@cuda.jit(device=True)
def fibonacci(n):
    """Two numbers."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a, b


@cuda.jit
def pieces(index, out):
    """Constant and local arrays, a device function, a range of another dimension."""
    table = cuda.const.array_like(SQUARES)
    mine = cuda.local.array(4, float32)
    x, y = cuda.grid(2)
    if x < out.shape[0] and y < out.shape[1]:
        a, b = fibonacci(index[x])
        for k in range(4):
            mine[k] = table[(index[x] + k) % 10]
        out[x, y] = mine[y % 4] + a + b


@cuda.jit
def tell(records):
    """Fields of structures."""
    i = cuda.grid(1)
    if i < records.size:
        records[i].x = records[i].rank * 2.5
        records[i]["v"][1] = records[i].x
        records[i].rank += 1


@cuda.jit
def escape(image, low, high, most):
    """Steps until a number leaves the circle."""
    i, j = cuda.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        c = complex(low + (high - low) * j / image.shape[1], -1 + 2.0 * i / image.shape[0])
        z, n = 0j, 0
        while n < most and z.real * z.real + z.imag * z.imag < 4:
            z, n = z * z + c, n + 1
        image[i, j] = n


@cuda.jit
def warps(x, out):
    """Sums by shuffles, votes, functions of bits."""
    value, lane = x[cuda.grid(1)], cuda.laneid
    total = value
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
    above = cuda.ballot_sync(0xFFFFFFFF, value > 10)
    same = cuda.match_any_sync(0xFFFFFFFF, value % 4)
    if lane == 0:
        out[0], out[1], out[2] = total, cuda.popc(above), cuda.popc(same)
    cuda.syncwarp()


@cuda.jit
def functions(x, out):
    """Some of the module math."""
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = math.sin(x[i]) + math.exp(x[i]) + math.sqrt(x[i])
        out[1, i] = math.erf(x[i]) + math.atan2(x[i], 2.0) + math.pow(x[i], 1.5)
        out[2, i] = math.gamma(x[i]) + math.floor(x[i]) + abs(-x[i])


@cuda.jit
def turned(x, out):
    """Dynamic shared memory."""
    buffer = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    buffer[t] = x[t]
    cuda.syncthreads()
    out[t] = buffer[cuda.blockDim.x - 1 - t]


rng = np.random.default_rng(1)
values, out = rng.random(100), np.array([-1.0, 9.0, 0.0])
extremes[2, 64](values, out)
np.testing.assert_allclose(out, [values.max(), values.min(), values.sum()])

x = np.arange(128, dtype=np.int32)
rotate[4, 32](x, 3)
np.testing.assert_array_equal(x, np.roll(np.arange(128), 3) + 3)

index, table = np.arange(10), np.zeros((10, 4))
pieces[(2, 1), (8, 4)](index, table)
series = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]  # a Fibonacci number and the next one, added
np.testing.assert_array_equal(table[0], SQUARES[:4] + 1)
np.testing.assert_array_equal(table[:, 0], SQUARES + series)

records = np.zeros(10, RECORD)
records["rank"] = np.arange(10)
tell[1, 32](records)
np.testing.assert_array_equal(records["x"], np.arange(10) * 2.5)
np.testing.assert_array_equal(records["v"][:, 1], np.arange(10) * 2.5)
np.testing.assert_array_equal(records["rank"], np.arange(1, 11))

image = np.zeros((8, 12), np.uint8)
escape[(1, 2), (8, 8)](image, -2.0, 1.0, 20)
assert (image.max(), image[0, 0]) == (20, 1)

lanes, answers = np.arange(32, dtype=np.int32), np.zeros(3, np.int64)
warps[1, 32](lanes, answers)
np.testing.assert_array_equal(answers, [496, 21, 8])

numbers, results = rng.random(40) + 0.1, np.zeros((3, 40))
functions[1, 64](numbers, results)
np.testing.assert_allclose(results[0], np.sin(numbers) + np.exp(numbers) + np.sqrt(numbers))
erf, gamma = np.vectorize(math.erf)(numbers), np.vectorize(math.gamma)(numbers)
np.testing.assert_allclose(results[1], erf + np.arctan2(numbers, 2) + numbers**1.5)
np.testing.assert_allclose(results[2], gamma + np.floor(numbers) + numbers)

row, back = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
turned[1, 64, 0, 256](row, back)
np.testing.assert_array_equal(back, row[::-1])
assert [len(part.copy_to_host()) for part in cuda.to_device(row).split(40)] == [40, 24]
