"""Vector clock of one thread, compressed by block, warp and lane."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...core.geometry import WARP, Flat


@dataclass(slots=True)
class ThreadClock:
    """A thread's vector clock over the threads of its block, at one moment.

    Attributes:
        warp: Number of the thread's warp.
        met: Epoch of the last full barrier of the warp.
        block: Epoch of the last full barrier of the block.
        warps: Epoch of each warp, if partial barriers occurred.
        lanes: Epoch of each lane of its warp.
        threads: Epoch of each thread, through mbarriers.
        others: Epochs of other blocks of its cluster, by block.
    """

    warp: int
    met: int
    block: int
    warps: Flat | None
    lanes: Flat | None
    threads: Flat | None
    others: Mapping[int, Flat] | None = None

    def __getitem__(self, thread: int) -> int:
        warp, time = thread // WARP, self.block
        if self.warps is not None:
            time = max(time, int(self.warps[warp]))
        if warp == self.warp:
            time = max(time, self.met)
            if self.lanes is not None:
                time = max(time, int(self.lanes[thread % WARP]))
        if self.threads is not None:
            time = max(time, int(self.threads[thread]))
        return time

    @property
    def partial(self) -> bool:
        """Whether the last full barriers of block and warp do not determine the clock."""
        return not (self.warps is None and self.lanes is None and self.threads is None)

    def row(self, threads: int) -> Flat:
        """Return the clock as a new array over all ``threads`` of the block."""
        row = np.full(threads, self.block, np.int64)
        if self.warps is not None:
            np.maximum(row, np.repeat(self.warps, WARP)[:threads], out=row)
        mine = row[self.warp * WARP : (self.warp + 1) * WARP]
        np.maximum(mine, self.met, out=mine)
        if self.lanes is not None:
            np.maximum(mine, self.lanes[: len(mine)], out=mine)
        if self.threads is not None:
            np.maximum(row, self.threads, out=row)
        return row
