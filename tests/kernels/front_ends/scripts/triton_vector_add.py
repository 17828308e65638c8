"""Triton's vector addition; ``--faulty`` forgets the mask of the store."""

import sys

import numpy as np
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, FAULTY: tl.constexpr, BLOCK: tl.constexpr):
    """A block of elements a program."""
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    if FAULTY:
        tl.store(out_ptr + at, total)  # named
    else:
        tl.store(out_ptr + at, total, mask=inside)


x, y = np.random.default_rng(5).random((2, 1000), np.float32)
out = np.empty_like(x)
add_kernel[lambda meta: (triton.cdiv(x.size, meta["BLOCK"]),)](
    x, y, out, x.size, FAULTY="--faulty" in sys.argv, BLOCK=256
)
np.testing.assert_array_equal(out, x + y)
