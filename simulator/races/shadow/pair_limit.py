"""Pruning of race candidates, once enough pairs of lower threads are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat, Mask

_FIRST, _PIECE = 1 << 12, 1 << 18
"""Candidates that are looked at together, at first and at most."""


class PairBound(NamedTuple):
    """Bound of the pairs that are still wanted; it falls while pairs are found.

    Attributes:
        last: Last thread whose pairs with later ones count; initially every thread.
        learnt: Whether this also goes for pairs that store different values.
    """

    last: Callable[[], int | None]
    learnt: Callable[[], bool]


class Clip:
    """Prunes pairs of which both threads are beyond a bound.

    Args:
        bound: The bound, which may fall while pairs are found.
        keys: Location and thread of the recorded accesses, ascending.
        start: Key of each lane's location.
        thread: Each lane's thread.
        free: Lanes that are not pruned until the stored values need no further pairs.
    """

    def __init__(
        self, bound: PairBound, keys: Flat, start: Flat, thread: Flat, free: Mask | None = None
    ) -> None:
        self._bound, self._keys, self._start, self._thread = bound, keys, start, thread
        self._free = free
        self._last: int | None = None
        self.fell()

    def fell(self) -> bool:
        """Whether the bound has fallen since the last call."""
        last, free = self._last, self._free
        self._last = self._bound.last()
        if free is not None and self._bound.learnt():
            self._free = None
        return last != self._last or free is not self._free

    def within(self, low: Flat) -> Flat | slice:
        """Return the lanes with remaining candidates, whose keys start at ``low``."""
        if self._last is None:
            return slice(None)
        early = (self._thread <= self._last) | (low <= self._start + self._last)
        return np.flatnonzero(early if self._free is None else early | self._free)

    def stops(self, lanes: Flat, end: Flat) -> Flat:
        """Return the pruned end of the candidates of lanes, which is ``end`` without a bound."""
        if self._last is None:
            return end
        late = self._thread[lanes] > self._last
        if self._free is not None:
            late &= ~self._free[lanes]
        at, out = np.flatnonzero(late), end.copy()
        last = np.searchsorted(self._keys, self._start[lanes[at]] + self._last + 1)
        out[at] = np.minimum(end[at], last)
        return out


def pieces(
    begin: Flat, end: Flat, lanes: Flat | None = None, clip: Clip | None = None
) -> Iterator[tuple[Flat, Flat]]:
    """Yield every (lane, entry) with ``begin[lane] <= entry < end[lane]``, in pieces.

    ``lanes``: names of the lanes, if not their indices. ``clip``: prunes pairs.
    """
    lanes = np.arange(len(begin)) if lanes is None else lanes
    size = _PIECE if clip is None else _FIRST
    while len(lanes):
        last = end if clip is None else clip.stops(lanes, end)
        some = np.flatnonzero(last > begin)
        lanes, begin, end, counts = lanes[some], begin[some], end[some], (last - begin)[some]
        sums = np.cumsum(counts)
        at = 0
        while at < len(lanes):
            done = sums[at - 1] if at else 0
            to = max(at + 1, int(np.searchsorted(sums, done + size, side="right")))
            each = counts[at:to]
            before = sums[at:to] - each - done
            entry = np.arange(sums[to - 1] - done) - np.repeat(before - begin[at:to], each)
            yield np.repeat(lanes[at:to], each), entry
            at, size = to, min(2 * size, _PIECE)
            if clip is not None and clip.fell():
                break
        lanes, begin, end = lanes[at:], begin[at:], end[at:]
