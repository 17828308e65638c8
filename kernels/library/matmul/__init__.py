"""Matrix multiplication: C[M,N] = A[M,K] B[K,N] in float32, from naive to tensor cores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...arguments.tensor_map import TensorMap, array_of
from ..catalog import Expected, Launch, LibraryKernel, Size

_HALF_ULP = 2.0**-24
_TINY = 2.0**-149


def product(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return the product in float64, with the bound of a float32 inner product in any order.

    With u = 2**-24 and n roundings a term, the error of a sum of products is at most
    n*u/(1 - n*u) times the sum of their magnitudes (Higham, "Accuracy and Stability of
    Numerical Algorithms", section 3.1); a product that underflows adds half of the smallest
    subnormal.
    """
    return _within(args, args[0].shape[1] + 1)


def tensor_product(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return the product in float64, with the bound of what tensor cores make of it.

    They add eight or sixteen products and the sum so far at once, cut off toward zero 24 bits
    or more below the largest, and cut the sum off to 24 bits: eleven roundings for eight products.
    """
    return _within(args, -(-array_of(args[0]).shape[1] // 8) * 11)


def _within(args: Sequence[Any], roundings: int) -> Mapping[str, Expected]:
    a, b = (array_of(matrix).astype(np.float64) for matrix in args[:2])
    gamma = roundings * _HALF_ULP / (1 - roundings * _HALF_ULP)
    with np.errstate(invalid="ignore", over="ignore"):
        return {"C": Expected(a @ b, gamma * (np.abs(a) @ np.abs(b)) + roundings * _TINY)}


def _launch(
    size: Size,
    rng: np.random.Generator,
    block: tuple[int, ...],
    outputs: tuple[int, int],
    numbers: tuple[int, ...] | None = None,
) -> Launch:
    """Return a launch whose blocks compute ``outputs`` elements of C each, along x and y."""
    m, n, k = size
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    c = np.zeros((m, n), np.float32)
    grid = (-(-n // outputs[0]), -(-m // outputs[1]))
    args = [a, b, c, *(size if numbers is None else numbers)]
    return Launch(grid, block, args, {"C": 2}, product)


def _by_tile(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    return _launch(size, rng, (tile, tile), (tile, tile))


def _strided(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    launch = _by_tile(size, tile, rng)
    grid = launch.grid[::-1]
    return replace(launch, grid=grid)


def _square(name: str, unit: int) -> Callable[[Size, int, np.random.Generator], Launch]:
    def build(size: Size, tile: int, rng: np.random.Generator) -> Launch:
        if len(set(size)) > 1:
            shown = "x".join(str(n) for n in size)
            raise ValueError(f"{name} multiplies square matrices, M = N = K, not {shown}")
        if size[0] % unit:
            raise ValueError(f"{name} takes a width that is a multiple of {unit}, not {size[0]}")
        return _launch(size, rng, (tile, tile), (tile, tile), size[:1])

    return build


def _register_tiled(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    return _launch(size, rng, (16, 16), (tile, tile))


def _warp_tiled(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    return _launch(size, rng, (128,), (64, 64))


def _tensor(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    _in_multiples(size, 8, "matmul_tensor copies eight f16")
    launch = _launch(size, rng, (128,), (tile, tile))
    inputs = [matrix.astype(np.float16) for matrix in launch.args[:2]]
    return replace(
        launch, args=[*inputs, *launch.args[2:]], reference=tensor_product,
        shared_bytes=_STAGES * 2 * (128 if tile == 64 else _DEPTH) * (tile + tile),
    )  # fmt: skip


def _wgmma(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    _in_multiples(size, 8, "matmul_wgmma has rows of 16 bytes copied")
    launch = _launch(size, rng, (_WGMMA_THREADS,), (tile, _WGMMA_ROWS))
    a, b = (matrix.astype(np.float16) for matrix in launch.args[:2])
    maps = [
        TensorMap(a, (_WGMMA_ROWS, _DEPTH), swizzle=128),
        TensorMap(b, (_DEPTH, 64), swizzle=128),
    ]
    return replace(
        launch, args=[*maps, *launch.args[2:]], reference=tensor_product,
        shared_bytes=_STAGES * 2 * _DEPTH * (_WGMMA_ROWS + tile),
    )  # fmt: skip


def _vectorised(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    _in_multiples(size, 4, "matmul_vectorised loads 128 bits")
    return _launch(size, rng, (tile // 4, tile), (tile, tile))


def _in_multiples(size: Size, unit: int, why: str) -> None:
    for axis, number in zip("NK", size[1:], strict=True):
        if number % unit:
            raise ValueError(f"{why}: {axis} must be a multiple of {unit}, not {number}")


_STAGES, _DEPTH, _WGMMA_ROWS, _WGMMA_THREADS = 3, 64, 128, 288
"""As in ``tensor.cu`` and ``wgmma.cu``."""
_TILES = (8, 16, 32)
_DRAWN = (2, 4, *_TILES)
"""Tiles of less than a warp are for drawing: a 4x4 product is small enough to follow."""


def _kernel(
    name: str,
    summary: str,
    source: str,
    entry: str,
    build: Callable[[Size, int, np.random.Generator], Launch] = _by_tile,
    tiles: tuple[int, ...] = _TILES,
    default_tile: int = 16,
    racy: bool = False,
    twin: str = "",
    arch: str = "compute_90",
) -> LibraryKernel:
    return LibraryKernel(
        f"matmul_{name}", summary, f"matmul/{source}", entry, ("M", "N", "K"), (256, 256, 256),
        build, tiles, default_tile, racy, twin and f"matmul_{twin}", arch,
    )  # fmt: skip


KERNELS = (
    _kernel("naive", "a thread an output, all from global memory", "naive.cu", "naive",
            tiles=_DRAWN),
    _kernel("naive_square", "the same for N x N, with an early return", "naive.cu", "naive_square",
            _square("matmul_naive_square", 1)),
    _kernel("naive_strided", "rows along x: uncoalesced", "naive.cu", "naive_strided", _strided),
    _kernel("tiled", "tiles in shared memory, any M, N, K", "tiled.cu", "tiled<{tile}>",
            tiles=_DRAWN),
    _kernel("tiled_exact", "tiles of 16, square, no bounds checks", "tiled.cu", "tiled_exact",
            _square("matmul_tiled_exact", 16), tiles=()),
    _kernel("transposed", "B's tile transposed: bank conflicts", "padded.cu",
            "transposed<{tile}, 0>", default_tile=32),
    _kernel("padded", "the same with a column of padding: none", "padded.cu",
            "transposed<{tile}, 1>", default_tile=32),
    _kernel("vectorised", "128-bit global loads and stores", "vectorised.cu", "vectorised<{tile}>",
            _vectorised, default_tile=32),
    _kernel("double_buffered", "loads the next tiles while using these", "double_buffered.cu",
            "double_buffered<{tile}>"),
    _kernel("register_tiled", "4x4 outputs a thread, tiles of 64", "register_tiled.cu",
            "register_tiled<{tile} / 16, {tile} / 16>", _register_tiled, (64, 128), 64),
    _kernel("warp_tiled", "tiles of a block, a warp, a lane", "warp_tiled.cu", "warp_tiled",
            _warp_tiled, ()),
    _kernel("async_copy", "double-buffered by cp.async", "async_copy.cu", "async_copy<{tile}>"),
    _kernel("tensor", "tensor cores: f16 by mma.sync, cp.async in stages", "tensor.cu",
            "tensor<{tile}>", _tensor, (32, 64, 128), 64),
    _kernel("wgmma", "tensor cores: f16 by wgmma (sm_90a), fed by TMA", "wgmma.cu",
            "wgmma<{tile}>", _wgmma, (64, 128), 128, arch="compute_90a"),
    _kernel("missing_first_barrier", "faulty: uses tiles before they are loaded", "faulty.cu",
            "missing_first_barrier<{tile}>", racy=True, twin="tiled"),
    _kernel("missing_second_barrier", "faulty: reloads tiles still in use", "faulty.cu",
            "missing_second_barrier<{tile}>", racy=True, twin="tiled"),
    _kernel("tiled_wrong_guard", "faulty: loads and barriers inside the guard", "faulty.cu",
            "tiled_wrong_guard<{tile}>", twin="tiled"),
)  # fmt: skip
