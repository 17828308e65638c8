"""How often the elements of an array are read: extremes, mean, and ranges of counts."""

from typing import Any

import numpy as np

MAX_LEVELS = 6
"""Different counts up to which each is a level of its own."""
_QUANTILES = 5


def use_counts(counts: Any) -> dict[str, Any]:
    """Return least, greatest and mean count, and levels ``(from, to, elements)`` of counts.

    If there are more than ``MAX_LEVELS`` different counts, each level has at least a fifth of the
    elements, except the last one.
    """
    flat = np.asarray(counts).reshape(-1)
    if not flat.size:
        return {"low": 0, "high": 0, "mean": 0.0, "levels": []}
    values, sizes = np.unique(flat, return_counts=True)
    pairs = list(zip(values.tolist(), sizes.tolist(), strict=True))
    levels: list[list[int]] = []
    for value, size in pairs:
        is_full = not levels or len(pairs) <= MAX_LEVELS or levels[-1][2] >= flat.size / _QUANTILES
        if is_full:
            levels.append([int(value), int(value), 0])
        levels[-1][1] = int(value)
        levels[-1][2] += size
    return {
        "low": int(values[0]), "high": int(values[-1]), "mean": float(flat.mean()),
        "levels": levels,
    }  # fmt: skip
