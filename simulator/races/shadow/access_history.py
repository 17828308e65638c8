"""Access history of one instruction: the latest access of each thread to each location."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat, Mask
from ...memory.site import Site
from ...memory.storage.word_ops import unique

_FEW = 8
"""Where a table is so many times as long as what is added, only what that touches is looked at."""
_WAITING = 1 << 18
"""So many accesses are put by, or as many as there are in order, before they are sorted in."""


class Table(NamedTuple):
    """Latest accesses, one for each location and thread.

    Attributes:
        keys: Location and thread in one integer, ascending.
        times: Time of each access.
        values: Stored value, or whether an atomic changed memory; zeros for loads.
        varied: Whether the thread has stored several values there since its block's last barrier.
        varied_far: Whether it ever has.
    """

    keys: Flat
    times: Flat
    values: Flat
    varied: Mask
    varied_far: Mask

    def some(self, at: Flat) -> Table:
        """Return some of the accesses."""
        return Table(*(column[at] for column in self))


class _Access(NamedTuple):
    """Accesses of one execution."""

    now: int
    keys: Flat
    released: tuple[Flat, ...] = ()


class _Added(NamedTuple):
    """Accesses in order of time; for stores and atomics ``released`` has two columns.

    These are the values, and the time of each block's last barrier.
    """

    keys: Flat
    times: Flat
    released: tuple[Flat, ...]


class AccessHistory:
    """Accesses of one instruction.

    New accesses are sorted in only when the table is needed, because many instructions are never
    looked up.

    Attributes:
        last: Time of the latest access.
        loads: Whether the instruction only loads.
        low, high: Bounds of all keys.
    """

    def __init__(self, site: Site) -> None:
        self.site, self.loads = site, site.access == "load"
        self.last = 0
        self.low, self.high = np.int64(np.iinfo(np.int64).max), np.int64(-1)
        kinds = np.int64, np.int64, np.uint64, bool, bool
        self._table = Table(*(np.zeros(0, kind) for kind in kinds))
        self._added: dict[object, _Access] = {}  # in the order of their times
        self._waiting = 0

    @property
    def table(self) -> Table:
        """All accesses, sorted."""
        if self._added:
            self._settle()
        return self._table

    @property
    def values(self) -> Flat | None:
        """The stored values, in table order; ``None`` for loads."""
        return None if self.loads else self.table.values

    def add(self, keys: Flat, now: int, values: Flat | None, since: Flat) -> None:
        """Add accesses; within one execution a thread accesses a location once."""
        self.last = now
        assert values is not None or self.loads, "who writes leaves something"
        if not len(keys):
            return
        self.low, self.high = min(self.low, keys.min()), max(self.high, keys.max())
        if self.loads or values is None:
            self._add(_Access(now, keys))
        else:
            self._add(_Access(now, keys, (values, since)))

    def _add(self, access: _Access) -> None:
        """Add an access; a repeated read of the same locations replaces the earlier one."""
        keys = access.keys
        name: object = len(keys), int(keys[0]), int(keys[-1])
        known = self._added.get(name)
        if known is not None:
            if self.loads and np.array_equal(known.keys, keys):
                del self._added[name]
                self._waiting -= len(keys)
            else:
                name = object()
        self._added[name] = access
        self._waiting += len(keys)
        if self._waiting > max(_WAITING, len(self._table.keys)):
            self._settle()

    def drop(self, low: np.int64, high: np.int64) -> None:
        """Remove the accesses with keys in a range."""
        table = self.table
        self._table = table.some((table.keys < low) | (table.keys >= high))

    def merge(self, other: AccessHistory) -> None:
        """Add other threads' accesses at the instruction; their times no longer matter."""
        self.last = max(self.last, other.last)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        both = Table(*map(np.concatenate, zip(self.table, other.table, strict=True)))
        self._table = both.some(np.argsort(both.keys, kind="stable"))

    def _settle(self) -> None:
        """Sort new accesses into the table; the latest of each location and thread stays."""
        table, waiting = self._table, self._waiting
        accesses = list(self._added.values())
        times = np.repeat([a.now for a in accesses], [len(a.keys) for a in accesses])
        columns = tuple(map(np.concatenate, zip(*(a.released for a in accesses), strict=True)))
        added = _Added(np.concatenate([a.keys for a in accesses]), times, columns)
        self._added, self._waiting = {}, 0
        if waiting * _FEW >= len(table.keys):
            self._table = _latest(table, added)
            return
        keys = unique(added.keys)
        at = np.searchsorted(table.keys, keys)
        known = np.zeros(len(keys), bool)
        inside = at < len(table.keys)
        known[inside] = table.keys[at[inside]] == keys[inside]
        new = _latest(table.some(at[known]), added)
        for column, now in zip(table, new, strict=True):
            column[at[known]] = now[known]
        if not known.all():
            more = zip(table, new.some(~known), strict=True)
            self._table = Table(*(np.insert(column, at[~known], now) for column, now in more))


def _latest(table: Table, added: _Added) -> Table:
    """Return the table after later accesses, in order of time."""
    old = len(table.keys)
    keys = np.concatenate([table.keys, added.keys])
    turn = np.argsort(keys, kind="stable")
    keys = keys[turn]
    times = np.concatenate([table.times, added.times])[turn]
    if not added.released:
        stops = np.flatnonzero(np.append(keys[1:] != keys[:-1], True))
        nothing = np.zeros(len(stops), bool)
        return Table(keys[stops], times[stops], np.zeros(len(stops), np.uint64), nothing, nothing)
    released, met_at = added.released
    values = np.concatenate([table.values, released])[turn]
    since = np.concatenate([np.zeros(old, np.int64), met_at])[turn]
    again = np.append(False, keys[1:] == keys[:-1])
    starts = np.flatnonzero(~again)
    stops = np.append(starts[1:], len(keys)) - 1
    changed = again.copy()
    changed[1:] &= values[1:] != values[:-1]
    # What was before its block last met counts no more, nor does a change from that.
    met = again.copy()
    met[1:] &= times[:-1] <= since[1:]
    varied, far = (
        np.concatenate([flags, np.zeros(len(added.keys), bool)])[turn]
        for flags in (table.varied, table.varied_far)
    )
    at = np.arange(len(keys))
    change = np.maximum.reduceat(np.where(changed | varied, at, -1), starts)
    meeting = np.maximum.reduceat(np.where(met, at, -1), starts)
    ever = np.logical_or.reduceat(changed | far, starts)
    return Table(keys[stops], times[stops], values[stops], change > meeting, ever)
