"""Proxy fences: ``fence.proxy.async`` between generic writes and asynchronous reads.

A thread's writes take another path than the reads of a bulk copy or ``wgmma``. A thread that knows
of the write must execute ``fence.proxy.async``, and the thread that starts the read must be ordered
after that fence (PTX ISA, "Async proxy").
"""

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import WARP, Flat, Geometry, Mask, Rows, as_mask
from ...events import Observer
from ...memory.event import AccessEvent
from ...memory.site import PHASE, Site
from ...memory.storage.word_ops import unique
from ..accesses import Race, lanes_of
from ..check.detector import RaceCheck
from ..report.race_log import RaceLog
from ..shadow.last_write_epochs import NOBODY
from ..shadow.shadow_memory import Conflict
from .reaching_writes import COPY, At, LastWrites


class ProxyCheck(Observer):
    """Check of the writes of a batch, until a proxy fence.

    Args:
        race: The race check, which has the happens-before order.
    """

    def __init__(self, race_log: RaceLog, granule: int, shared_bytes: int, race: RaceCheck) -> None:
        self.race_log, self.granule, self.race = race_log, granule, race
        self.order = race.order
        self.places = -(-shared_bytes // granule)
        self.geometry: Geometry
        self.writes: LastWrites

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry
        self.writes = LastWrites(self.places, geometry.columns)
        self._low, self._high = self.places * self.granule, 0  # the bytes that threads have written
        # Of each thread: when it fenced last, and what it had seen of others then.
        self.own = np.zeros((geometry.threads, geometry.columns), np.int64)
        self.heard: dict[str, NDArray[np.int64]] = {}

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site = event.site
        if event.space != "shared" or site.operation == PHASE or not site.counted:
            return
        if site.access == "load" and not site.asynchronous:
            return
        low, high = self._extent(event)
        if not site.asynchronous:
            self._low, self._high = min(low, self._low), max(high, self._high)
        elif low >= self._high or self._low >= high:
            return  # of what threads have not written, nothing is to be followed
        lanes, order = lanes_of(self.geometry, event), self.order.happens_before
        lanes, part = lanes.located(site, self.granule)
        at = lanes.address // self.granule + part, lanes.column
        if site.access == "load":
            self._read(site, at, lanes.thread)
        else:
            number = COPY if site.asynchronous else site.number
            now, everybody = self.order.now, order.block_barrier_epoch
            self.writes.add(at, lanes.thread, number, now, everybody, self._known_epoch)

    def _extent(self, event: AccessEvent) -> tuple[int, int]:
        """Return the bytes of an access, rounded to whole locations."""
        size, (low, high) = self.granule, self.race.reaches.of(event)
        return low // size * size, -(-high // size) * size

    def proxy_fence(self, lanes: Mask | None) -> None:
        """See ``Observer``; one lane of each warp represents all that the warp knows."""
        self.order.now += 1
        on = self.geometry.full(as_mask(lanes))
        self.own[on] = self.order.now
        self._hear(on)
        for first in range(0, len(on), WARP):
            for column in np.flatnonzero(on[first : first + WARP].any(axis=0)).tolist():
                self._fence(
                    np.flatnonzero(on[:, column]), first + int(on[first:, column].argmax()), column
                )

    def _hear(self, on: Rows) -> None:
        """Record the clocks of fencing threads."""
        order, g = self.order.happens_before, self.geometry
        rows = np.flatnonzero(on.any(axis=1))
        for others, known in order.rows(rows):
            if others not in self.heard:
                self.heard[others] = np.zeros((g.threads, *known.shape[1:]), np.int64)
            heard = self.heard[others]
            # (What clusters order is not kept: there a fence counts for all that came before.)
            new = known if order.cluster is None else self.order.now
            heard[rows] = np.where(on[rows][:, None], new, heard[rows])

    def _heard(self, other: Flat, mine: Flat, column: Flat) -> Flat:
        """Return the epochs of others in threads' clocks at their last proxy fence.

        A thread's own accesses are included.
        """
        found = np.where(other == mine, self.own[mine, column], 0)
        near = other // WARP == mine // WARP
        of = {"warps": other // WARP, "own lanes": other % WARP, "threads": other}
        for others, heard in self.heard.items():
            known = heard[mine, of.get(others, 0), column]
            found = np.maximum(found, np.where(near, known, 0) if "own" in others else known)
        return found

    def _fence(self, threads: Flat, speaker: int, column: int) -> None:
        for writers, times, fencers, fenced in self.writes.of(column):
            open_ = np.flatnonzero((writers != NOBODY) & (fencers == NOBODY))
            writer = writers[open_]
            own = np.isin(writer, threads)
            known = self._known_epoch(writer, np.array(speaker), np.array(column))
            passed = own | (known >= times[open_])
            fencers[open_[passed]] = np.where(own, writer, speaker)[passed]
            fenced[open_[passed]] = self.order.now

    def _known_epoch(self, other: Flat, mine: Flat, column: Flat) -> Flat:
        """Return the epochs of others in threads' clocks."""
        who, where = np.broadcast_to(mine, other.shape), np.broadcast_to(column, other.shape)
        return self.order.happens_before.known_epoch(other, who, where)

    def _passed(self, writer: Flat, reader: Flat, column: Flat) -> Flat:
        """Return each writer's epoch covered by the last fence of a thread known to the reader."""
        g = self.geometry
        everyone, passed = np.arange(g.threads), np.zeros(len(writer), np.int64)
        keys = column * g.threads + reader
        known: dict[bytes, Flat] = {}
        for key in unique(keys).tolist():
            where, who = divmod(key, g.threads)
            fenced = self.own[:, where]
            knows = self._known_epoch(everyone, np.array(who), np.array(where)) >= fenced
            fencers = np.flatnonzero((fenced > 0) & (knows | (everyone == who)))
            name = fencers.tobytes() + where.to_bytes(4, "little")
            if name not in known:
                pairs = [a.reshape(-1) for a in np.meshgrid(everyone, fencers, indexing="ij")]
                times = self._heard(pairs[0], pairs[1], np.full(pairs[0].size, where))
                known[name] = times.reshape(g.threads, -1).max(axis=1, initial=0)
            at = keys == key
            passed[at] = known[name][writer[at]]
        return passed

    def _read(self, site: Site, at: At, thread: Flat) -> None:
        for lane, write in self.writes.known(at, thread, self._known_epoch):
            if not lane.size:
                continue
            mine, column = thread[lane], at[1][lane]
            through = write.fencer == mine
            through |= self._known_epoch(write.fencer, mine, column) >= write.fenced
            through &= write.fencer != NOBODY
            late = ~through & (self._heard(write.thread, mine, column) < write.time)
            bad = np.flatnonzero(late)
            if bad.size:
                passed = self._passed(write.thread[bad], mine[bad], column[bad])
                bad = bad[passed < write.time[bad]]
            for number in unique(write.site[bad]).tolist():
                those = bad[write.site[bad] == number]
                self._log(number, site, at, lane[those], write.thread[those], mine[those])

    def _log(self, write: int, site: Site, at: At, lane: Flat, writer: Flat, mine: Flat) -> None:
        g, column = self.geometry, at[1][lane]
        race = Race(
            self.race_log.sites[write], site, "shared", None, self.granule, "proxy", "proxy",
            g.threads, g.columns,
        )  # fmt: skip
        base = g.blocks[column] * g.threads
        place = at[0][lane] * g.columns + column
        conflict = Conflict(place, base + writer, base + mine, lane, lane)
        self.race_log.add(race, conflict, np.ones(len(lane), bool), np.zeros(len(lane), bool))
