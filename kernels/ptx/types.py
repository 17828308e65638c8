"""PTX types: their sizes, and the NumPy dtypes that carry them."""

from typing import Any

import numpy as np

TYPE_SIZES = {
    "b8": 1, "u8": 1, "s8": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8,
    "b128": 16,
}  # fmt: skip
"""Size in bytes of every fundamental PTX type that memory can hold."""

DTYPES: dict[str, Any] = {
    "pred": np.dtype(np.bool_),
    "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "b8": np.dtype(np.int8),
    "s16": np.dtype(np.int16), "u16": np.dtype(np.uint16), "b16": np.dtype(np.int16),
    "s32": np.dtype(np.int32), "u32": np.dtype(np.uint32), "b32": np.dtype(np.int32),
    "s64": np.dtype(np.int64), "u64": np.dtype(np.uint64), "b64": np.dtype(np.int64),
    "f16": np.dtype(np.float16), "bf16": np.dtype(np.int16),
    "f16x2": np.dtype(np.int32), "bf16x2": np.dtype(np.int32),
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
}  # fmt: skip
"""The NumPy dtype that carries a value of each PTX type."""
