"""Types of numbers as CUDA's libraries name them, and how the device stores them."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class NumberType:
    """A type of elements.

    Attributes:
        stored: The NumPy type of the bytes; that of bfloat16 is uint16.
        computed: The type in which the host computes.
    """

    stored: Any
    computed: Any

    @property
    def nbytes(self) -> int:
        """Bytes of an element."""
        return int(np.dtype(self.stored).itemsize)

    @property
    def is_brain(self) -> bool:
        """Whether it is bfloat16."""
        return bool(self.stored == np.uint16 and self.computed == np.float32)

    def decoded(self, array: Any) -> Any:
        """Return stored elements as numbers to compute with."""
        if self.is_brain:
            return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return array.astype(self.computed)

    def encoded(self, values: Any) -> Any:
        """Return numbers as they are stored, rounded to nearest even."""
        if not self.is_brain:
            return np.asarray(values).astype(self.stored)
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        rounded = ((bits + half) >> np.uint32(16)).astype(np.uint16)
        return np.where(np.isnan(np.asarray(values, np.float32)), np.uint16(0x7FFF), rounded)


F32, F64 = NumberType(np.float32, np.float32), NumberType(np.float64, np.float64)
C32, C64 = NumberType(np.complex64, np.complex64), NumberType(np.complex128, np.complex128)
F16, BF16 = NumberType(np.float16, np.float32), NumberType(np.uint16, np.float32)
I8, I32 = NumberType(np.int8, np.float64), NumberType(np.int32, np.float64)
"""Products of whole numbers are exact in float64 up to sums of 2^53."""
I32_INDEX, I64_INDEX = NumberType(np.int32, np.int64), NumberType(np.int64, np.int64)
BY_LETTER = {"S": F32, "D": F64, "C": C32, "Z": C64, "H": F16}
"""By the letter in the names of cuBLAS's functions."""
BY_CODE = {0: F32, 1: F64, 2: F16, 3: I8, 4: C32, 5: C64, 10: I32, 14: BF16}
"""By ``cudaDataType``."""
