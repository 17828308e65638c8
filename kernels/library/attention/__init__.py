"""Attention of M queries over N keys and values, of 32 numbers each: f16 inputs, f32 outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_UNIT = 2.0**-24
_HALF_UNIT = 2.0**-11
_D = 32
_SCALE = np.float32(1 / np.sqrt(_D))


def attended(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Attention in float64, with a bound on what tensor cores make of it.

    A score is off by eleven units for eight products (``matmul.tensor_product``) and those of its
    scaling; a weight by that, by its exponential (as in ``softmax``) and, a unit each, by the
    scalings that follow. Rounded to f16 it is off by half a unit of that, and by half the least
    f16 below. The sums are off by eleven units for eight keys.
    """
    q, k, v = (np.asarray(array, np.float64) for array in args[:3])
    steps = -(-len(k) // 8) * 11 + 16
    with np.errstate(invalid="ignore", over="ignore"):
        scores = q @ k.T * np.float64(_SCALE)
        d = scores - scores.max(axis=1, keepdims=True)
        weights = np.exp(d)
        total = weights.sum(axis=1, keepdims=True)
        size = np.abs(q) @ np.abs(k).T * np.float64(_SCALE) * (_D // 8 * 11 + 2)
        size, d = (np.where(weights > 0, x, 0.0) for x in (size, d))
        off = _UNIT * (size + size.max(axis=1, keepdims=True) - d + steps)
        value = weights @ v / total
        wrong = weights * off
        bound = (wrong + weights * _HALF_UNIT) @ np.abs(v) + 2.0**-25 * np.abs(v).sum(axis=0)
        share = wrong.sum(axis=1, keepdims=True) / total
        bound = 1.01 * (bound / total + share * (weights @ np.abs(v) / total))
        return {"out": Expected(value, bound + 2.0**-147)}


def _launch(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    m, n = size
    inputs = [rng.standard_normal((rows, _D)).astype(np.float16) for rows in (m, n, n)]
    args = [*inputs, np.zeros((m, _D), np.float32), m, n, _SCALE]
    return Launch((-(-m // 32),), (64,), args, {"out": 3}, attended)


KERNELS = (
    LibraryKernel("attention", "tensor cores, softmax as the keys come", "attention/attention.cu",
                  "attention", ("M", "N"), (128, 128), _launch),
)  # fmt: skip
