"""Relaxed reads that find a released value, and what a weak read behind them may find in L1.

A relaxed read orders nothing by itself. If no fence follows it, a weak read of the released data
may still be served from a sector of L1 that the block has loaded before (docs/measured.md).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat
from ...memory.site import Site
from ..report.first_of import Firsts

SECTOR = 32
"""Bytes of L1 that become valid together."""
_UNCACHED = frozenset({"cg", "cv"})
"""Operators of a load that leaves nothing in L1."""
_LOOKERS = 64
"""Threads of a block that read flags, beyond which nothing is known of what L1 holds."""
Horizon = Callable[[Flat, Flat], Flat]
"""(threads of a block, others of it by number) to up to when the others have seen the first."""


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


class Looks:
    """When threads of each block read relaxed, and found a released value.

    Args:
        threads: Of a block.

    Attributes:
        blocks: The blocks that have such threads.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.blocks: set[int] = set()
        self._times: dict[int, dict[int, list[int]]] = {}

    def add(self, thread: int, time: int) -> None:
        """A thread (a global number) reads; its reads come in the order of their times."""
        block, lane = divmod(thread, self.threads)
        self.blocks.add(block)
        self._times.setdefault(block, {}).setdefault(lane, []).append(time)

    def known(self, thread: Flat, horizon: Horizon, now: int) -> Flat:
        """How many reads of its block each thread (a global number) knows of."""
        found = np.zeros(len(thread), np.int64)
        block, lane = np.divmod(thread, self.threads)
        for one in self.blocks.intersection(np.unique(block).tolist()):
            here, lookers = np.flatnonzero(block == one), self._times[one]
            for looker, times in lookers.items() if len(lookers) <= _LOOKERS else ():
                known = horizon(np.full(len(here), looker), thread[here])
                known = np.where(lane[here] == looker, now, known)
                found[here] += np.searchsorted(times, known, side="right")
        return found


class Sectors:
    """What each block has loaded of an array through L1, and what it knew of its looks by then.

    ``granule``: bytes of a location.
    """

    def __init__(self, granule: int) -> None:
        self._locations = SECTOR // granule
        self._known = Firsts()  # by sector and block: the fewest looks that a load knew of

    def load(self, place: Flat, block: Flat, known: Flat) -> None:
        """Threads of blocks load a location each; they know of so many looks."""
        self._known.lower(self._key(place, block), known)

    def asked(self, place: Flat, block: Flat, known: Flat) -> Loaded:
        """The sectors of locations that blocks read, who know of so many looks."""
        keys, of = np.unique(self._key(place, block), return_inverse=True)
        latest = np.zeros(len(keys), np.int64)
        np.maximum.at(latest, of, known)
        return Loaded(self, keys, latest)

    def fewest(self, keys: Flat) -> Flat:
        """Of how few looks a load of each sector knew; -1: there was none."""
        return self._known.of(keys)

    def _key(self, place: Flat, block: Flat) -> Flat:
        return place // self._locations << 32 | block


class Loaded(NamedTuple):
    """Sectors that blocks read behind looks; ``known``: how many of them."""

    sectors: Sectors
    keys: Flat
    known: Flat

    def is_valid(self) -> bool:
        """Whether one may be in L1 since before a look; asked once all loads are known.

        A load that knew of fewer looks may have come before one of them.
        """
        fewest = self.sectors.fewest(self.keys)
        return bool(((fewest >= 0) & (fewest < self.known)).any())
