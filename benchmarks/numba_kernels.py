"""The kernels of ``simulators.cu`` in Python, for Numba."""

import functools
import importlib
from typing import Any

cuda: Any = importlib.import_module("numba.cuda")
float32: Any = importlib.import_module("numba").float32


@functools.cache
def kernel(name: str) -> Any:
    """Return a kernel of a name."""
    return cuda.jit(globals()[name])


def few(a: Any, rounds: int) -> None:
    """A loop."""
    i = cuda.grid(1)
    k, x = i, a[i]
    for r in range(rounds):
        k = (k * 3 + r) & 1023
        x = x * 0.999 + (k & 7)
        if k & 1:
            x -= 1
        a[i] = x


def mandelbrot(out: Any, width: int, height: int, rounds: int) -> None:
    """Rounds until a point leaves a circle."""
    i = cuda.grid(1)
    cx, cy = (i % width) * 3.0 / width - 2, (i // width) * 2.0 / height - 1
    x = y = 0.0
    n = 0
    while n < rounds and x * x + y * y < 4:
        x, y = x * x - y * y + cx, 2 * x * y + cy
        n += 1
    out[i] = n


def hash(table: Any, keys: Any, count: int, mask: int) -> None:
    """Open addressing."""
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        at = (int(keys[i]) * 2654435769) & mask
        for _ in range(mask + 1):
            old = cuda.atomic.cas(table, at, 0, keys[i])
            if old in (0, keys[i]):
                break
            at = (at + 1) & mask


def matmul(a: Any, b: Any, c: Any, n: int) -> None:
    """A product by tiles."""
    s = cuda.shared.array((16, 16), float32)
    t = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = 0.0
    for k in range(0, n, 16):
        s[y, x], t[y, x] = a[row, k + x], b[k + y, column]
        cuda.syncthreads()
        for j in range(16):
            total += s[y, j] * t[j, x]
        cuda.syncthreads()
    c[row, column] = total


def reduction(a: Any, sums: Any) -> None:
    """Sums of blocks."""
    s, t = cuda.shared.array(256, float32), cuda.threadIdx.x
    s[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]
