"""Happens-before between blocks of a cluster: its barrier, and ``mbarrier`` of other blocks.

``barrier.cluster.arrive`` releases the accesses of its thread; ``.relaxed`` releases those before
its last fence of cluster scope. A thread that has waited acquires what all arriving threads
released (PTX ISA, "barrier.cluster"). An arrival at the ``mbarrier`` of another block releases to
the threads that wait there.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator

import numpy as np

from ...core.geometry import Flat, Geometry, Rows
from ...memory.storage.word_ops import unique
from .mbarrier_phases import Key, Known
from .relaxed_mbarrier import RelaxedMbarriers
from .sync_events import BarrierId, cluster_phase
from .vector_clock import KnownEpoch

_MAX_PHASES = 16
"""Waits of a thread that others may hear of later on, the latest; it knows of all itself."""
_NEVER, _MADE = 1 << 62, 256


class _ClusterAcquires:
    """Clocks that a block's threads acquired from other blocks by ``mbarrier``, with times."""

    def __init__(self, threads: int) -> None:
        self.times: list[list[int]] = [[] for _ in range(threads)]
        self.known: list[list[Known]] = [[] for _ in range(threads)]
        self.first, self.last = np.full(threads, _NEVER), np.full(threads, _NEVER)
        self.newest = np.zeros(threads, np.int64)
        self._nothing: Known = {}  # one for all threads, which then share what they acquire
        self._made: dict[tuple[int, int], tuple[Known, Known, Known]] = {}

    def add(self, threads: Flat, time: int, known: Known) -> None:
        """Record an acquire; threads with equal clocks share one object."""
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
        """Yield what some threads had acquired by given times, each distinct clock once."""
        now = times >= self.last[threads]
        _, some = np.unique(self.newest[threads[now]], return_index=True)
        for thread in threads[now][some].tolist():
            yield self.known[thread][-1]
        for at in np.flatnonzero(~now & (times >= self.first[threads])).tolist():
            thread = int(threads[at])
            yield self.known[thread][bisect.bisect_right(self.times[thread], times[at]) - 1]


class ClusterClocks:
    """Clocks of the threads of a batch with respect to other blocks of their clusters.

    Args:
        near: Known epochs within a block, without the cluster's barrier.
        block_time: Epoch of each block's last full barrier; a cluster wait may raise it.
        unfenced: Releases of relaxed arrivals, if the program has any.
        mixed: Whether some arrivals are relaxed and others may not be.
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
        self._known: dict[tuple[int, int], Known] = {}

    # -- the cluster's barrier ----------------------------------------------------------

    def fence(self, lanes: Rows, now: int) -> None:
        """Handle a fence of cluster scope or wider."""
        self._fenced[lanes] = now

    def make(self, lanes: Rows, now: int) -> None:
        """Handle the initialisation of an ``mbarrier``."""
        self._made[lanes] = now

    def fence_made(self, lanes: Rows) -> None:
        """Handle ``fence.mbarrier_init``: it covers initialisations and what preceded them."""
        self._fenced[lanes] = np.maximum(self._fenced, self._made)[lanes]

    def arrive(self, lanes: Rows, releases: bool, now: int) -> None:
        """Handle an arrival; a numbered phase begins with what its predecessor released."""
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
        """Return the known epochs of threads within their block, ``(these, all)``."""
        everyone = np.arange(self.geometry.threads)
        mine, other = np.repeat(threads, len(everyone)), np.tile(everyone, len(threads))
        where = np.full(len(mine), column)
        known = np.maximum(self._near(other, mine, where), self.horizon(other, where, mine, where))
        return known.reshape(len(threads), -1)

    def wait(self, lanes: Rows, now: int) -> None:
        """Handle a completed wait: every thread of the cluster has arrived in the phase."""
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
        """Return the last phase that threads know to be complete, themselves or transitively."""
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
        """Yield the barriers at which threads have arrived, each with their global numbers."""
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
        """Handle an arrival at the ``mbarrier`` of another block, with the released clocks."""
        for one in known:
            _add(self._open.setdefault(key, {}), one)

    def end(self, key: Key) -> None:
        """Handle the completion of a phase of an ``mbarrier``."""
        self._ended[key] = self._open.pop(key, {})

    def over(self, key: Key) -> Known | None:
        """Return the clock that the last complete phase of an ``mbarrier`` releases."""
        return self._ended.get(key)

    def wait_at(self, column: int, threads: Flat, known: Known | None, now: int) -> None:
        """Handle threads of a block that observe a complete phase."""
        if known:
            heard = self._heard.setdefault(column, _ClusterAcquires(self.geometry.threads))
            heard.add(threads, now, known)

    def forget(self) -> None:
        """Invalidate cached clocks, after a barrier or an acquire."""
        self._known.clear()

    def _known_epochs(self, mine: int, column: int) -> Known:
        """Return what a thread has acquired by ``mbarrier``, itself or through its block."""
        heard = self._heard.get(column)
        if heard is None:
            return {}
        known = self._known.get((mine, column))
        if known is None:
            known = self._known[mine, column] = self._known_by_all(mine, column, heard)
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
        """Return the epochs of threads ``other`` (columns ``there``) in the clocks of ``mine``.

        This includes threads of one block, which also meet at the cluster's barrier.
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
        """Return the epochs of other blocks of the cluster in a thread's clock."""
        known = dict(self._known_epochs(mine, column))
        given = self._phases[int(self._phase(np.array([mine]), np.array([column]))[0])]
        for there in self.geometry.clusters.columns[column].tolist():
            _add(known, {there: np.broadcast_to(given[:, there], (self.geometry.threads,))})
        known.pop(column, None)
        return known

    def of_block(self, column: int, there: int) -> Flat:
        """Return the latest epochs of one block's threads in the clocks of another block's."""
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
