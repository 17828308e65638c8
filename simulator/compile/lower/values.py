"""What generated code does to values besides the instruction table's functions."""

import numpy as np

from kernels.ptx.module import Imm

from ...core.geometry import Lanes, Mask
from ...isa import DTYPES, Unsupported


def merge(mask: Mask, new: Lanes, old: Lanes) -> Lanes:
    """``new`` under the mask, ``old`` elsewhere."""
    if new is old:
        return old
    return np.where(mask, new, old)


def both(mask: Mask | None, more: Mask) -> Mask:
    """The lanes that are in both masks; ``None`` is every lane."""
    if mask is None:
        return more
    return mask & more


def expect(value: object, dtype: np.dtype[np.generic]) -> None:
    """Hold a register's value to the dtype that carries it, and to a register's shape.

    Generated code calls this after every write where ``compiler.CHECKED`` is set in the
    environment: one value of another dtype makes NumPy promote all that is computed from it.

    Raises:
        AssertionError: It is of another one.
    """
    if not isinstance(value, np.generic | np.ndarray):  # a dtype equals some Python types
        raise AssertionError(f"a register of {dtype} got {value!r}")
    if value.dtype != dtype or value.ndim not in (0, 4):
        raise AssertionError(f"a register of {dtype} got {value.dtype} of shape {value.shape}")


def low(value: Lanes, dtype: np.dtype[np.generic]) -> Lanes:
    """The low bits of an integer, as a narrower type."""
    return value.astype(f"u{dtype.itemsize}").view(dtype)


def immediate(imm: Imm, type: str) -> np.generic:
    """A constant as a NumPy scalar of a PTX type."""
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
    """The name of a piece of the kernel's parameters."""
    return f"p{offset}_{type}"
