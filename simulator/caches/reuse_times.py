"""Reuse times, and hits of an LRU cache by a characteristic time, for all accesses at once.

An LRU cache contains what was used within a time window in which as many distinct lines are used as
it has (H. Che, Y. Tung, Z. Wang: "Hierarchical Web caching systems", IEEE JSAC 20(7), 2002). An
access hits if its line was used within that window. Sets are not simulated.
"""

import numpy as np
from numpy.typing import NDArray

from ..core.geometry import Flat

NEVER = np.inf
"""The age of what was not used before."""


def reuse_times(keys: Flat, times: Flat, period: float = 0.0) -> NDArray[np.float64]:
    """Return the time since the previous access of each key.

    Args:
        keys: Accessed items, integers.
        times: Times of the accesses, in any unit and order; same shape.
        period: If not 0, all accesses also happened so much earlier: a repeated launch.

    Returns:
        For each access the time since the previous one of its key; ``NEVER`` if there is none.
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
    """Return the characteristic time of a cache.

    Args:
        line_ages: Reuse times of the lines.
        span: Duration of all accesses.
        lines: Lines of a cache.
        distinct: Number of distinct lines accessed.
        caches: Number of caches, each with its own keys.

    Returns:
        The window in which that many distinct lines are used; ``NEVER`` if there are fewer.
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
