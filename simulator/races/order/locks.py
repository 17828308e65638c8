"""Locks: locations that threads acquire with an atomic and release with a strong write.

A lock orders two critical sections in either order, provided that each thread fences on both sides
of its own. One run shows one of the two orders.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat, Mask, Rows
from ...memory.site import Site
from ...memory.storage.word_ops import unique
from .vector_clock import Blocks, HeldRows, VectorClock, by_lock

NEVER = 1 << 62
COUNTS = ("add", "inc", "dec")
"""Atomics that acquire no lock: they count arrivals, and the last one may reset the count."""

_TIME = 44
"""Bits of a time below the number of a thread."""


class Lock(NamedTuple):
    """A lock that orders two accesses: the acquiring thread, the location, and its scope.

    ``both``: whether the earlier thread also had acquired it at its access. ``by_chance``: whether
    the later thread has released it since, so that it could have had it first.
    """

    taker: int
    place: int
    near: bool
    both: bool
    schedule_dependent: bool = False


class LockOperation(NamedTuple):
    """An acquire or release of a lock: its time, and the fences after or before it by scope.

    ``met``: time of the next barrier after an acquire.
    """

    turn: int
    near: int
    wide: int
    met: int = NEVER


class _LockHandover(NamedTuple):
    """Accesses that a lock orders; ``both``: see ``Lock``; ``turns``: see ``HeldRows``."""

    lock_rows: HeldRows
    both: bool
    at: Flat
    turns: Flat


class Locks:
    """Lock operations of all threads (global numbers).

    Attributes:
        takers: Threads that have acquired a lock.
        open: Those of them without a fence wider than the block since.
        sites: Numbers of the acquiring instructions.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.takers: set[int] = set()
        self.open: dict[int, set[int]] = {}
        self.sites: set[int] = set()
        self._free: set[int] = set()  # locations that were to take before anybody had written there
        # By block and location: of each thread.
        self._takes: dict[tuple[int, int], dict[int, list[LockOperation]]] = {}
        self._newest: dict[tuple[int, int], int] = {}  # the thread that was the last to take
        self._parts: dict[int, dict[int, Rows | None]] = {}  # of each thread, a table by place
        self._tables: dict[int, Rows] = {}
        self._puts: dict[tuple[int, int], list[LockOperation]] = {}

    def take(self, site: Site, place: int, thread: int, turn: int, far: bool, first: bool) -> None:
        """Handle an atomic, which may acquire a lock.

        ``far``: its scope is wider than the block. ``first``: the location has not been written
        before.
        """
        self.sites.add(site.number)
        self._free |= {place} if first else set()
        at = thread // self.threads, place
        takes = self._takes.setdefault(at, {}).setdefault(thread, [])
        self._newest[at] = thread
        self._changed(thread, place)
        self.takers.add(thread)
        near = turn if site.acquires else NEVER
        wide = near if far else NEVER
        if wide == NEVER:
            self.open.setdefault(thread, set()).add(place)
        if takes and takes[-1].near == takes[-1].met == NEVER:
            takes.pop()  # it tried in vain, or went on without a fence
        takes.append(LockOperation(turn, near, wide))

    def free(self, place: int) -> bool:
        """Whether a location was acquired in its initial state and is therefore a lock."""
        return place in self._free

    def put(self, place: int, thread: int, turn: int, near: int, wide: int) -> None:
        """Handle a strong write, which may release a lock."""
        if thread in self._takes.get((thread // self.threads, place), ()):
            self._puts.setdefault((thread, place), []).append(LockOperation(turn, near, wide))

    def fence(self, threads: set[int], now: int, wide: bool) -> None:
        """Handle a fence of threads that may have acquired locks."""
        for thread in threads & self.open.keys():
            for place in self.open[thread]:
                at = thread // self.threads, place
                takes = self._takes[at][thread]
                last = takes[-1]
                takes[-1] = last._replace(
                    near=min(last.near, now), wide=min(last.wide, now if wide else NEVER)
                )
                self._changed(thread, place)
            if wide:
                del self.open[thread]

    def meet(self, threads: Sequence[int], now: int) -> None:
        """Handle a barrier of threads that may have acquired locks."""
        for thread in self.open.keys() & set(threads) if self.open else ():
            for place in self.open[thread]:
                at = thread // self.threads, place
                takes = self._takes[at][thread]
                if takes[-1].met == NEVER:
                    takes[-1] = takes[-1]._replace(met=now)
                    self._changed(thread, place)

    def ordered(
        self, clock: VectorClock, mine: Flat, time: Flat, thread: Flat, met: bool
    ) -> tuple[Mask, Iterator[tuple[Flat, Lock]]]:
        """Return which accesses at ``time`` by ``thread`` a lock orders before those of ``mine``.

        If both threads may have held the lock, the reverse order would need a correct release by
        the asking thread; the lock is returned for that check (also for ``by_chance``). An access
        between the other thread's acquire and its fence is not ordered: in the reverse order
        nothing would make the asking thread's accesses visible to it, so that the two race in some
        order. ``met``: a barrier suffices in place of that fence.
        """
        block, lane = np.divmod(thread, self.threads)
        alone = np.zeros(len(time), bool)  # those that need no second look
        found: list[_LockHandover] = []
        by_block = Blocks(block)
        for lock_rows in by_lock(clock):
            at, row = by_block.among(lock_rows.blocks)
            within = time[at] <= lock_rows.rows[row, lane[at]]
            at, row = at[within], row[within]
            if not at.size:
                continue
            taken, fenced = self._last(lock_rows.place, lock_rows.near, time[at], thread[at], met)
            if lock_rows.place in self._free:
                found.append(
                    _LockHandover(lock_rows, False, at[~taken], lock_rows.turns[row[~taken]])
                )
            else:
                alone[at[~taken]] = True
            taken &= fenced <= time[at]
            found.append(_LockHandover(lock_rows, True, at[taken], lock_rows.turns[row[taken]]))
        known = alone.copy()
        for one in found:
            known[one.at] = True
        return known, self._chosen(found, mine, ~alone)

    def _chosen(
        self, found: Sequence[_LockHandover], mine: Flat, pending: Mask
    ) -> Iterator[tuple[Flat, Lock]]:
        """Choose one lock for each ordered access, preferably one that is not by chance."""
        numbers: dict[Lock | None, int] = {}
        columns: list[Rows] = []
        for lock_rows, both, at, turns in found:
            taker, order = self._takers(lock_rows.place, mine[at])
            which, chance = np.zeros(len(at), np.int64), np.zeros(len(at), bool)
            for who in unique(taker).tolist():
                by_chance = who >= 0 and self._let_go(who, lock_rows.place)
                lock = (
                    Lock(who, lock_rows.place, lock_rows.near, both, by_chance)
                    if who >= 0
                    else None
                )
                some = taker == who
                which[some], chance[some] = numbers.setdefault(lock, len(numbers)), by_chance
            columns.append(np.array([order, np.full(len(at), both), turns, chance, which, at]))
        if not columns:
            return
        rows = np.concatenate(columns, axis=1)
        if len(columns) > 1:
            rows = rows[:, np.lexsort(rows[:4])]
            rows = rows[:, np.unique(rows[5], return_index=True)[1]]
        which, at = rows[4:, pending[rows[5]]]
        for lock, number in numbers.items():
            some = at[which == number]
            if lock is not None and some.size:
                yield some, lock

    def _takers(self, place: int, mine: Flat) -> tuple[Flat, Flat]:
        """Return the thread that acquired a lock for each asking thread (-1.

        None), and their order.

        It is the thread itself, or else the last one of its block, which then holds it for all.
        """
        block = mine // self.threads
        taker, order = np.full(len(mine), -1), 2 * self.threads * (block + 1) - 1
        for one in unique(block).tolist():
            if takes := self._takes.get((one, place)):
                here = np.flatnonzero(block == one)
                taker[here] = self._newest[one, place]
                if len(takes) > 1:
                    own = here[np.isin(mine[here], list(takes))]
                    taker[own], order[own] = mine[own], 2 * mine[own]
        return taker, order

    def _let_go(self, taker: int, place: int) -> bool:
        """Whether a thread acquired a lock that was initially free and has released it."""
        takes = self._takes.get((taker // self.threads, place), {}).get(taker)
        puts = self._puts.get((taker, place))
        return bool(place in self._free and takes and puts and puts[-1].turn > takes[-1].turn)

    def _last(
        self, place: int, near: bool, time: Flat, thread: Flat, met: bool
    ) -> tuple[Mask, Flat]:
        """Whether each thread acquired a lock before a time, and when it fenced after that.

        With ``met`` a barrier counts as well.
        """
        keys, nears, wides, meetings = self._all_takes(place)
        last = np.searchsorted(keys, thread << _TIME | time) - 1
        fenced = (nears if near else wides)[last]
        fenced = np.minimum(fenced, meetings[last]) if met else fenced
        return (keys[last] >> _TIME == thread) & (last > 0), fenced

    def _all_takes(self, place: int) -> Rows:
        """Return all acquires of a location, sorted by thread and time."""
        table = self._tables.get(place)
        if table is None:
            parts = self._parts.get(place, {})
            for thread, part in parts.items():
                if part is None:
                    takes = self._takes[thread // self.threads, place][thread]
                    turns = [(thread << _TIME | t.turn, *t[1:]) for t in takes]
                    parts[thread] = np.array(turns).T
            rows = [parts[thread] for thread in sorted(parts)]
            table = np.concatenate([np.zeros((4, 1), np.int64), *rows], axis=1)
            self._tables[place] = table
        return table

    def _changed(self, thread: int, place: int) -> None:
        self._parts.setdefault(place, {})[thread] = None
        self._tables.pop(place, None)

    def let_go_unfenced(self, lock: Lock, time: int) -> bool:
        """Whether a thread released a lock without a fence after its access at a time."""
        puts = self._puts.get((lock.taker, lock.place), [])
        at = bisect.bisect_right(puts, time, key=lambda put: put.turn)
        fenced = at < len(puts) and (puts[at].near if lock.near else puts[at].wide)
        return lock.both and at < len(puts) and fenced <= time
