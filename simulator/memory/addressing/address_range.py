"""Extents of accesses, and whether they are allocated."""

import numpy as np

from ...core.geometry import Addresses, Mask
from ..storage.spaces import Allocation


def valid(home: Allocation, relative: Addresses, nbytes: int, mask: Mask | None) -> Mask:
    """Return for each active lane whether its access is allocated."""
    assert home.valid is not None
    if mask is not None:
        shape = np.broadcast_shapes(relative.shape, mask.shape)
        relative = np.broadcast_to(relative, shape)[np.broadcast_to(mask, shape)]
    valid: Mask = home.valid[relative] & home.valid[relative + (nbytes - 1)]
    return valid


def extent(base: Addresses, mask: Mask | None = None) -> tuple[int, int, int]:
    """Return lowest and highest address, and a number with their common trailing zeros."""
    if mask is None:
        if base.ndim == 0:
            value = int(base)
            return value, value, value
        flat = base.reshape(-1)
        return (
            int(np.minimum.reduce(flat)),
            int(np.maximum.reduce(flat)),
            int(np.bitwise_or.reduce(flat)),
        )
    if base.shape != mask.shape:  # it takes as long as the rest
        shape = np.broadcast_shapes(base.shape, mask.shape)
        base, mask = np.broadcast_to(base, shape), np.broadcast_to(mask, shape)
    chosen = base[mask]
    return extent(chosen) if chosen.size else (1, 0, 0)


def moved(found: tuple[int, int, int], by: int) -> tuple[int, int, int]:
    """Return the ``extent`` of addresses plus a constant.

    Raises:
        OverflowError: An address wraps around.
    """
    low, high, bits = found
    if low + by < -(1 << 63) or high + by >= 1 << 63:
        raise OverflowError
    return low + by, high + by, bits | by
