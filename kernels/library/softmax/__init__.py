"""Softmax of the rows of a float32 matrix, a block a row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_UNIT = 2.0**-24


def row_softmax(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Softmax in float64, with a bound on what float32 makes of it.

    An exponential of a rounded difference d is off by |d| units (from the argument) and 4
    (``expf`` itself is within 2 ulp); the sum by the mean of that over its terms, and one
    unit an addition; the quotient by one more. Results near the smallest subnormal may be
    off by some of those.
    """
    values = np.asarray(args[0], np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        d = values - np.fmax.reduce(values, axis=1, keepdims=True)
        powers = np.exp(d)
        total = powers.sum(axis=1, keepdims=True)
        off = np.where(powers > 0, -d, 0.0) + 4
        mean = (powers * off).sum(axis=1, keepdims=True) / total
        units = off + mean + values.shape[1] + 2
        return {"out": Expected(powers / total, powers / total * units * _UNIT + 2.0**-147)}


def _launch(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    m, n = size
    args = [rng.standard_normal(size, dtype=np.float32) * 3, np.zeros(size, np.float32), n]
    return Launch((m,), (128,), args, {"out": 1}, row_softmax)


KERNELS = (
    LibraryKernel(
        "softmax_rows", "a block a row, shuffles and shared memory", "softmax/softmax.cu",
        "rows", ("M", "N"), (256, 256), _launch,
    ),
)  # fmt: skip
