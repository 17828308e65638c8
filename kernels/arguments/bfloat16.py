"""bfloat16, which NumPy lacks: the upper half of a float32, kept as whole numbers of 16 bits."""

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

_NAN = 0x7FFF
"""What ``cvt.rn.bf16.f32`` makes of any NaN (PTX ISA, "cvt")."""


def bfloat16(values: ArrayLike) -> NDArray[np.uint16]:
    """Numbers, taken as float32, rounded to the nearest bfloat16, ties to even.

    Args:
        values: Numbers, an array of any shape.

    Returns:
        Their bits, of the same shape; what is too large is infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(values).astype(np.float32)
        bits = wide.astype(ml_dtypes.bfloat16).view(np.uint16)
    return np.where(np.isnan(wide), np.uint16(_NAN), bits)
