"""Which accesses a cache serves, worked out for all of them at once.

A cache that throws out what was used longest ago holds whatever was used within some window of
time, the one in which as many distinct lines are used as it has (H. Che, Y. Tung, Z. Wang:
"Hierarchical Web caching systems", IEEE JSAC 20(7), 2002). So an access is a hit if the same
thing was used within that window. No set of a cache is looked at one by one.
"""

import numpy as np
from numpy.typing import NDArray

from ..core.geometry import Flat

NEVER = np.inf
"""The age of what was not used before."""


def reuse_times(keys: Flat, times: Flat, period: float = 0.0) -> NDArray[np.float64]:
    """How long ago each access's key was used before it.

    Args:
        keys: What is used, an integer each; ``times``: when, ascending or not.
        times: In any unit; of the same shape.
        period: If it is not 0, all of it happened before, so much earlier: a launch that is
            repeated.

    Returns:
        For each access the time since the one before it of the same key; ``NEVER`` if none was.
    """
    order = np.lexsort((times, keys))
    sorted_keys, sorted_times = keys[order], times[order].astype(np.float64)
    same = np.zeros(len(keys), bool)
    same[1:] = sorted_keys[1:] == sorted_keys[:-1]
    gaps = np.full(len(keys), NEVER)
    gaps[1:][same[1:]] = np.diff(sorted_times)[same[1:]]
    if period and len(keys):
        first = np.flatnonzero(~same)
        last = np.append(first[1:], len(keys)) - 1
        gaps[first] = sorted_times[first] + period - sorted_times[last]
    found = np.empty(len(keys))
    found[order] = gaps
    return found


def window(
    line_ages: NDArray[np.float64], span: float, lines: float, distinct: float, caches: int = 1
) -> float:
    """For how long a cache keeps a line.

    Args:
        line_ages: ``ages`` of the lines that were used.
        span: How long all of it took.
        lines: How many a cache holds.
        distinct: How many were used.
        caches: Of how many caches these are, each with its own keys.

    Returns:
        The window in which that many distinct lines are used; ``NEVER`` if there are not so many.
    """
    if distinct <= lines * caches:
        return NEVER
    ordered = np.sort(line_ages)
    # In a window of length t as many lines are used as the sum of min(age, t), over the span.
    known = ordered[np.isfinite(ordered)]
    below = np.concatenate([[0.0], np.cumsum(known)])
    counts = len(ordered) - np.arange(len(known) + 1)
    wanted = lines * span * caches
    at = int(np.searchsorted(below + counts * np.append(known, span), wanted))
    at = min(at, len(known))
    return float((wanted - below[at]) / counts[at]) if counts[at] else NEVER
