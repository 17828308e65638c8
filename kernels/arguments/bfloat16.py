"""bfloat16, which NumPy lacks: the upper half of a float32, stored as uint16."""

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

_NAN = 0x7FFF
"""What ``cvt.rn.bf16.f32`` makes of any NaN (PTX ISA, "cvt")."""


def bfloat16(values: ArrayLike) -> NDArray[np.uint16]:
    """Round numbers (as float32) to bfloat16, to nearest even.

    Args:
        values: Numbers, an array of any shape.

    Returns:
        Their bits as uint16, in the same shape; numbers that are too large become infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(values).astype(np.float32)
        bits = wide.astype(ml_dtypes.bfloat16).view(np.uint16)
    return np.where(np.isnan(wide), np.uint16(_NAN), bits)
