"""What releases hand on: see ``releases``."""

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
    """A strong write; ``by``: for each level of its scope what it hands on (``levels``)."""

    site: Site
    thread: int
    end: int
    by: list[tuple[FenceSnapshot, CumulativeFences | None]]


@dataclass(eq=False, slots=True)
class _Handed:
    """What releases hand on together.

    ``own``: what each has done itself, by block, or of a lock its block; ``writes``: the strong
    writes themselves.
    """

    clock: VectorClock = BOTTOM
    writes: VectorClock = BOTTOM
    own: dict[int, Flat] = field(default_factory=dict)


_Parts = Sequence[tuple[VectorClock, Mapping[int, Flat]]]
"""Of what is handed on together: the clock, and what each has done itself."""
_Source = tuple["SyncVariable", int, int, int, bool]


class ScopeLevels:
    """How far scopes reach in a launch: the block, its cluster (if it has any), the device."""

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters
        self._of = (0, int(clusters.size > 1), 1 + int(clusters.size > 1))
        self.count = self._of[DEVICE] + 1

    def covered(self, reach: int) -> int:
        """How many of them a scope of some reach covers."""
        return self._of[reach] + 1

    def group(self, level: int, block: int) -> int:
        """The number of what a block is in at a level: itself, its cluster, the device."""
        if level == self.count - 1:
            return 0
        return self.clusters.of(block) if level else block


class Taken:
    """What a read has found, by levels; its clocks are made when somebody asks for them.

    Threads that spin find something new whenever a lock changes hands, and ask for the last alone:
    of 32 blocks that take a lock 8 times each, 1 read of 60 is asked for.

    Attributes:
        source: A location's content, and the arguments of ``SyncVariable.taken``: what is found
            later by the same is all that was found before, and more.
    """

    def __init__(self, source: _Source, place: int, parts: Sequence[_Parts]) -> None:
        self.source, self._place, self._parts = source, place, parts

    @functools.cached_property
    def observed_writes(self) -> dict[int, list[VectorClock]]:
        """By the instruction that read, as ``Readings`` keeps it."""
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
    """What a location's content hands on: that of a write, and of the atomics on it.

    Args:
        place: The location.
        threads: Of a block.
        levels: Of scopes.
        number: Numbers the location and an instruction.
        guards: The acquiring instructions that an instruction waits for.
        lock: Whether it was a lock that is free at first.
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
        """Another release; a thread's later one hands on what its earlier one did, and more."""
        self._new[release.site.number, release.thread] = release

    def acquire_clock(self, site: int, block: int, count: int, atomic: bool) -> Taken | None:
        """What a read at ``site`` by a block's thread takes over; an ``atomic`` may be a lock's.

        ``count``: of levels, those that its scope covers.
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
        """The strong writes that a read by a block's thread finds: these come before it as it is.

        (PTX ISA, "Causality order": what precedes in observation order needs no fence.)
        """
        self._settle()
        clock = BOTTOM
        for one in self._reached(block, count):
            clock = clock.merge(one.writes)
        return clock

    def _reached(self, block: int, count: int) -> Iterator[_Handed]:
        """What is handed on at so many levels, to a block."""
        groups = ((level, self.levels.group(level, block)) for level in range(count))
        return (self._handed[at] for at in groups if at in self._handed)

    def _settle(self) -> None:
        """Put the releases since together with the others."""
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
        handed.own = {**handed.own, block: own}
        last_releases = np.zeros(self.threads, np.int64)
        last_releases[lane] = release.end
        at = block, self._number(self.place, release.site)
        work = {one: times for one, times in work.items() if one != block}
        work |= {block: row} if row.any() else {}
        handed.clock = handed.clock.merge(VectorClock(work=work, last_releases={at: last_releases}))
        handed.writes = handed.writes.merge(VectorClock(last_releases={at: last_releases}))
