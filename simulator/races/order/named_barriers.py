"""Arrivals at named barriers (``bar.arrive``), for the threads that wait there next."""

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import WARP, Geometry, Mask, Rows

Pairs = NDArray[np.int64]
"""Up to when each warp has seen each other, ``(warps, warps, columns)``: [mine, other]."""


class NamedBarrierArrivals:
    """Arrivals at one barrier of each block, since its last completion."""

    def __init__(self, geometry: Geometry) -> None:
        g = self.geometry = geometry
        self._came = np.zeros((g.threads, g.columns), bool)
        self._times = np.zeros((g.warps, g.columns), np.int64)
        self._heard: Pairs | None = None

    def warps(self, lanes: Mask) -> Rows:
        """Return the warps of some threads, ``(warps, columns)``."""
        g = self.geometry
        return np.broadcast_to(g.warp_bits(lanes.reshape(g.shape)) != 0, (g.warps, g.columns))

    def arrive(self, lanes: Mask, pairs: Pairs | None, now: int) -> Rows:
        """Handle arrivals; return the lanes that arrive after others of their warp.

        A warp releases its accesses and clock as of the arrival of its first lanes. A second
        arrival belongs to the next phase.
        """
        begun, new = self.warps(self._came), lanes & ~self._came
        first = self.warps(new) & ~begun
        self._came |= lanes
        self._times[first] = now
        if pairs is not None:
            heard = np.zeros_like(pairs) if self._heard is None else self._heard
            self._heard = np.where(first[:, None, :], pairs, heard)
        late: Rows = new & np.repeat(begun, WARP, axis=0)[: self.geometry.threads]
        return late

    def met(self, waited: Rows, pairs: Pairs) -> tuple[Rows, Pairs]:
        """Return, at the release of waiting warps, arrival times and clocks of the arrived warps.

        A warp that waited contributes its current clock, and no time.
        """
        blocks = waited.any(axis=0)
        heard = np.zeros_like(pairs) if self._heard is None else self._heard
        times = np.where(blocks, self._times, 0)
        informed = np.where(waited[:, None, :], pairs, heard)
        self._times[:, blocks] = 0
        self._came[:, blocks] = False
        if self._heard is not None:
            self._heard[:, :, blocks] = 0
        return times, informed
