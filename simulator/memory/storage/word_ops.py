"""Values as the 32-bit words that shared and local memory have."""

import numpy as np

from ...core.geometry import Flat, Lanes, Mask, Rows


def unique(values: Flat) -> Flat:
    """Return the values, each once, ascending.

    (``np.unique`` hashes, which keys of locations make slow, and imports ``numpy.ma``: 10 ms.)
    """
    flat = values.reshape(-1)
    if not flat.size or (flat == flat[0]).all():  # mostly: a tenth of the time of sorting
        return flat[:1].copy()
    ordered = np.sort(flat)
    found: Flat = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return found


def changes(values: Flat) -> Flat:
    """Return the values, of each run of equal ones one."""
    found: Flat = values[np.append(True, values[1:] != values[:-1])[: len(values)]]
    return found


def among(values: Rows, some: Flat) -> Rows:
    """Return which values are among some others, mostly one."""
    few = unique(some)
    found: Rows = values == few[0] if len(few) == 1 else np.isin(values, few)
    return found


def join(low: Lanes, high: Lanes, dtype: np.dtype[np.generic]) -> Lanes:
    """Return two words as one 64-bit value."""
    out = np.empty((*low.shape, 2), np.int32)
    out[..., 0] = low.view(np.int32)
    out[..., 1] = high.view(np.int32)
    return out.view(dtype)[..., 0]


def split(value: Lanes) -> tuple[Lanes, ...]:
    """Return a value's 32-bit words, low first."""
    if value.dtype.itemsize == 4:
        return (value.view(np.int32),)
    wide = value.view(np.int64)
    return wide.astype(np.int32), (wide >> np.int64(32)).astype(np.int32)


def put(flat: Flat, where: Lanes, value: Lanes, mask: Mask | None) -> None:
    """Store under a mask."""
    if mask is None:
        if where.shape == value.shape or not value.ndim:
            flat[where] = value
            return
    elif where.shape == mask.shape == value.shape:  # a third of the time of what comes then
        flat[where[mask]] = value[mask]
        return
    shapes = [where.shape, value.shape] + ([mask.shape] if mask is not None else [])
    shape = np.broadcast_shapes(*shapes)
    where, value = np.broadcast_to(where, shape), np.broadcast_to(value, shape)
    if mask is None:
        flat[where] = value
    else:
        chosen = np.broadcast_to(mask, shape)
        flat[where[chosen]] = value[chosen]
