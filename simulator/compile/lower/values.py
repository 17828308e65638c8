"""Runtime helpers of generated code, besides the instruction table's functions."""

import numpy as np

from kernels.ptx.module import Imm

from ...core.geometry import Lanes, Mask
from ...isa import DTYPES, Unsupported


def merge(mask: Mask, new: Lanes, old: Lanes) -> Lanes:
    """Return ``new`` under the mask and ``old`` elsewhere."""
    if new is old:
        return old
    return np.where(mask, new, old)


def both(mask: Mask | None, more: Mask) -> Mask:
    """Return the intersection of two masks; ``None``: every lane."""
    if mask is None:
        return more
    return mask & more


def expect(value: object, dtype: np.dtype[np.generic]) -> None:
    """Check a register's value against its dtype and a register's shape.

    Generated code calls this after every write if ``compiler.CHECKED`` is set in the environment. A
    single value of another dtype would make NumPy promote everything computed from it.

    Raises:
        AssertionError: Dtype or shape differ.
    """
    if not isinstance(value, np.generic | np.ndarray):  # a dtype equals some Python types
        raise AssertionError(f"a register of {dtype} got {value!r}")
    if value.dtype != dtype or value.ndim not in (0, 4):
        raise AssertionError(f"a register of {dtype} got {value.dtype} of shape {value.shape}")


def low(value: Lanes, dtype: np.dtype[np.generic]) -> Lanes:
    """Return the low bits of an integer in a narrower type."""
    return value.astype(f"u{dtype.itemsize}").view(dtype)


def immediate(imm: Imm, type: str) -> np.generic:
    """Return a constant as a NumPy scalar of a PTX type."""
    dtype, bits = DTYPES[type], imm.value
    made: np.generic
    if dtype == np.bool_:
        return np.bool_(bits != 0)
    if imm.kind == "int":
        if dtype.kind == "f":
            made = dtype.type(bits)
        else:
            bits &= (1 << dtype.itemsize * 8) - 1
            made = np.dtype(f"u{dtype.itemsize}").type(bits).view(dtype)
        return made
    size = 4 if imm.kind == "f32" else 8
    value = np.dtype(f"u{size}").type(bits)
    if dtype.itemsize == size:
        made = value.view(dtype)
    elif dtype.kind == "f":
        with np.errstate(over="ignore"):
            made = value.view(f"f{size}").astype(dtype)
    else:
        raise Unsupported(f"a floating constant for .{type}: use its bits as an integer")
    return made


def parameter_name(offset: int, type: str) -> str:
    """Return the name of a part of the kernel's parameters."""
    return f"p{offset}_{type}"
