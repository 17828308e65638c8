"""Release sequences: a releasing write and the atomics that build on its value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from ...core.clusters import Clusters
from ...core.geometry import Flat
from ...isa.table import DEVICE
from ...memory.site import Site
from .fence_state import CumulativeFences, FenceSnapshot
from .vector_clock import BOTTOM, VectorClock, join


@dataclass(eq=False, slots=True)
class Release:
    """A strong write; ``by``: what it releases at each level of its scope (``ScopeLevels``)."""

    site: Site
    thread: int
    end: int
    by: list[tuple[FenceSnapshot, CumulativeFences | None]]


@dataclass(eq=False, slots=True)
class _Handed:
    """Join of several releases.

    ``own``: each thread's own accesses, by block or by the block of a lock. ``writes``: the strong
    writes themselves.
    """

    clock: VectorClock = BOTTOM
    writes: VectorClock = BOTTOM
    own: dict[int, Flat] = field(default_factory=dict)


_Parts = Sequence[tuple[VectorClock, Mapping[int, Flat]]]
"""Of what is handed on together: the clock, and what each has done itself."""
_Source = tuple["SyncVariable", int, int, int, bool]


class ScopeLevels:
    """Scope levels of a launch: the block, its cluster (if there are any), the device."""

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self._of = (0, int(clusters.size > 1), 1 + int(clusters.size > 1))
        self.count = self._of[DEVICE] + 1

    def covered(self, reach: int) -> int:
        """Return the number of levels that a scope covers."""
        return self._of[reach] + 1

    def group(self, level: int, block: int) -> int:
        """Return the number of a block's group at a level: itself, its cluster, or the device."""
        if level == self.count - 1:
            return 0
        return self.clusters.of(block) if level else block


class Taken:
    """Values found by a read, by levels; its clocks are computed on demand.

    Spinning threads find a new value whenever a lock changes hands and need the last one only: with
    32 blocks that take a lock 8 times each, 1 read of 60 is evaluated.

    Attributes:
        source: The location's ``SyncVariable`` and arguments of ``acquire_clock``. A later value of
            the same source covers all earlier ones.
    """

    def __init__(self, source: _Source, place: int, parts: Sequence[_Parts]) -> None:
        self.source, self._place, self._parts = source, place, parts

    @functools.cached_property
    def observed_writes(self) -> dict[int, list[VectorClock]]:
        """Return clocks by the reading instruction, as ``PendingAcquires`` stores them."""
        _, site, block, _, atomic = self.source
        return {site: [self._clock(part, block, atomic) for part in self._parts]}

    def _clock(self, parts: _Parts, block: int, atomic: bool) -> VectorClock:
        made = BOTTOM
        for clock, own in parts:
            if atomic:
                mine = VectorClock(
                    lock_clocks={(b, self._place, b == block): row for b, row in own.items()}
                )
            else:
                mine = VectorClock(work=own)
            made = made.merge(clock).merge(mine)
        return made


class SyncVariable:
    """Release and acquire state of one location: a write and the atomics on it.

    Args:
        place: The location.
        threads: Threads of a block.
        levels: Scope levels of the launch.
        number: Assigns numbers to pairs of location and instruction.
        guards: Returns the acquiring instructions that an instruction depends on.
        lock: Whether the location is a lock that is initially free.
    """

    def __init__(
        self, place: int, threads: int, levels: ScopeLevels, number: Callable[[int, Site], int],
        guards: Callable[[Site], Set[int]], lock: bool,
    ) -> None:  # fmt: skip
        self.lock = lock
        self.place, self.threads, self.levels = place, threads, levels
        self._number, self._guards = number, guards
        self._new: dict[tuple[int, int], Release] = {}
        self._handed: dict[tuple[int, int], _Handed] = {}
        self._taken: dict[tuple[int, int, int, bool], Taken] = {}

    def add(self, release: Release) -> None:
        """Add a release; a later one of a thread covers its earlier ones."""
        self._new[release.site.number, release.thread] = release

    def acquire_clock(self, site: int, block: int, count: int, atomic: bool) -> Taken | None:
        """Return what a read at ``site`` by a thread of a block finds.

        ``atomic`` may acquire a lock.

        ``count``: number of scope levels that the read covers.
        """
        self._settle()
        key = site, block, count, atomic
        taken = self._taken.get(key)
        if taken is None:
            reached = [list(self._reached(block, n)) for n in range(1, count + 1)]
            if not reached[-1]:
                return None
            parts = [[(one.clock, one.own) for one in level] for level in reached]
            taken = self._taken[key] = Taken((self, *key), self.place, parts)
        return taken

    def observed_writes(self, block: int, count: int) -> VectorClock:
        """Return the strong writes that a read observes; these precede it without any fence.

        (PTX ISA, "Causality order": what precedes in observation order needs no fence.)
        """
        self._settle()
        clock = BOTTOM
        for one in self._reached(block, count):
            clock = clock.merge(one.writes)
        return clock

    def _reached(self, block: int, count: int) -> Iterator[_Handed]:
        """Yield what is released to a block at so many levels."""
        groups = ((level, self.levels.group(level, block)) for level in range(count))
        return (self._handed[at] for at in groups if at in self._handed)

    def _settle(self) -> None:
        """Merge recent releases into the others."""
        for release in self._new.values():
            home = release.thread // self.threads
            for level, by in enumerate(release.by):
                at = level, self.levels.group(level, home)
                self._fold(release, by, self._handed.setdefault(at, _Handed()))
        if self._new:
            self._new, self._taken = {}, {}

    def _fold(
        self, release: Release, by: tuple[FenceSnapshot, CumulativeFences | None], handed: _Handed
    ) -> None:
        fenced, published = by
        sites = self._guards(release.site)
        block, lane = divmod(release.thread, self.threads)
        work: Mapping[int, Flat] = {}
        if published is not None:
            work = published.times
            handed.clock = handed.clock.merge(published.acquired.through(sites))
        if fenced.time:
            work = join(
                work, {**(fenced.clock.others or {}), block: fenced.clock.row(self.threads)}
            )
            handed.clock = handed.clock.merge(fenced.acquired.through(sites))
        row = work[block].copy() if block in work else np.zeros(self.threads, np.int64)
        own = handed.own.get(block)
        own = np.zeros(self.threads, np.int64) if own is None else own.copy()
        own[lane] = max(int(own[lane]), int(row[lane]), fenced.time - 1)
        row[lane] = 0
        if self.lock:
            own, row = np.maximum(own, row), np.zeros_like(row)
        if own.any():  # times begin at 1
            handed.own = {**handed.own, block: own}
        last_releases = np.zeros(self.threads, np.int64)
        last_releases[lane] = release.end
        at = block, self._number(self.place, release.site)
        work = {one: times for one, times in work.items() if one != block}
        work |= {block: row} if row.any() else {}
        handed.clock = handed.clock.merge(VectorClock(work=work, last_releases={at: last_releases}))
        handed.writes = handed.writes.merge(VectorClock(last_releases={at: last_releases}))
