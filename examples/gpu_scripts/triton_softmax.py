"""A script for a GPU with Triton; without one: ``tilescope exec triton_softmax.py``."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    """A row a program."""
    at = tl.arange(0, BLOCK)
    place = tl.program_id(0) * columns + at
    value = tl.load(x + place, mask=at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + place, power / tl.sum(power, axis=0), mask=at < columns)


def main() -> None:
    """Launch and compare."""
    x = np.random.default_rng(1).normal(size=(8, 300)).astype(np.float32)
    out = np.empty_like(x)
    softmax[(8,)](out, x, 300, BLOCK=triton.next_power_of_2(300))
    power = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, power / power.sum(1, keepdims=True), rtol=1e-5)
    print("softmax of 8 rows is right")


if __name__ == "__main__":
    main()
