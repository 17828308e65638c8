"""What the asynchronous proxy reads of shared memory has passed a fence between the proxies.

A thread's own writes go another way than the reads of a copy in bulk or a ``wgmma``: somebody who
has seen a write has to execute ``fence.proxy.async``, and who starts the read has to have seen
that (PTX ISA, "Async proxy").
"""

import numpy as np
from numpy.typing import NDArray

from ..events import Observer
from ..geometry import WARP, Flat, Geometry, Mask, as_mask
from ..memory.event import Event
from ..memory.site import PHASE, Site
from .accesses import Race, lanes_of
from .book import RaceBook
from .detector import RaceCheck
from .shadow import Conflict

_NOBODY = -1


class ProxyCheck(Observer):
    """Follows the writes of a batch until a fence.

    Args:
        race: Knows who has seen whom.
    """

    def __init__(self, book: RaceBook, granule: int, shared_bytes: int, race: RaceCheck) -> None:
        self.book, self.granule, self.race = book, granule, race
        self.places = -(-shared_bytes // granule)
        self.geometry: Geometry
        self.writer: NDArray[np.int64]

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``; of each location: who wrote it, when, where, and who has fenced."""
        self.geometry = geometry
        shape = (self.places, geometry.columns)
        self.writer, self.fencer = (np.full(shape, _NOBODY, np.int64) for _ in range(2))
        self.time, self.fenced = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.site = np.zeros(shape, np.int32)
        # Of each thread: when it fenced last, and of what time it had heard then.
        self.own, self.heard = np.zeros((2, geometry.threads, geometry.columns), np.int64)

    def access(self, event: Event) -> None:
        """See ``Observer``."""
        site = event.site
        if event.space != "shared" or site.operation == PHASE or not site.counted:
            return
        if (site.access == "load") != site.asynchronous:
            return
        lanes = lanes_of(self.geometry, event)
        for part in range(max(1, site.nbytes // self.granule)):
            at = lanes.address // self.granule + part, lanes.column
            if site.access == "load":
                self._read(site, at, lanes.thread)
            else:
                self.writer[at], self.time[at] = lanes.thread, self.race.now
                self.site[at], self.fencer[at] = site.number, _NOBODY

    def proxy_fence(self, lanes: Mask | None) -> None:
        """See ``Observer``; one lane of each warp speaks for all that it has seen."""
        self.race.now += 1
        on = self.geometry.full(as_mask(lanes))
        self.own[on] = self.race.now
        order = self.race.happens_before
        self.heard[on] = order.latest()[on] if order.cluster is None else self.race.now
        for first in range(0, len(on), WARP):
            for column in np.flatnonzero(on[first : first + WARP].any(axis=0)).tolist():
                self._fence(
                    np.flatnonzero(on[:, column]), first + int(on[first:, column].argmax()), column
                )

    def _fence(self, threads: Flat, speaker: int, column: int) -> None:
        open_ = np.flatnonzero(
            (self.writer[:, column] != _NOBODY) & (self.fencer[:, column] == _NOBODY)
        )
        if not open_.size:
            return
        writer = self.writer[open_, column]
        own = np.isin(writer, threads)
        seen = self._seen(writer, speaker, column) >= self.time[open_, column]
        at = open_[own | seen]
        self.fencer[at, column] = np.where(own, writer, speaker)[own | seen]
        self.fenced[at, column] = self.race.now

    def _seen(self, other: Flat, mine: int | Flat, column: int | Flat) -> Flat:
        """Up to when threads have seen what others did."""
        who, where = np.broadcast_to(mine, other.shape), np.broadcast_to(column, other.shape)
        return self.race.happens_before.horizon(other, who, where)

    def _read(self, site: Site, at: tuple[Flat, Flat], thread: Flat) -> None:
        g, column = self.geometry, at[1]
        writer, fencer = self.writer[at], self.fencer[at]
        own = (writer == thread) | (self._seen(writer, thread, column) >= self.time[at])
        through = (fencer == thread) | (self._seen(fencer, thread, column) >= self.fenced[at])
        # A fence of the reader's own, after the write and after it last heard of others since:
        # what it has seen by now it is taken to have seen by then.
        fenced, heard = self.own[thread, column], self.heard[thread, column]
        mine = np.where(writer == thread, fenced, np.minimum(fenced, heard)) >= self.time[at]
        bad = np.flatnonzero((writer != _NOBODY) & own & ~mine & ~((fencer != _NOBODY) & through))
        for number in np.unique(self.site[at][bad]).tolist():
            lane = bad[self.site[at][bad] == number]
            race = Race(
                self.book.sites[number], site, "shared", None, self.granule, "proxy", "proxy",
                g.threads, g.columns,
            )  # fmt: skip
            base = g.blocks[column[lane]] * g.threads
            place = at[0][lane] * g.columns + column[lane]
            conflict = Conflict(place, base + writer[lane], base + thread[lane], lane, lane)
            self.book.add(race, conflict, np.ones(len(lane), bool), np.zeros(len(lane), bool))
