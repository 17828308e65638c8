"""Matrix transposition: B[N,M] = A[M,N] in float32, three ways to move the same elements."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size


def transposed(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return the transpose, exactly."""
    return {"B": Expected(np.asarray(args[0], np.float64).T, np.float64(0))}


def _launch(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    m, n = size
    a = rng.standard_normal((m, n), dtype=np.float32)
    b = np.zeros((n, m), np.float32)
    return Launch((-(-n // 32), -(-m // 32)), (32, 8), [a, b, m, n], {"B": 1}, transposed)


def _naive(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    launch = _launch(size, tile, rng)
    m, n = size
    grid = (-(-n // 32), -(-m // 8))
    return Launch(grid, launch.block, launch.args, launch.outputs, launch.reference)


_SOURCE, _AXES, _SIZE = "transpose/transpose.cu", ("M", "N"), (256, 256)

KERNELS = (
    LibraryKernel("transpose_naive", "coalesced reads, scattered writes", _SOURCE, "naive", _AXES,
                  _SIZE, _naive),
    LibraryKernel("transpose_tiled", "through a tile in shared memory: bank conflicts", _SOURCE,
                  "tiled<0>", _AXES, _SIZE, _launch),
    LibraryKernel("transpose_padded", "the same with a column of padding: none", _SOURCE,
                  "tiled<1>", _AXES, _SIZE, _launch),
)  # fmt: skip
