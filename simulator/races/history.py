"""The accesses of one instruction: for each location and thread the latest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..geometry import Flat, Mask
from ..memory.site import Site

_WAITING = 1 << 16
"""So many accesses are put by, or as many as there are in order, before they are sorted in."""


class _Added(NamedTuple):
    """Accesses of one execution; ``since``: when each one's block last met."""

    keys: Flat
    times: Flat
    values: Flat | None
    since: Flat


class History:
    """The accesses of one instruction.

    Those that are added are put in order when somebody asks: what only adds to shared memory is
    asked about nothing for long.

    Attributes:
        last: The time of the latest of all.
        keys: Location and thread, ascending; ``times``: of the latest such access.
        values: What a store left, or whether an atomic changed anything; else ``None``.
        varied: Whether this thread has left several values there since its block last met;
            ``varied_far``: ever.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.last = 0
        self._keys, self._times = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._values = None if site.access == "load" else np.zeros(0, np.uint64)
        self._varied, self._varied_far = np.zeros(0, bool), np.zeros(0, bool)
        self._added: list[_Added] = []
        self._waiting = 0

    @property
    def keys(self) -> Flat:
        """See above."""
        self._settle()
        return self._keys

    @property
    def times(self) -> Flat:
        """See above."""
        self._settle()
        return self._times

    @property
    def values(self) -> Flat | None:
        """See above."""
        self._settle()
        return self._values

    @property
    def varied(self) -> Mask:
        """See above."""
        self._settle()
        return self._varied

    @property
    def varied_far(self) -> Mask:
        """See above."""
        self._settle()
        return self._varied_far

    def add(self, keys: Flat, now: int, values: Flat | None, since: Flat) -> None:
        """Remember accesses; a thread accesses a location once in one execution."""
        self.last = now
        assert values is not None or self._values is None, "who writes leaves something"
        if not len(keys):
            return
        self._added.append(_Added(keys, np.full(len(keys), now), values, since))
        self._waiting += len(keys)
        if self._waiting > max(_WAITING, len(self._keys)):
            self._settle()

    def merge(self, other: History) -> None:
        """Take over what other threads did at the instruction; it is not asked when any more."""
        self.last = max(self.last, other.last)
        keys = np.concatenate([self.keys, other.keys])
        turn = np.argsort(keys, kind="stable")
        self._keys = keys[turn]
        self._times = np.concatenate([self._times, other._times])[turn]
        if self._values is not None and other._values is not None:
            self._values = np.concatenate([self._values, other._values])[turn]
            self._varied = np.concatenate([self._varied, other._varied])[turn]
            self._varied_far = np.concatenate([self._varied_far, other._varied_far])[turn]

    def _settle(self) -> None:
        """Put what was added in order: the latest of a location and thread is left."""
        if not self._added:
            return
        added, self._added, self._waiting = self._added, [], 0
        keys = np.concatenate([self._keys, *(some.keys for some in added)])
        turn = np.argsort(keys, kind="stable")
        keys = keys[turn]
        first = np.append(True, keys[1:] != keys[:-1])
        starts = np.flatnonzero(first)
        ends = np.append(starts[1:], len(keys)) - 1
        times = np.concatenate([self._times, *(some.times for some in added)])[turn]
        if self._values is not None:
            values = [some.values for some in added if some.values is not None]
            self._left(np.concatenate([self._values, *values]), added, turn, first, times)
            self._values = np.concatenate([self._values, *values])[turn[ends]]
        self._keys, self._times = keys[ends], times[ends]

    def _left(
        self, values: Flat, added: list[_Added], turn: Flat, first: Mask, times: Flat
    ) -> None:
        """Did a thread leave several values at a location?"""
        starts, old = np.flatnonzero(first), len(self._keys)
        values = values[turn]
        changed = ~first
        changed[1:] &= values[1:] != values[:-1]
        self._varied_far = np.logical_or.reduceat(changed | _known(self._varied_far, turn), starts)
        # What was before its block last met counts no more, nor does a change from that.
        since = np.concatenate([np.zeros(old, np.int64), *(some.since for some in added)])[turn]
        met = ~first
        met[1:] &= times[:-1] <= since[1:]
        at = np.arange(len(turn))
        change = np.where(changed | _known(self._varied, turn), at, -1)
        meeting = np.where(met, at, -1)
        self._varied = np.maximum.reduceat(change, starts) > np.maximum.reduceat(meeting, starts)


def _known(flags: Mask, turn: Flat) -> Mask:
    """Flags of what comes first, and of nothing else, in another order."""
    every = np.zeros(len(turn), bool)
    every[: len(flags)] = flags
    found: Mask = every[turn]
    return found
