"""How far the addresses of an access reach, and whether what they reach is allocated."""

import numpy as np

from ..geometry import Addresses, Mask
from .spaces import Allocation


def valid(home: Allocation, relative: Addresses, nbytes: int, mask: Mask | None) -> Mask:
    """For each lane that is on: whether what it accesses is allocated."""
    assert home.valid is not None
    if mask is not None:
        shape = np.broadcast_shapes(relative.shape, mask.shape)
        relative = np.broadcast_to(relative, shape)[np.broadcast_to(mask, shape)]
    valid: Mask = home.valid[relative] & home.valid[relative + (nbytes - 1)]
    return valid


def extent(base: Addresses, mask: Mask | None) -> tuple[int, int, int]:
    """Lowest and highest address of the lanes, and the bits in which any two may differ."""
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
    shape = np.broadcast_shapes(base.shape, mask.shape)
    chosen = np.broadcast_to(base, shape)[np.broadcast_to(mask, shape)]
    if not chosen.size:
        return 1, 0, 0
    return int(chosen.min()), int(chosen.max()), int(np.bitwise_or.reduce(chosen))
