"""Layer normalisation of the rows of a float32 matrix, a block a row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_UNIT = 2.0**-24
_EPSILON = 1e-5


def normalised(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Layer norm in float64, with a bound on what float32 makes of it.

    The mean is off by a unit an addition of the mean magnitude, and so is every difference from it,
    and a unit of its own. The variance follows: twice difference times its error, its square, and
    a unit an addition. The rest is a unit an operation.
    """
    values, gamma, beta = (np.asarray(array, np.float64) for array in args[:3])
    roundings = (values.shape[1] + 4) * _UNIT
    with np.errstate(invalid="ignore", over="ignore"):
        d = values - values.mean(axis=1, keepdims=True)
        off = roundings * np.abs(values).mean(axis=1, keepdims=True) + _UNIT * np.abs(d)
        variance = (d * d).mean(axis=1, keepdims=True) + _EPSILON
        wrong = (2 * np.abs(d) * off + off * off).mean(axis=1, keepdims=True) + roundings * variance
        share = np.minimum(wrong / variance, 0.99)
        relative = 1 / np.sqrt(1 - share) - 1 + 4 * _UNIT
        scaled = np.abs(gamma) / np.sqrt(variance)
        value = d / np.sqrt(variance) * gamma + beta
        bound = scaled * (off * (1 + relative) + np.abs(d) * relative)
        return {"out": Expected(value, bound + _UNIT * (np.abs(value) + bound) + 2.0**-147)}


def _launch(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    m, n = size
    gamma, beta = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    gamma.flags.writeable = beta.flags.writeable = False
    values = rng.standard_normal(size, dtype=np.float32) * 3 + 1
    args = [values, gamma, beta, np.zeros(size, np.float32), n, _EPSILON]
    return Launch((m,), (128,), args, {"out": 3}, normalised)


KERNELS = (
    LibraryKernel(
        "layer_norm", "a block a row, the mean first, then the variance",
        "layer_norm/layer_norm.cu", "layer_norm", ("M", "N"), (256, 256), _launch,
    ),
)  # fmt: skip
