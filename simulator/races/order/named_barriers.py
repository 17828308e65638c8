"""Who arrived at a named barrier with ``bar.arrive``, for those that wait there next."""

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import WARP, Geometry, Mask, Rows

Pairs = NDArray[np.int64]
"""Up to when each warp has seen each other, ``(warps, warps, columns)``: [mine, other]."""


class NamedBarrierArrivals:
    """Those at one barrier of each block, since it last let threads go."""

    def __init__(self, geometry: Geometry) -> None:
        g = self.geometry = geometry
        self._came = np.zeros((g.threads, g.columns), bool)
        self._times = np.zeros((g.warps, g.columns), np.int64)
        self._heard: Pairs | None = None

    def warps(self, lanes: Mask) -> Rows:
        """The warps of which some of the threads are, ``(warps, columns)``."""
        g = self.geometry
        return np.broadcast_to(g.warp_bits(lanes.reshape(g.shape)) != 0, (g.warps, g.columns))

    def arrive(self, lanes: Mask, pairs: Pairs | None, now: int) -> Rows:
        """Threads arrive; which came behind others of their warp.

        A warp hands on what it had done, and heard, when its first lanes came, not what it does
        and hears later. Who comes again comes to the next one.
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
        """Warps that waited are let go: when each that arrived before did, and had heard what.

        Of those that waited it is what they have heard now, and no time.
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
