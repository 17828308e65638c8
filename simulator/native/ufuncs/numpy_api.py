"""Universal functions made of machine code, through NumPy's C interface.

``PyUFunc_FromFuncAndData`` is entry 1 of its table for universal functions ("ufunc API" of NumPy's
reference); the table is in a capsule of the module that has them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from kernels.ptx.types import DTYPES

from ..jit import LoadedObject

_FROM_FUNCTIONS = 1
_NO_IDENTITY = -1
_alive: list[object] = []
"""What NumPy points to, as long as the functions: to the end of the process."""


@functools.cache
def _from_functions() -> Callable[..., np.ufunc] | None:
    try:
        capsule = importlib.import_module("numpy._core._multiarray_umath")._UFUNC_API
    except (ImportError, AttributeError):
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    kind = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
        ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int,
    )  # fmt: skip
    return cast(Callable[..., np.ufunc], kind(table[_FROM_FUNCTIONS]))


def is_available() -> bool:
    """Whether NumPy's table is where it is expected."""
    return _from_functions() is not None


def universal_function(
    code: LoadedObject, name: str, inputs: Sequence[str], outputs: Sequence[str]
) -> np.ufunc:
    """Return a universal function of one loop.

    Args:
        code: Machine code.
        name: Of the loop in it, a ``PyUFuncGenericFunction``.
        inputs: PTX types of operands.
        outputs: PTX types of results.
    """
    make = _from_functions()
    assert make is not None
    loops, data = (ctypes.c_void_p * 1)(code.address(name)), (ctypes.c_void_p * 1)(None)
    numbers = bytes(DTYPES[type].num for type in [*inputs, *outputs])
    types = ctypes.create_string_buffer(numbers, len(numbers))
    _alive.append((code, loops, data, types))
    return make(loops, data, types, 1, len(inputs), len(outputs), _NO_IDENTITY, b"native", b"", 0)
