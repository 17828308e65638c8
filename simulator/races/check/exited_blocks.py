"""Accesses to shared memory of blocks that may have exited.

Shared memory lasts as long as its block. A thread that accesses another block's memory must
synchronise with some thread of that block afterwards, at the cluster's barrier or an ``mbarrier``
(CUDA C++ Programming Guide, "Distributed Shared Memory").
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import Flat, Geometry
from ...memory.site import Site
from ..accesses import Accesses
from ..order.cluster_clocks import ClusterClocks
from ..order.release_acquire import ReleaseAcquireTracker

Report = Callable[[Site, Flat, Flat], None]
"""Takes the instruction, and threads and columns of some lanes that execute it."""


class Exits:
    """The latest accesses of a batch to shared memory of other blocks."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.staying: Sequence[int] = ()  # columns of blocks that wait for ever: they do not leave
        self._last: dict[int, tuple[Site, NDArray[np.int64]]] = {}

    def access(self, site: Site, lanes: Accesses, now: int) -> None:
        """Record accesses to the memory of other blocks."""
        g = self.geometry
        if site.number not in self._last:
            shape = (g.clusters.size, g.threads, g.columns)  # of whom, and in whose memory
            self._last[site.number] = site, np.zeros(shape, np.int64)
        far = lanes.home != lanes.column
        rank = g.clusters.rank[lanes.column[far]]
        self._last[site.number][1][rank, lanes.thread[far], lanes.home[far]] = now

    def check(
        self, order: ClusterClocks, releases: ReleaseAcquireTracker | None, report: Report
    ) -> None:
        """Report accesses with which the memory's block has not synchronised since.

        It runs at the end of a batch.
        """
        g = self.geometry
        for site, times in self._last.values():
            late: list[tuple[int, int]] = []
            for rank, home in zip(*np.nonzero(times.any(axis=1)), strict=True):
                if home in self.staying:
                    continue
                column = int(g.clusters.columns[home, rank])
                when = times[rank, :, home]
                for thread in np.flatnonzero(when > order.of_block(int(home), column)).tolist():
                    who = int(g.blocks[column]) * g.threads + thread
                    block = int(g.blocks[home])
                    if releases is None or not releases.handed(int(when[thread]), who, block):
                        late.append((column, thread))
            if late:
                columns, threads = np.array(sorted(set(late))).T
                report(site, threads, columns)
