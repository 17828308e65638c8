"""Candidates for a race that need not be looked at: enough pairs of earlier threads are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat, Mask

_FIRST, _PIECE = 1 << 12, 1 << 18
"""Candidates that are looked at together, at first and at most."""


class PairBound(NamedTuple):
    """Which pairs are wanted, while some are found.

    Attributes:
        last: The last thread whose pairs with later ones are, as it is by now; or all are.
        learnt: Whether that holds of those that store different values as well.
    """

    last: Callable[[], int | None]
    learnt: Callable[[], bool]


class Clip:
    """Leaves out pairs of which both threads come behind a bound.

    Args:
        bound: It may fall while pairs are found.
        keys: Of the accesses remembered: location and thread, ascending.
        start: Of each lane the key of its location; ``thread``: its thread.
        free: Lanes of which nothing is left out until all is learnt of values.
    """

    def __init__(
        self, bound: PairBound, keys: Flat, start: Flat, thread: Flat, free: Mask | None = None
    ) -> None:
        self._bound, self._keys, self._start, self._thread = bound, keys, start, thread
        self._free = free
        self._last: int | None = None
        self.fell()

    def fell(self) -> bool:
        """Whether more may be left out than last time."""
        last, free = self._last, self._free
        self._last = self._bound.last()
        if free is not None and self._bound.learnt():
            self._free = None
        return last != self._last or free is not self._free

    def within(self, low: Flat) -> Flat | slice:
        """Of which lanes anything is left, whose candidates have these keys, and later ones."""
        if self._last is None:
            return slice(None)
        early = (self._thread <= self._last) | (low <= self._start + self._last)
        return np.flatnonzero(early if self._free is None else early | self._free)

    def stops(self, lanes: Flat, end: Flat) -> Flat:
        """Where the candidates of lanes end, as entries, that ended there without a bound."""
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
    """Every (lane, entry) with ``begin[lane] <= entry < end[lane]``, some at a time.

    ``lanes``: their names, if others than their numbers; ``clip`` leaves some out.
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
