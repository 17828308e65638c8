"""Compact lanes: some lanes of a batch side by side, so that only they are computed.

Their register values are scalars or have the shape ``(1, 1, 1, lanes)``, ordered by block and
thread, as if each lane were a block of one thread.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .geometry import WARP, Flat, Geometry, Lanes, Mask

_SHIFT = WARP.bit_length() - 1
_REMEMBERED = 16
"""Values of a mask's that are kept: an unrolled loop accesses several places from one base."""


class CompactLanes:
    """Lanes of a batch by thread and column, 1-D, ascending by column, then thread."""

    def __init__(self, geometry: Geometry, thread: Flat, column: Flat) -> None:
        self.of, self.thread, self.column = geometry, thread, column
        self.flat = thread * geometry.columns + column
        self.shape = (1, 1, 1, len(thread))
        self._chosen: tuple[Mask | None, Flat | slice, Flat] | None = None
        self._values: dict[int, tuple[Lanes, Flat]] = {}

    @classmethod
    def those(cls, geometry: Geometry, mask: Mask) -> CompactLanes:
        """Return the lanes of a mask."""
        rows = np.broadcast_to(mask, geometry.shape).reshape(geometry.threads, -1)
        column, thread = np.divmod(np.flatnonzero(rows.T), geometry.threads)
        return cls(geometry, thread, column)

    def some(self, at: Flat) -> CompactLanes:
        """Return some of the lanes, by compact index."""
        return CompactLanes(self.of, self.thread[at], self.column[at])

    @functools.cached_property
    def _starts(self) -> Flat:
        """Return the start of each warp's lanes."""
        return np.flatnonzero(np.diff(self.places >> _SHIFT, prepend=-1))

    @property
    def warps(self) -> int:
        """Number of warps with any of the lanes."""
        return len(self._starts)

    @functools.cached_property
    def places(self) -> Flat:
        """Return 32 times the compact warp index plus the lane index, for each lane."""
        return in_warps(self.of, self.thread, self.column)

    @functools.cached_property
    def order(self) -> Flat:
        """Return the order of a whole batch: by thread, then block."""
        return np.argsort(self.flat)

    @functools.cached_property
    def mask(self) -> Mask:
        """Mask over the whole batch that selects these lanes."""
        return self.spread(np.True_)

    def gather(self, value: Lanes) -> Lanes:
        """Return a register's values for these lanes."""
        if value.ndim == 0:
            return value
        if value.shape[3] == 1:
            found = self.of.factored(value)[:, 0].take(self.thread)
        elif value.shape[:3] == (1, 1, 1):
            found = value.reshape(-1).take(self.column)
        else:
            found = np.broadcast_to(value, self.of.shape).reshape(-1).take(self.flat)
        return found.reshape(self.shape)

    def gather_mask(self, mask: Mask) -> Mask | None:
        """Return which of the lanes are in a mask; ``None``: all."""
        found = self.gather(mask)
        return None if found.all() else found

    def chosen(self, mask: Mask | None) -> tuple[Flat | slice, Flat]:
        """Return indices and places of a mask's lanes; the last result is cached."""
        if self._chosen is None or self._chosen[0] is not mask:
            self._values.clear()
            if mask is None:
                self._chosen = None, slice(None), self.places
            else:
                at = np.flatnonzero(np.broadcast_to(mask, self.shape))
                self._chosen = mask, at, self.places[at]
        return self._chosen[1:]

    def of_mask(self, value: Lanes, mask: Mask | None) -> Flat:
        """Return a value for a mask's lanes; cached by identity."""
        at, places = self.chosen(mask)
        known = self._values.get(id(value))
        if known is None:
            if len(self._values) > _REMEMBERED:
                self._values.clear()
            flat = value.reshape(-1)[at] if value.ndim else np.full(len(places), value)
            known = self._values[id(value)] = value, flat
        return known[1]

    def spread(self, value: Any) -> Lanes:
        """Return a value for the whole batch, zero elsewhere."""
        full = np.zeros(self.of.shape, value.dtype)
        full.reshape(-1)[self.flat] = value.reshape(-1)
        return full

    def spread_mask(self, mask: Mask | None) -> Mask:
        """Return a mask for the whole batch."""
        return self.mask if mask is None else self.spread(mask)

    def active(self, mask: Mask | None) -> tuple[int, int]:
        """See ``Geometry.active``."""
        if mask is None:
            return len(self.flat), self.warps
        whole = mask if mask.shape == self.shape else np.broadcast_to(mask, self.shape)
        on = whole.reshape(-1)
        return int(np.count_nonzero(on)), int(
            np.count_nonzero(np.logical_or.reduceat(on, self._starts))
        )


def in_warps(g: Geometry, thread: Flat, column: Flat) -> Flat:
    """Return the places of lanes among 32 of each warp with any of them."""
    warp = (thread >> _SHIFT) + column * g.warps
    rank = np.zeros(len(warp), np.int64)
    np.cumsum(warp[1:] != warp[:-1], out=rank[1:])
    places: Flat = (rank << _SHIFT) + (thread & (WARP - 1))
    return places
