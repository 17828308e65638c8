"""Order between the blocks of a cluster: by their barrier, and by ``mbarrier`` from afar.

``barrier.cluster.arrive`` hands on what its thread has done, if it releases; relaxed, what that
had done by its last fence of the cluster's scope. Who has waited has seen what all have handed on
that arrived (PTX ISA, "barrier.cluster"). An arrival at the ``mbarrier`` of another block likewise
hands on to who waits there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..geometry import Flat, Geometry, Rows
from ..memory.words import distinct
from .noted import Place, cluster_phase
from .phases import Key

if TYPE_CHECKING:
    from .happens_before import HappensBefore

_KEPT = 16
"""Waits of the threads of a block that are kept, the latest."""
Known = dict[int, Flat]
"""Up to when each thread of some blocks (by column) has been seen."""


@dataclass
class _Wait:
    """Threads of a block have heard of others, at a time."""

    threads: Flat
    time: int
    known: Known


class ClusterOrder:
    """What threads of one batch have seen of those of other blocks in their clusters.

    Args:
        block: The order within each block.
        mixed: Whether some arrivals are relaxed, and others may not be.
    """

    def __init__(self, geometry: Geometry, block: HappensBefore, mixed: bool) -> None:
        self.geometry, self.block, self.mixed = geometry, block, mixed
        shape = geometry.threads, geometry.columns
        self._arrivals, self._waited = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._waited_at, self._fenced = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._made = np.zeros(shape, np.int64)
        self._phases: dict[int, Rows] = {0: np.zeros((1, geometry.columns), np.int64)}
        self._open: dict[Key, Known] = {}
        self._ended: dict[Key, Known] = {}
        self._heard: dict[int, list[_Wait]] = {}

    # -- the cluster's barrier ----------------------------------------------------------

    def fence(self, lanes: Rows, now: int) -> None:
        """A fence of the cluster's scope, or a wider one."""
        self._fenced[lanes] = now

    def make(self, lanes: Rows, now: int) -> None:
        """Threads initialise an ``mbarrier``."""
        self._made[lanes] = now

    def fence_made(self, lanes: Rows) -> None:
        """A fence for that alone, and for what a thread did before the last that it made."""
        self._fenced[lanes] = np.maximum(self._fenced, self._made)[lanes]

    def arrive(self, lanes: Rows, releases: bool, now: int) -> None:
        """Threads arrive; a phase has a number, and begins with what the last handed on."""
        self._arrivals[lanes] += 1
        for number in distinct(self._arrivals[lanes]).tolist():
            which = lanes & (self._arrivals == number)
            given = self._phases.get(number)
            if given is None or len(given) < len(lanes):
                given = self._phases[number - 1] if given is None else given
                given = self._phases[number] = np.broadcast_to(given, lanes.shape).copy()
            given[which] = now if releases else np.maximum(given, self._fenced)[which]
            if releases and self.mixed:
                for column in np.flatnonzero(which.any(axis=0)).tolist():
                    threads = np.flatnonzero(which[:, column])
                    seen = self._of_block(threads, column).max(axis=0)
                    given[:, column] = np.maximum(given[:, column], seen)

    def _of_block(self, threads: Flat, column: int) -> Rows:
        """Up to when threads have seen each of their block, ``(these, all)``."""
        everyone = np.arange(self.geometry.threads)
        mine, other = np.repeat(threads, len(everyone)), np.tile(everyone, len(threads))
        return self.block.horizon(other, mine, np.full(len(mine), column)).reshape(len(threads), -1)

    def wait(self, lanes: Rows, now: int) -> None:
        """Threads have waited: everybody has arrived in their phase."""
        self._waited[lanes], self._waited_at[lanes] = self._arrivals[lanes], now
        for number in distinct(self._waited[lanes]).tolist():
            given = self._phases[number]
            if len(given) > 1 and (given == given[:1]).all():
                given = self._phases[number] = given[:1].copy()
            all_there = (self._waited == number).all(axis=0) & (given == given[:1]).all(axis=0)
            times = self.block.block_time
            times[all_there] = np.maximum(times, given[0])[all_there]
        for number in [n for n in self._phases if n < self._waited.min()]:
            del self._phases[number]

    def _phase(self, mine: Flat, column: Flat) -> Flat:
        """The last phase that threads know to be over: their own wait, or of who told them."""
        phase: Flat = self._waited[mine, column]
        uneven = self._waited.max(axis=0) > self._waited.min(axis=0)
        for at in np.flatnonzero(uneven[column] & (phase < self._waited.max(axis=0)[column])):
            me, where = int(mine[at]), int(column[at])
            ahead = np.flatnonzero(self._waited[:, where] > phase[at])
            seen = self.block.near(ahead, np.full(len(ahead), me), np.full(len(ahead), where))
            told = ahead[seen >= self._waited_at[ahead, where]]
            phase[at] = self._waited[told, where].max(initial=phase[at])
        return phase

    def phases(self, lanes: Rows) -> Iterator[tuple[Place, Flat]]:
        """The barriers at which threads have arrived, and at each their global numbers."""
        g = self.geometry
        for columns in np.unique(g.clusters.columns, axis=0):
            thread, at = np.nonzero(lanes[:, columns])
            column = columns[at]
            phase, number = self._arrivals[thread, column], g.blocks[column] * g.threads + thread
            for one in distinct(phase).tolist():
                place = cluster_phase(int(g.clusters.number[columns[0]]), one)
                yield place, number[phase == one]

    # -- mbarriers from afar --------------------------------------------------------------

    def arrive_at(self, key: Key, known: Iterable[Known]) -> None:
        """Threads arrive at the ``mbarrier`` of another block, with what each hands on."""
        for one in known:
            _add(self._open.setdefault(key, {}), one)

    def end(self, key: Key) -> None:
        """A phase of an ``mbarrier`` is over."""
        self._ended[key] = self._open.pop(key, {})

    def over(self, key: Key) -> Known | None:
        """What its last phase that is over hands on."""
        return self._ended.get(key)

    def wait_at(self, column: int, threads: Flat, known: Known | None, now: int) -> None:
        """Threads of a block see that a phase is over."""
        if known:
            heard = self._heard.setdefault(column, [])
            last = heard[-1] if heard else None
            if last is None or last.known is not known or not np.array_equal(last.threads, threads):
                heard.append(_Wait(threads, now, known))
            del heard[:-_KEPT]

    def _told(self, mine: int, column: int) -> Known:
        """What a thread has heard by ``mbarrier``, by itself or from others of its block."""
        known: Known = {}
        for wait in self._heard.get(column, ()):
            others = wait.threads
            seen = self.block.near(others, np.full(len(others), mine), np.full(len(others), column))
            if (others == mine).any() or (seen >= wait.time).any():
                _add(known, wait.known)
        return known

    # -- asking -------------------------------------------------------------------------

    def horizon(self, other: Flat, there: Flat, mine: Flat, column: Flat) -> Flat:
        """Up to when threads ``mine`` of columns have seen threads ``other`` of columns ``there``.

        Of their own block too, which meets at the cluster's barrier as well.
        """
        out = np.zeros(len(other), np.int64)
        number = self.geometry.clusters.number
        phase = np.where(number[there] == number[column], self._phase(mine, column), -1)
        for one in distinct(phase[phase >= 0]).tolist():
            at, given = np.flatnonzero(phase == one), self._phases[one]
            row = other[at] if len(given) > 1 else np.zeros(len(at), np.int64)
            out[at] = given[row, there[at]]
        if self._heard:
            known: dict[tuple[int, int], Known] = {}
            for i, (who, where) in enumerate(zip(mine.tolist(), column.tolist(), strict=True)):
                if (who, where) not in known:
                    known[who, where] = self._told(who, where)
                heard = known[who, where].get(int(there[i]))
                if heard is not None:
                    out[i] = max(out[i], heard[other[i]])
        return out

    def others(self, mine: int, column: int) -> Known:
        """Up to when a thread has seen those of the other blocks of its cluster."""
        known = self._told(mine, column)
        given = self._phases[int(self._phase(np.array([mine]), np.array([column]))[0])]
        for there in self.geometry.clusters.columns[column].tolist():
            _add(known, {there: np.broadcast_to(given[:, there], (self.geometry.threads,))})
        known.pop(column, None)
        return known

    def of_block(self, column: int, there: int) -> Flat:
        """Up to when any thread of a block has seen each thread of another one."""
        given = self._phases[int(self._waited[:, column].max())]
        known: Flat = np.broadcast_to(given[:, there], (self.geometry.threads,)).copy()
        for wait in self._heard.get(column, ()):
            if there in wait.known:
                np.maximum(known, wait.known[there], out=known)
        return known


def _add(known: Known, more: Known) -> None:
    for column, times in more.items():
        old = known.get(column)
        known[column] = times if old is None else np.maximum(old, times)
