"""Up to when threads have seen each other's work."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...core.geometry import WARP, Flat


@dataclass(slots=True)
class ThreadClock:
    """Up to when a thread had seen each thread of its block, by its number, at some moment.

    Attributes:
        warp: The thread's; ``met``: when the warp last met as a whole, ``block``: when the block.
        warps: Up to when it had seen each warp; ``lanes``: each lane of its own.
        threads: Up to when each thread, through mbarriers.
        others: Up to when those of other blocks of its cluster, by block.
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
        """Whether it takes more to say than when its block and its warp have met."""
        return not (self.warps is None and self.lanes is None and self.threads is None)

    def row(self, threads: int) -> Flat:
        """The same of all ``threads`` of the block, a new array."""
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
