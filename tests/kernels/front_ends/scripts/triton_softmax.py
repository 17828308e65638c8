"""Softmax of rows, some a program; ``--faulty`` stores beyond the end of its row."""

import sys

import numpy as np
import triton
import triton.language as tl

FAULTY = "--faulty" in sys.argv


@triton.jit
def softmax_kernel(
    out, x, x_stride, out_stride, rows, columns, FAULTY: tl.constexpr,
    BLOCK: tl.constexpr, num_stages: tl.constexpr,
):  # fmt: skip
    """Rows a grid apart."""
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=num_stages):
        at = tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + row * x_stride + at, mask=inside, other=-float("inf"))
        power = tl.exp(value - tl.max(value, axis=0))
        result = power / tl.sum(power, axis=0)
        tl.store(out + row * out_stride + at, result, mask=inside | FAULTY)  # named


x = np.random.default_rng(6).normal(size=(9, 150)).astype(np.float32)
out = np.empty_like(x)
softmax_kernel[(4,)](
    out, x, x.strides[0] // 4, out.strides[0] // 4, *x.shape, FAULTY=FAULTY,
    BLOCK=triton.next_power_of_2(x.shape[1]), num_stages=2, num_warps=4,
)  # fmt: skip
if not FAULTY:
    power = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, power / power.sum(1, keepdims=True), rtol=1e-5)
