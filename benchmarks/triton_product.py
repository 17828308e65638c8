"""A product in Triton, whose interpreter runs it where ``TRITON_INTERPRET=1``."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def"
import time

import torch
import triton
import triton.language as tl

_SIZE, _BLOCK = 256, 32


@triton.jit
def _product(a, b, c, n: tl.constexpr, block: tl.constexpr):
    rows = tl.program_id(1) * block + tl.arange(0, block)
    columns = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block, block), tl.float32)
    for k in range(0, n, block):
        inner = k + tl.arange(0, block)
        left = tl.load(a + rows[:, None] * n + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + rows[:, None] * n + columns[None, :], total)


def main() -> None:
    """Print steps a second."""
    a, c = torch.ones(_SIZE, _SIZE), torch.zeros(_SIZE, _SIZE)
    began = time.perf_counter()
    _product[_SIZE // _BLOCK, _SIZE // _BLOCK](a, a, c, _SIZE, _BLOCK)
    seconds = time.perf_counter() - began
    assert (c == _SIZE).all()
    print(_SIZE**3 / seconds)


if __name__ == "__main__":
    main()
