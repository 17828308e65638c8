"""A sparse float32 matrix of M x N in compressed rows (CSR), times a vector."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_THREADS = 128


def sparse_product(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return the product in float64, with the bound of each row's float32 inner product."""
    starts, columns = args[:2]
    values, x = (np.asarray(array, np.float64) for array in args[2:4])
    lengths = np.diff(starts)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    with np.errstate(invalid="ignore", over="ignore"):
        terms = values * x[columns]
        sums, sizes = (np.bincount(rows, t, len(lengths)) for t in (terms, np.abs(terms)))
        roundings = lengths + 6.0
        bound = roundings * (2.0**-24 + 2.0**-40) * sizes + roundings * 2.0**-149
    return {"y": Expected(sums, bound)}


def _launch(size: Size, rng: np.random.Generator, rows: int) -> Launch:
    """Return rows of very different lengths, some empty; a block takes so many."""
    m, n = size
    filled = rng.random(size) < rng.random((m, 1)) ** 3
    starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1))]).astype(np.int32)
    columns = np.nonzero(filled)[1].astype(np.int32)
    starts.flags.writeable = columns.flags.writeable = False
    values = rng.standard_normal(len(columns), dtype=np.float32)
    x = rng.standard_normal(n, dtype=np.float32)
    args = [starts, columns, values, x, np.zeros(m, np.float32), m]
    return Launch((-(-m // rows),), (_THREADS,), args, {"y": 4}, sparse_product)


_SOURCE, _AXES, _SIZE = "spmv/spmv.cu", ("M", "N"), (1024, 256)

KERNELS = (
    LibraryKernel("spmv_thread", "a thread a row: uncoalesced", _SOURCE, "by_thread", _AXES, _SIZE,
                  lambda size, tile, rng: _launch(size, rng, _THREADS)),
    LibraryKernel("spmv_warp", "a warp a row: neighbours by neighbours", _SOURCE, "by_warp", _AXES,
                  _SIZE, lambda size, tile, rng: _launch(size, rng, _THREADS // 32)),
)  # fmt: skip
