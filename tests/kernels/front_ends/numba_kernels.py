"""Kernels as Numba's documentation teaches them."""

from numba import cuda, float32

TILE = 8


@cuda.jit
def matmul(a, b, c):
    """A tile of the product a block, through shared memory."""
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    total = float32(0)
    for k in range((a.shape[1] + TILE - 1) // TILE):
        left[i, j] = a[y, j + k * TILE] if y < a.shape[0] and j + k * TILE < a.shape[1] else 0
        right[i, j] = b[i + k * TILE, x] if x < b.shape[1] and i + k * TILE < b.shape[0] else 0
        cuda.syncthreads()
        for n in range(TILE):
            total += left[i, n] * right[n, j]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@cuda.jit
def matmul_racy(a, b, c):
    """The same without the second barrier."""
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    total = float32(0)
    for k in range((a.shape[1] + TILE - 1) // TILE):
        left[i, j] = a[y, j + k * TILE] if y < a.shape[0] and j + k * TILE < a.shape[1] else 0
        right[i, j] = b[i + k * TILE, x] if x < b.shape[1] and i + k * TILE < b.shape[0] else 0
        cuda.syncthreads()
        for n in range(TILE):
            total += left[i, n] * right[n, j]
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@cuda.jit
def kinds(out, a, z, pair, flag, half):
    """An argument of each type."""
    i = cuda.grid(1)
    if i < out.size and flag:
        out[i] = a[i] + z.real * pair[0] + z.imag * pair[1] + half


@cuda.jit(device=True)
def above(a):
    """What a kernel calls."""
    return a * a + 1


@cuda.jit
def calls(a):
    """A device function."""
    a[cuda.grid(1)] = above(a[cuda.grid(1)])


@cuda.jit
def squares(a):
    """Halves are multiplied by C++."""
    a[cuda.grid(1)] *= a[cuda.grid(1)]
