"""Relaxed reads of a released value, and stale L1 data for weak reads after them.

A relaxed read alone orders nothing. Without a fence, a weak read of the released data may hit an L1
sector that the block loaded earlier (docs/measured.md).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat
from ...memory.site import Site
from ..first_of import Firsts

SECTOR = 32
"""Bytes of L1 that become valid together."""
_UNCACHED = frozenset({"cg", "cv"})
"""Operators of a load that leaves nothing in L1."""
_LOOKERS = 64
"""Threads of a block that read flags, beyond which nothing is known of what L1 holds."""
Horizon = Callable[[Flat, Flat], Flat]
"""(threads of a block, others of it by number) to up to when the others have seen the first."""


class Reads(enum.IntEnum):
    """Strong reads of a thread that order its later accesses.

    ``FENCED``: acquires only. ``MET``: also relaxed reads before a barrier. ``ALL``: any.
    """

    FENCED = 0
    MET = 1
    ALL = 2


def needed(site: Site) -> Reads:
    """Return the reads that order an access: a weak read needs a fence, a strong one none."""
    if site.access == "store":
        return Reads.MET
    return Reads.ALL if site.strong else Reads.FENCED


def cached(site: Site) -> bool:
    """Whether a weak load may hit L1."""
    return _UNCACHED.isdisjoint(site.instruction.modifiers)


class Looks:
    """Times of relaxed reads of released values, by block.

    Args:
        threads: Threads of a block.

    Attributes:
        blocks: Blocks with such reads.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.blocks: set[int] = set()
        self._times: dict[int, dict[int, list[int]]] = {}

    def add(self, thread: int, time: int) -> None:
        """Record a read of a thread (global number); reads arrive in order of time."""
        block, lane = divmod(thread, self.threads)
        self.blocks.add(block)
        self._times.setdefault(block, {}).setdefault(lane, []).append(time)

    def known(self, thread: Flat, horizon: Horizon, now: int) -> Flat:
        """Return how many reads of its block each thread (global number) has synchronised with."""
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
    """Sectors of an array that each block has loaded through L1, with the reads known by then.

    ``granule``: bytes of a location.
    """

    def __init__(self, granule: int) -> None:
        self._locations = SECTOR // granule
        self._known = Firsts()  # by sector and block: the fewest looks that a load knew of

    def load(self, place: Flat, block: Flat, known: Flat) -> None:
        """Record loads of threads that have synchronised with ``known`` reads each."""
        self._known.lower(self._key(place, block), known)

    def asked(self, place: Flat, block: Flat, known: Flat) -> Loaded:
        """Return the sectors of locations that threads with ``known`` reads access."""
        keys, of = np.unique(self._key(place, block), return_inverse=True)
        latest = np.zeros(len(keys), np.int64)
        np.maximum.at(latest, of, known)
        return Loaded(self, keys, latest)

    def fewest(self, keys: Flat) -> Flat:
        """Return the fewest reads known at a load of each sector; -1: it was never loaded."""
        return self._known.of(keys)

    def _key(self, place: Flat, block: Flat) -> Flat:
        return place // self._locations << 32 | block


class Loaded(NamedTuple):
    """Sectors that blocks access after relaxed reads; ``known``: the number of these reads."""

    sectors: Sectors
    keys: Flat
    known: Flat

    def is_valid(self) -> bool:
        """Whether a sector may be in L1 since before one of the reads; needs all loads.

        A load that knew of fewer reads may have preceded one of them.
        """
        fewest = self.sectors.fewest(self.keys)
        return bool(((fewest >= 0) & (fewest < self.known)).any())
