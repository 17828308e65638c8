"""Reaching writes: for each location of shared memory, every write that may be the last.

If nothing orders two writes, the schedule decides which is last. A write therefore stays behind a
later one until all threads know of the later one: a thread that does not may know of the older one
only.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat, Mask, Rows
from ..order.vector_clock import KnownEpoch
from ..shadow.last_write_epochs import NOBODY
from .reaching_write_overflow import (
    COVERS,
    FENCED,
    FENCER,
    KEY,
    SITE,
    SLOTS,
    THREAD,
    TIME,
    ReachingWriteOverflow,
)

DEPTH = 8
"""Writes of a location that are kept in layers."""
COPY = -1
"""Number of an asynchronous copy in place of a site's; what copies write is not followed."""
At = tuple[Flat, Flat]
"""Locations, and columns."""


class Write(NamedTuple):
    """Arrays of writes.

    Attributes:
        thread: Writing thread.
        site: Number of the site.
        time: Time of the write.
        over: Later writes ordered after it, one bit for each layer.
        fencer: First thread ordered after the write that executed a proxy fence.
        fenced: Time of that fence.
    """

    thread: Rows
    site: Rows
    time: Rows
    over: Rows
    fencer: Rows
    fenced: Rows

    def some(self, which: Flat | At) -> "Write":
        """Return the writes at some places."""
        return Write(*(column[which] for column in self))


