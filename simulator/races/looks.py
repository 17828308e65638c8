"""Relaxed reads that find a released value, and what a weak read behind them may find in L1.

A relaxed read orders nothing by itself. If no fence follows it, a weak read of the released data
may still be served from a sector of L1 that the block has loaded before (docs/measured.md).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..geometry import Flat, Mask, Rows
from ..memory.site import Site
from .firsts import Firsts

SECTOR = 32
"""Bytes of L1 that become valid together."""
_UNCACHED = frozenset({"cg", "cv"})
"""Operators of a load that leaves nothing in L1."""


class Reads(enum.IntEnum):
    """Which strong reads of a thread order what it does next.

    ``FENCED``: acquires; ``MET``: relaxed ones, too, if a barrier follows; ``ALL``: any.
    """

    FENCED = 0
    MET = 1
    ALL = 2


def needed(site: Site) -> Reads:
    """The reads that order an access: a weak read needs a fence, a strong read needs nothing."""
    if site.access == "store":
        return Reads.MET
    return Reads.ALL if site.strong else Reads.FENCED


def cached(site: Site) -> bool:
    """Whether a weak load may find its data in L1."""
    return _UNCACHED.isdisjoint(site.instruction.modifiers)


class Look(NamedTuple):
    """A relaxed read: its time, when its block had met last, and its thread (a global number)."""

    time: int
    met: int
    thread: int


class Looks:
    """The relaxed reads of a launch that found a released value, by block.

    Attributes:
        blocks: The blocks that have some.
    """

    def __init__(self) -> None:
        self.blocks: set[int] = set()
        self._of: dict[int, list[Look]] = {}

    def add(self, block: int, look: Look) -> None:
        """A thread of a block reads; reads come in the order of their times."""
        self.blocks.add(block)
        self._of.setdefault(block, []).append(look)

    def before(self, block: int) -> Iterator[Look]:
        """Those of a block, the last one first."""
        return reversed(self._of.get(block, []))


class Sectors:
    """When each block first loaded each sector of an array through L1, and another thread of it.

    ``granule``: bytes of a location.
    """

    def __init__(self, granule: int) -> None:
        self._locations = SECTOR // granule
        # Of each load: its time, when the block had met last, its thread.
        self._first, self._second = Firsts(3), Firsts(3)

    def load(self, site: Site, place: Flat, block: Flat, thread: Flat, now: int, met: Flat) -> None:
        """Threads (global numbers) of some blocks load a location each."""
        if site.access != "load" or site.strong or not cached(site):
            return
        keys, columns = self._key(place, block), (np.full_like(place, now), met, thread)
        self._first.add(keys, *columns)
        others = np.flatnonzero(self._first.of(keys)[2] != thread)
        self._second.add(keys[others], *(column[others] for column in columns))

    def held(self, place: Flat, block: Flat, look: Rows) -> Mask:
        """Whether blocks may hold the sectors of locations since before a look of theirs.

        A load by another thread of the block may have come before it, if no barrier stands between
        the two. ``look``: of each location a row of ``Look``'s columns; -1: there was none.
        """
        keys, (time, met, thread) = self._key(place, block), look
        out = np.zeros(len(keys), bool)
        for first, met_first, loader in (self._first.of(keys), self._second.of(keys)):
            same = (met_first == met) & ((loader != thread) | (first < time))
            out |= (first >= 0) & ((met_first < met) | same)
        return out & (time >= 0)

    def _key(self, place: Flat, block: Flat) -> Flat:
        return place // self._locations << 32 | block
