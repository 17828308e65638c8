"""Convolution of a float32 image with a filter of 5 x 5."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_REACH = 2
_WIDTH = 2 * _REACH + 1


def filtered(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return the sums of products in float64, with the bound of a float32 inner product."""
    image, weights = (np.asarray(array, np.float64) for array in args[:2])
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, _REACH), (_WIDTH, _WIDTH))
    with np.errstate(invalid="ignore", over="ignore"):
        terms = windows * weights
        roundings = (_WIDTH**2 + 1) * (2.0**-24 + 2.0**-40)
        bound = roundings * np.abs(terms).sum(axis=(2, 3)) + _WIDTH**2 * 2.0**-149
        return {"out": Expected(terms.sum(axis=(2, 3)), bound)}


def _launch(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    m, n = size
    image = rng.standard_normal(size, dtype=np.float32)
    weights = rng.standard_normal((_WIDTH, _WIDTH), dtype=np.float32)
    args = [image, weights, np.zeros(size, np.float32), m, n]
    return Launch((-(-n // 16), -(-m // 16)), (16, 16), args, {"out": 2}, filtered)


KERNELS = (
    LibraryKernel("convolution", "5 x 5, tiles with their neighbours in shared memory",
                  "convolution/convolution.cu", "filter", ("M", "N"), (256, 256), _launch),
)  # fmt: skip
