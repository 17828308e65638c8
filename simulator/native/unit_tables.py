"""Tables of the special-function unit as native code reads them (``runtime/function_unit.py``)."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from ..isa.scalar import mufu
from .runtime import function_unit

UNIT_TABLES = "unit_tables"
"""Name by which machine code knows their address."""


@functools.cache
def unit_tables() -> NDArray[np.uint8]:
    """Return the bytes: coefficients of all pieces, then the squares."""
    words = np.zeros((function_unit.PIECES, 3), np.int64)
    for name in mufu.functions():
        first, columns = getattr(function_unit, name.upper()), mufu.pieces(name)
        words[first : first + len(columns[0])] = np.stack(columns, axis=1)
    squares = mufu.squares().astype(np.uint16)
    return np.concatenate([words.view(np.uint8).reshape(-1), squares.view(np.uint8)])
