"""Order between the blocks of a cluster: by their barrier, and by ``mbarrier`` from afar.

``barrier.cluster.arrive`` hands on what its thread has done, if it releases; relaxed, what that
had done by its last fence of the cluster's scope. Who has waited has seen what all have handed on
that arrived (PTX ISA, "barrier.cluster"). An arrival at the ``mbarrier`` of another block likewise
hands on to who waits there.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator

import numpy as np

from ...core.geometry import Flat, Geometry, Rows
from ...memory.storage.word_ops import unique
from ..in_flight.reaching_writes import KnownEpoch
from .mbarrier_phases import Key, Known
from .relaxed_mbarrier import RelaxedMbarriers
from .sync_events import BarrierId, cluster_phase

_MAX_PHASES = 16
"""Waits of a thread that others may hear of later on, the latest; it knows of all itself."""
_NEVER, _MADE = 1 << 62, 256


class _ClusterAcquires:
    """What threads of a block have heard of others by ``mbarrier``: all that each has, by when."""

    def __init__(self, threads: int) -> None:
        self.times: list[list[int]] = [[] for _ in range(threads)]
        self.known: list[list[Known]] = [[] for _ in range(threads)]
        self.first, self.last = np.full(threads, _NEVER), np.full(threads, _NEVER)
        self.newest = np.zeros(threads, np.int64)
        self._nothing: Known = {}  # one for all, who then share what they hear
        self._made: dict[tuple[int, int], tuple[Known, Known, Known]] = {}

    def add(self, threads: Flat, time: int, known: Known) -> None:
        """Threads hear something; who knows the same shares it."""
        for thread in threads.tolist():
            mine = self.known[thread]
            before = mine[-1] if mine else self._nothing
            _, _, both = self._made.get((id(before), id(known))) or (None, None, None)
            if both is None:
                _add(both := dict(before), known)
                # (What is kept of the two keeps their numbers theirs.)
                self._made[id(before), id(known)] = before, known, both
            mine.append(both)
            self.times[thread].append(time)
            del mine[:-_MAX_PHASES], self.times[thread][:-_MAX_PHASES]
            self.first[thread], self.last[thread] = self.times[thread][0], time
            self.newest[thread] = id(both)
        if len(self._made) > _MADE:
            self._made.clear()

    def by(self, threads: Flat, times: Flat) -> Iterator[Known]:
        """What each of some threads had heard by a time; the same of several comes once."""
        now = times >= self.last[threads]
        _, some = np.unique(self.newest[threads[now]], return_index=True)
        for thread in threads[now][some].tolist():
            yield self.known[thread][-1]
        for at in np.flatnonzero(~now & (times >= self.first[threads])).tolist():
            thread = int(threads[at])
            yield self.known[thread][bisect.bisect_right(self.times[thread], times[at]) - 1]


class ClusterClocks:
    """What threads of one batch have seen of those of other blocks in their clusters.

    Args:
        near: Up to when threads of a block have seen each other, without the clusters' barrier.
        block_time: Up to when all threads of each block have; a wait may raise it.
        unfenced: What relaxed arrivals hand on, if there are any.
        mixed: Whether some arrivals are relaxed, and others may not be.
    """

    def __init__(
        self, geometry: Geometry, near: KnownEpoch, block_time: Flat,
        unfenced: RelaxedMbarriers | None,
        mixed: bool,
    ) -> None:  # fmt: skip
        self.geometry, self.mixed = geometry, mixed
        self._near, self._block_time, self._unfenced = near, block_time, unfenced
        shape = geometry.threads, geometry.columns
        self._arrivals, self._waited = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._waited_at, self._fenced = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._made = np.zeros(shape, np.int64)
        self._phases: dict[int, Rows] = {0: np.zeros((1, geometry.columns), np.int64)}
        self._open: dict[Key, Known] = {}
        self._ended: dict[Key, Known] = {}
        self._heard: dict[int, _ClusterAcquires] = {}
        self._told_to: dict[tuple[int, int], Known] = {}

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
        for number in unique(self._arrivals[lanes]).tolist():
            which = lanes & (self._arrivals == number)
            given = self._phases.get(number)
            if given is None or len(given) < len(lanes):
                given = self._phases[number - 1] if given is None else given
                given = self._phases[number] = np.broadcast_to(given, lanes.shape).copy()
            given[which] = now if releases else np.maximum(given, self._fenced)[which]
            if not releases and self._unfenced is not None:
                for column in np.flatnonzero(which.any(axis=0)).tolist():
                    threads = np.flatnonzero(which[:, column])
                    for known in self._unfenced.given(threads, column, far=True):
                        for there, times in known.items():
                            given[:, there] = np.maximum(given[:, there], times)
            if releases and self.mixed:
                for column in np.flatnonzero(which.any(axis=0)).tolist():
                    threads = np.flatnonzero(which[:, column])
                    of_block = self._of_block(threads, column).max(axis=0)
                    given[:, column] = np.maximum(given[:, column], of_block)

    def _of_block(self, threads: Flat, column: int) -> Rows:
        """Up to when threads have seen each of their block, ``(these, all)``."""
        everyone = np.arange(self.geometry.threads)
        mine, other = np.repeat(threads, len(everyone)), np.tile(everyone, len(threads))
        where = np.full(len(mine), column)
        known = np.maximum(self._near(other, mine, where), self.horizon(other, where, mine, where))
        return known.reshape(len(threads), -1)

    def wait(self, lanes: Rows, now: int) -> None:
        """Threads have waited: everybody has arrived in their phase."""
        self.forget()
        self._waited[lanes], self._waited_at[lanes] = self._arrivals[lanes], now
        for number in unique(self._waited[lanes]).tolist():
            given = self._phases[number]
            if len(given) > 1 and (given == given[:1]).all():
                given = self._phases[number] = given[:1].copy()
            all_there = (self._waited == number).all(axis=0) & (given == given[:1]).all(axis=0)
            times = self._block_time
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
            known = self._near(ahead, np.full(len(ahead), me), np.full(len(ahead), where))
            informed = ahead[known >= self._waited_at[ahead, where]]
            phase[at] = self._waited[informed, where].max(initial=phase[at])
        return phase

    def phases(self, lanes: Rows) -> Iterator[tuple[BarrierId, Flat]]:
        """The barriers at which threads have arrived, and at each their global numbers."""
        g = self.geometry
        for columns in np.unique(g.clusters.columns, axis=0):
            thread, at = np.nonzero(lanes[:, columns])
            column = columns[at]
            phase, number = self._arrivals[thread, column], g.blocks[column] * g.threads + thread
            for one in unique(phase).tolist():
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
            heard = self._heard.setdefault(column, _ClusterAcquires(self.geometry.threads))
            heard.add(threads, now, known)

    def forget(self) -> None:
        """Threads meet, or hear: what each knows has to be worked out anew."""
        self._told_to.clear()

    def _known_epochs(self, mine: int, column: int) -> Known:
        """What a thread has heard by ``mbarrier``, by itself or from others of its block."""
        heard = self._heard.get(column)
        if heard is None:
            return {}
        known = self._told_to.get((mine, column))
        if known is None:
            known = self._told_to[mine, column] = self._known_by_all(mine, column, heard)
        return known

    def _known_by_all(self, mine: int, column: int, heard: _ClusterAcquires) -> Known:
        others = np.flatnonzero(heard.last < _NEVER)
        of_others = self._near(others, np.full(len(others), mine), np.full(len(others), column))
        of_others[others == mine] = _NEVER
        known: Known = {}
        for part in {id(part): part for part in heard.by(others, of_others)}.values():
            _add(known, part)
        return known

    # -- asking -------------------------------------------------------------------------

    def horizon(self, other: Flat, there: Flat, mine: Flat, column: Flat) -> Flat:
        """Up to when threads ``mine`` of columns have seen threads ``other`` of columns ``there``.

        Of their own block too, which meets at the cluster's barrier as well.
        """
        out = np.zeros(len(other), np.int64)
        number = self.geometry.clusters.number
        phase = np.where(number[there] == number[column], self._phase(mine, column), -1)
        for one in unique(phase[phase >= 0]).tolist():
            at, given = np.flatnonzero(phase == one), self._phases[one]
            row = other[at] if len(given) > 1 else np.zeros(len(at), np.int64)
            out[at] = given[row, there[at]]
        if self._heard and len(mine):
            threads = self.geometry.threads
            asking, which = np.unique(column * threads + mine, return_inverse=True)
            turn = np.argsort(which, kind="stable")
            stops = np.cumsum(np.bincount(which, minlength=len(asking)))[:-1]
            for asker, at in zip(asking.tolist(), np.split(turn, stops), strict=True):
                known = self._known_epochs(asker % threads, asker // threads)
                for home in known.keys() & set(unique(there[at]).tolist()):
                    some = at[there[at] == home]
                    out[some] = np.maximum(out[some], known[home][other[some]])
        return out

    def others(self, mine: int, column: int) -> Known:
        """Up to when a thread has seen those of the other blocks of its cluster."""
        known = dict(self._known_epochs(mine, column))
        given = self._phases[int(self._phase(np.array([mine]), np.array([column]))[0])]
        for there in self.geometry.clusters.columns[column].tolist():
            _add(known, {there: np.broadcast_to(given[:, there], (self.geometry.threads,))})
        known.pop(column, None)
        return known

    def of_block(self, column: int, there: int) -> Flat:
        """Up to when any thread of a block has seen each thread of another one."""
        given = self._phases[int(self._waited[:, column].max())]
        known: Flat = np.broadcast_to(given[:, there], (self.geometry.threads,)).copy()
        heard = self._heard.get(column)
        for of_thread in heard.known if heard else ():
            if of_thread and there in of_thread[-1]:
                np.maximum(known, of_thread[-1][there], out=known)
        return known


def _add(known: Known, more: Known) -> None:
    for column, times in more.items():
        old = known.get(column)
        known[column] = times if old is None else np.maximum(old, times)