class LastWrites:
    """The reaching writes of a batch.

    Attributes:
        layers: The latest write of each location, the one before, ...: ``(places, columns)``.
        crowd: Overflow of the layers.
    """

    def __init__(self, places: int, columns: int) -> None:
        self._shape = places, columns
        self._turn = np.zeros(self._shape, np.int32)
        self.layers = [self._layer()]
        self.crowd = ReachingWriteOverflow(columns)

    def _layer(self) -> Write:
        kinds = np.int32, np.int32, np.int64, np.int16, np.int32, np.int64
        return Write(*(np.full(self._shape, NOBODY, kind) for kind in kinds))

    def add(
        self, at: At, thread: Flat, site: int, now: int, everybody: Flat, known_epoch: KnownEpoch
    ) -> None:
        """Record writes; ``everybody``: epochs that all threads of each column know of."""
        all_at, threads = at, thread
        for _ in range(DEPTH):  # lanes that write one location do so in no order, too
            number = np.arange(len(thread))
            self._turn[at] = number
            chosen: Mask = self._turn[at] == number
            where = at[0][chosen], at[1][chosen]
            self._add(where, thread[chosen], site, now, everybody[where[1]], known_epoch)
            at, thread = (at[0][~chosen], at[1][~chosen]), thread[~chosen]
            if not thread.size:
                break
        self._cover(
            all_at, threads, now, everybody, known_epoch
        )  # what there was no more room for, too
        if site != COPY and thread.size:
            self.crowd.add(at, _rows(thread, site, now))

    def _cover(
        self, at: At, thread: Flat, now: int, everybody: Flat, known_epoch: KnownEpoch
    ) -> None:
        """Mark writes of the overflow that are ordered before new ones."""
        if self.crowd.rows.size:
            lane, entry = self.crowd.meet(at)
            other, mine, column = self.crowd.rows[THREAD, entry], thread[lane], at[1][lane]
            knew = (other == mine) | (
                known_epoch(other, mine, column) >= self.crowd.rows[TIME, entry]
            )
            self.crowd.cover(entry, knew, mine, now, everybody)

    def _add(
        self, at: At, thread: Flat, site: int, now: int, everybody: Flat, known_epoch: KnownEpoch
    ) -> None:
        old = [layer.some(at) for layer in self.layers]
        below = np.zeros(len(thread), bool)
        for level in reversed(range(len(old))):
            one = old[level]
            stays = self._matters(old, level, everybody) & (below | (one.site != COPY))
            below |= stays
            if not stays.any() and level + 1 == len(self.layers):
                continue
            knew = (one.thread == thread) | (known_epoch(one.thread, thread, at[1]) >= one.time)
            if level + 1 == DEPTH:
                self._overflow(at, old, stays & (one.site != COPY), knew, thread, now)
                continue
            if level + 1 == len(self.layers):
                self.layers.append(self._layer())
            moved = one._replace(
                thread=np.where(stays, one.thread, NOBODY), over=one.over << 1 | knew
            )
            for column, values in zip(self.layers[level + 1], moved, strict=True):
                column[at] = values
        top = self.layers[0]
        top.thread[at] = np.where(below, thread, NOBODY) if site == COPY else thread
        top.site[at], top.time[at], top.over[at], top.fencer[at] = site, now, 0, NOBODY

    def _overflow(
        self, at: At, old: list[Write], stays: Mask, knew: Mask, thread: Flat, now: int
    ) -> None:
        """Move the lowest layer of a location to the overflow, with the writes ordered after it."""
        one = old[-1].some(stays)
        rows = _rows(one.thread, one.site, one.time, one.fencer, one.fenced)
        taken = np.zeros(len(one.thread), np.int64)
        above = [(layer.thread[stays], layer.time[stays]) for layer in old[:-1]]
        bits = [one.over >> level & 1 == 1 for level in range(len(above))]
        for (who, when), bit in zip(
            [(thread[stays], np.full(len(taken), now)), *above], [knew[stays], *bits], strict=True
        ):
            which = np.flatnonzero(bit & (taken < SLOTS))
            rows[COVERS + 2 * taken[which], which] = who[which]
            rows[COVERS + 2 * taken[which] + 1, which] = when[which]
            taken[which] += 1
        self.crowd.add((at[0][stays], at[1][stays]), rows)

    def _matters(self, old: list[Write], level: int, everybody: Flat) -> Mask:
        """Whether a layer has a write over which no write is known to all threads."""
        matters: Mask = old[level].thread != NOBODY
        for above in range(level):
            knew = old[level].over >> above & 1 == 1
            matters &= ~knew | (old[above].time > everybody)
        return matters

    def of(self, column: int) -> Iterator[tuple[Flat, Flat, Flat, Flat]]:
        """Yield threads, times and fences of the writes in a column, in the two latest layers."""
        for layer in self.layers:
            yield (
                layer.thread[:, column], layer.time[:, column],
                layer.fencer[:, column], layer.fenced[:, column],
            )  # fmt: skip
        rows = self.crowd.rows
        thread = np.where(rows[KEY] % self.crowd.columns == column, rows[THREAD], NOBODY)
        yield thread, rows[TIME], rows[FENCER], rows[FENCED]

    def known(self, at: At, thread: Flat, known_epoch: KnownEpoch) -> list[tuple[Flat, Write]]:
        """Return for each layer the elements whose threads know of a reaching write.

        The writes are returned with them. There are several layers where atomics meet, or where
        writes race.
        """
        found, knows = [], np.zeros(len(thread), np.int16)
        for level, layer in enumerate(self.layers):
            one = layer.some(at)
            remaining = np.flatnonzero((one.thread != NOBODY) & (one.over & knows == 0))
            if len(self.layers) == 1:  # nothing is below a copy
                remaining = remaining[one.site[remaining] != COPY]
            writer, mine = one.thread[remaining], thread[remaining]
            remaining = remaining[
                (writer == mine)
                | (known_epoch(writer, mine, at[1][remaining]) >= one.time[remaining])
            ]
            knows[remaining] |= 1 << level
            found.append((remaining, one))
        writes = [(remaining[one.site[remaining] != COPY], one) for remaining, one in found]
        return [
            *((remaining, one.some(remaining)) for remaining, one in writes),
            self._of_crowd(at, thread, known_epoch),
        ]

    def _of_crowd(self, at: At, thread: Flat, known_epoch: KnownEpoch) -> tuple[Flat, Write]:
        lane, entry = self.crowd.meet(at)
        rows, mine, column = self.crowd.rows[:, entry], thread[lane], at[1][lane]

        def knows(who: Flat, when: Flat) -> Mask:
            known: Mask = (when > 0) & ((who == mine) | (known_epoch(who, mine, column) >= when))
            return known

        remaining = knows(rows[THREAD], rows[TIME])
        for slot in range(COVERS, len(rows), 2):
            remaining &= ~knows(rows[slot], rows[slot + 1])
        rows = rows[:, remaining]
        nobody = np.zeros(rows.shape[1], np.int16)
        return lane[remaining], Write(
            rows[THREAD], rows[SITE], rows[TIME], nobody, rows[FENCER], rows[FENCED]
        )


def _rows(
    thread: Flat, site: Flat | int, time: Flat | int, fencer: Flat | int = NOBODY,
    fenced: Flat | int = NOBODY,
) -> Rows:  # fmt: skip
    """Return writes in the form of ``ReachingWriteOverflow``, with nothing ordered after them."""
    rows = np.zeros((COVERS + 2 * SLOTS, len(thread)), np.int64)
    rows[THREAD], rows[SITE], rows[TIME], rows[FENCER], rows[FENCED] = (
        thread, site, time, fencer, fenced,
    )  # fmt: skip
    return rows
