"""The arithmetic of tensor cores on integers: exact.

Arrays are as in ``tensor_numerics``.
"""

from collections.abc import Sequence

import numpy as np

from ...core.geometry import Lanes
from .tensor_numerics import pieces


def integers(a: Lanes, b: Lanes, c: Lanes, types: Sequence[str], clamped: bool) -> Lanes:
    """``c + a @ b`` of integers: exact, and wrapped or clamped."""
    x, y = (_signed(n, kind) for n, kind in ((a, types[1]), (b, types[2])))
    found = np.empty(c.shape, np.uint32)
    for rows, columns, warps in pieces(c.shape):
        sums, product = (np.zeros(c[rows, columns, warps].shape, np.int32) for _ in range(2))
        for u, v in zip(x, y, strict=True):
            np.multiply(u[rows, None, warps], v[columns, warps], out=product, dtype=np.int32)
            np.add(sums, product, out=sums)
        whole = sums + c[rows, columns, warps].view(np.int32).astype(np.int64)
        if clamped:
            whole = np.clip(whole, -(1 << 31), (1 << 31) - 1)
        found[rows, columns, warps] = whole.astype(np.int32).view(np.uint32)
    return found


def bits(a: Lanes, b: Lanes, c: Lanes, both: np.ufunc) -> Lanes:
    """``c`` and how many bits of words along K are in both, or in one of them alone."""
    found = c.copy()
    for x, y in zip(a, b, strict=True):
        found += np.bitwise_count(both(x[:, None], y))
    return found


def _signed(words: Lanes, kind: str) -> Lanes:
    """Return bytes, or half ones, as 32-bit integers."""
    if kind in ("u8", "u4"):
        return words.astype(np.int32)
    if kind == "s4":
        return ((words << np.uint8(4)).view(np.int8) >> 4).astype(np.int32)
    return words.view(np.int8).astype(np.int32)
