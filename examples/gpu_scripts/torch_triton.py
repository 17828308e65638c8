"""PyTorch and Triton as on a GPU; without one: ``tilescope exec torch_triton.py``.

Prints a CRC-32 of each result: on a GPU (``python torch_triton.py``) the same ones.
"""

import zlib

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    """A block of elements a program."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def matmul_kernel(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile a program; sizes are multiples of the tile's."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + row * K + k + inner[None, :])
        right = tl.load(b + (k + inner[:, None]) * N + column)
        total = tl.dot(left, right, total)
    tl.store(c + row * N + column, total)


def show(name: str, result: torch.Tensor) -> None:
    """A result's checksum."""
    print(f"{name}: crc32 {zlib.crc32(result.cpu().numpy().tobytes()):08x}")


def main() -> None:
    """Launch in two streams, time, compare."""
    assert torch.cuda.is_available()
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(1000, generator=generator).cuda()
    y = torch.rand(1000, generator=generator).to("cuda")
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 256),)
    add_kernel[grid](x, y, out, x.numel(), BLOCK=256)
    ready = torch.cuda.Event()
    ready.record()
    twice, side = torch.empty(1000, device="cuda"), torch.cuda.Stream()
    side.wait_event(ready)  # without it tilescope says that the launches are not ordered
    with torch.cuda.stream(side):
        add_kernel[grid](out, out, twice, x.numel(), BLOCK=256)
    torch.cuda.synchronize()
    show("add", out)
    show("twice", twice)
    assert torch.equal(out.cpu(), x.cpu() + y.cpu())

    a = torch.randint(-4, 5, (64, 96), generator=generator).to("cuda", torch.float16)
    b = torch.randint(-4, 5, (96, 64), generator=generator).to("cuda", torch.float16)
    c = torch.empty(64, 64, device="cuda")
    matmul_kernel[(2, 2)](a, b, c, 64, 96, BM=32, BN=32, BK=32)
    show("matmul", c)
    assert torch.equal(c.cpu(), a.cpu().float() @ b.cpu().float())
    triton.testing.do_bench(lambda: add_kernel[grid](x, y, out, x.numel(), BLOCK=256), rep=1)
    print(f"right, on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
