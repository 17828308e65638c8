"""Numbers as parameter bytes."""

from typing import Any

import numpy as np

from ..ptx.header import Param
from ..ptx.types import DTYPES
from .bfloat16 import bfloat16

_NO_NUMBERS = ("__nv_fp4_", "__nv_fp6_", "__nv_fp8_")
"""Types in C++ whose numbers nothing here rounds: a byte of bits stands for one."""


def scalar_bytes(param: Param, arg: Any, label: str, kind: str = "") -> bytes:
    """Return a by-value argument as the parameter's bytes, little-endian.

    ``kind``: the parameter's C++ type, if known, for messages.

    Raises:
        TypeError: The argument is of another kind.
        ValueError: The value does not fit.
    """
    dtype, kind = DTYPES[param.type], kind or param.type
    if isinstance(arg, np.void):
        raw = arg.tobytes()
        if len(raw) != param.nbytes:
            raise ValueError(f"{label} ({kind}) takes {param.nbytes} bytes, not {len(raw)}")
        return bytes(raw)
    if isinstance(arg, (bool, np.bool_)):
        arg = int(arg)
    if arg is None and dtype.itemsize == 8:
        arg = 0
    if param.type == "bf16" and not isinstance(arg, np.uint16):  # which are its bits
        return _bfloat16_bytes(arg, label)
    if kind.startswith(_NO_NUMBERS) and not isinstance(arg, np.uint8):
        raise TypeError(f"{label} is {kind}; give its bits, as in u8:56 or np.uint8(56), not {arg}")
    if dtype.kind == "f":
        return _float_bytes(dtype, arg, label, kind)
    if (
        isinstance(arg, np.floating)
        and arg.dtype.itemsize == dtype.itemsize
        and param.type[0] == "b"
    ):
        return bytes(arg.tobytes())
    if not isinstance(arg, (int, np.integer)):
        what = f"a pointer ({kind})" if kind.endswith("*") else kind
        raise TypeError(f"{label} is {what}; cannot convert {type(arg).__name__} {arg!r}")
    bits = param.nbytes * 8
    value = int(arg)
    if kind == "bool":
        value = int(value != 0)  # as C++ converts it
    # NVRTC writes .u32 for int and unsigned alike: both ranges are taken.
    if not -(1 << (bits - 1)) <= value < (1 << bits):
        raise ValueError(f"{label} is {kind}; {value} does not fit in {bits} bits")
    return (value & ((1 << bits) - 1)).to_bytes(param.nbytes, "little")


def _float_bytes(dtype: Any, arg: Any, label: str, kind: str) -> bytes:
    if isinstance(arg, np.complexfloating) or not isinstance(arg, (int, float, np.number)):
        raise TypeError(f"{label} is {kind}; cannot convert {type(arg).__name__} {arg!r}")
    value = rounded(dtype, arg)
    if value is None:
        raise ValueError(f"{label} is {kind}; {arg!r:.40} is out of its range")
    return bytes(value.tobytes())


def rounded(dtype: Any, number: Any) -> Any:
    """Round a number to a floating-point type; ``None``: it is out of range."""
    try:
        with np.errstate(over="ignore"):
            value = dtype.type(number)
        return value if np.isinf(float(number)) or not np.isinf(value) else None
    except OverflowError:  # a whole number beyond those of float64
        return None


def _bfloat16_bytes(arg: Any, label: str) -> bytes:
    wide = np.frombuffer(_float_bytes(np.dtype(np.float32), arg, label, "bf16"), np.float32)[0]
    bits = int(bfloat16(wide))
    if bits & 0x7FFF == 0x7F80 and not np.isinf(wide):
        raise ValueError(f"{label} is bf16; {arg!r} is out of its range")
    return bits.to_bytes(2, "little")
