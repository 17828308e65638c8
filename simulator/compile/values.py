"""What generated code does to values besides the instruction table's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.ptx.module import Imm

from ..isa import DTYPES, Unsupported


def merge(mask: Any, new: Any, old: Any) -> Any:
    """``new`` under the mask, ``old`` elsewhere."""
    if new is old:
        return old
    return np.where(mask, new, old)


def both(mask: Any, more: Any) -> Any:
    """The lanes that are in both masks; ``None`` is every lane."""
    if mask is None:
        return more
    return mask & more


def expect(value: Any, dtype: Any) -> None:
    """Hold a register's value to the dtype that carries it, and to a register's shape.

    Generated code calls this after every write where ``compiler.CHECKED`` is set in the
    environment: one value of another dtype makes NumPy promote all that is computed from it.

    Raises:
        AssertionError: It is of another one.
    """
    numeric = isinstance(value, (np.generic, np.ndarray))  # a dtype equals some Python types
    if not numeric or value.dtype != dtype or value.ndim not in (0, 4):
        found = f"{value.dtype} of shape {value.shape}" if numeric else repr(value)
        raise AssertionError(f"a register of {dtype} got {found}")


def low(value: Any, dtype: Any) -> Any:
    """The low bits of an integer, as a narrower type."""
    return value.astype(f"u{dtype.itemsize}").view(dtype)


def immediate(imm: Imm, kind: str) -> Any:
    """A constant as a NumPy scalar of a PTX type."""
    dtype = DTYPES[kind]
    if dtype == np.bool_:
        return np.bool_(imm.value != 0)
    if imm.kind == "int":
        if dtype.kind == "f":
            return dtype.type(imm.value)
        bits = dtype.itemsize * 8
        return np.dtype(f"u{dtype.itemsize}").type(imm.value & ((1 << bits) - 1)).view(dtype)
    size = 4 if imm.kind == "f32" else 8
    value = np.dtype(f"u{size}").type(imm.value)
    if dtype.itemsize == size:
        return value.view(dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return value.view(f"f{size}").astype(dtype)
    raise Unsupported(f"a floating constant for .{kind}")
