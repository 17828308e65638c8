"""What releases hand on, and fences make ready to be released: see ``releases``."""

import functools
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field

import numpy as np

from ..clusters import Clusters
from ..geometry import WARP, Flat
from ..isa.table import DEVICE
from ..memory.site import Site
from .acquired import NONE, Acquired
from .clocks import NOTHING, Clock
from .noted import Fence, Place
from .seen import Seen


@dataclass(eq=False, slots=True)
class Fenced:
    """What a thread had done and known by a fence.

    Attributes:
        time: The fence's; 0: there was none.
        seen: Up to when it had seen each thread of its block.
        acquired: By it, and by those threads up to then.
    """

    time: int
    seen: Seen
    acquired: Acquired


@dataclass(eq=False, slots=True)
class Published:
    """What threads of a block had fenced before a barrier: any of them may release it after.

    Attributes:
        times: Up to when each thread's accesses.
        acquired: By all of them.
    """

    times: Flat
    acquired: Acquired

    def merge(self, other: "Published") -> "Published":
        """What both brought."""
        acquired = self.acquired.merge(other.acquired)
        return Published(np.maximum(self.times, other.times), acquired)


@dataclass(eq=False, slots=True)
class Release:
    """A strong write; ``by``: for each level of its scope what it hands on (``levels``)."""

    site: Site
    thread: int
    end: int
    by: list[tuple[Fenced, Published | None]]


@dataclass(eq=False, slots=True)
class _Handed:
    """What releases hand on together.

    ``own``: what each has done itself, by block; ``writes``: the strong writes themselves.
    """

    clock: Clock = NOTHING
    writes: Clock = NOTHING
    own: dict[int, Flat] = field(default_factory=dict)


class Levels:
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


class Content:
    """What a location's content hands on: that of a write, and of the atomics on it.

    Args:
        place: The location.
        threads: Of a block.
        levels: Of scopes.
        number: Numbers the location and an instruction.
        guards: The acquiring instructions that an instruction waits for.
    """

    def __init__(
        self, place: int, threads: int, levels: Levels, number: Callable[[int, Site], int],
        guards: Callable[[Site], Set[int]],
    ) -> None:  # fmt: skip
        self.place, self.threads, self.levels = place, threads, levels
        self._number, self._guards = number, guards
        self._new: dict[tuple[int, int], Release] = {}
        self._handed: dict[tuple[int, int], _Handed] = {}
        self._taken: dict[tuple[int, int, bool], Clock] = {}

    def add(self, release: Release) -> None:
        """Another release; a thread's later one hands on what its earlier one did, and more."""
        self._new[release.site.number, release.thread] = release

    def taken(self, block: int, count: int, atomic: bool) -> Clock:
        """What a read by a block's thread takes over; an ``atomic`` may be a lock's.

        ``count``: of levels, those that its scope covers.
        """
        self._settle()
        key = block, count, atomic
        clock = self._taken.get(key)
        if clock is None:
            clock = NOTHING
            for one in self._reached(block, count):
                own = (
                    Clock(held={(b, self.place, b == block): row for b, row in one.own.items()})
                    if atomic
                    else Clock(work=one.own)
                )
                clock = clock.merge(one.clock).merge(own)
            self._taken[key] = clock
        return clock

    def found(self, block: int, count: int) -> Clock:
        """The strong writes that a read by a block's thread finds: these come before it as it is.

        (PTX ISA, "Causality order": what precedes in observation order needs no fence.)
        """
        self._settle()
        clock = NOTHING
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

    def _fold(self, release: Release, by: tuple[Fenced, Published | None], handed: _Handed) -> None:
        fenced, published = by
        sites = self._guards(release.site)
        block, lane = divmod(release.thread, self.threads)
        row = np.zeros(self.threads, np.int64)
        if published is not None:
            row = published.times.copy()
            handed.clock = handed.clock.merge(published.acquired.through(sites))
        if fenced.time:
            row = np.maximum(row, fenced.seen.row(self.threads))
            handed.clock = handed.clock.merge(fenced.acquired.through(sites))
        own = handed.own.get(block)
        own = np.zeros(self.threads, np.int64) if own is None else own.copy()
        own[lane] = max(int(own[lane]), int(row[lane]), fenced.time - 1)
        handed.own = {**handed.own, block: own}
        row[lane] = 0
        ends = np.zeros(self.threads, np.int64)
        ends[lane] = release.end
        at = block, self._number(self.place, release.site)
        work = {block: row} if row.any() else {}
        handed.clock = handed.clock.merge(Clock(work=work, ends={at: ends}))
        handed.writes = handed.writes.merge(Clock(ends={at: ends}))


class Scope:
    """The last fences of each thread, of a level of scopes or a wider one."""

    def __init__(self, everyone: int) -> None:
        self.times = np.zeros(everyone, np.int64)
        self.met = np.zeros_like(self.times)
        self.warp = np.zeros_like(self.times)
        self.known: dict[int, Seen] = {}
        self.acquired: dict[int, Acquired] = {}
        self.published: dict[int, Published] = {}
        self.lanes: dict[int, Published] = {}
        self.arrived: dict[tuple[int, Place], Published] = {}
        self.over: dict[tuple[int, Place], Published | None] = {}
        self._made: dict[int, Fenced] = {}

    def fence(self, event: Fence) -> None:
        """Threads fence."""
        who = event.threads
        self.times[who], self.met[who], self.warp[who] = event.time, event.met, event.warp
        if event.known is not None or self.known:
            for i, thread in enumerate(who.tolist()):
                self.known.pop(thread, None)
                if event.known is not None:
                    self.known[thread] = event.known[i]

    def publish(self, block: int, threads: int, before: int, together: Acquired) -> None:
        """A block meets, for the first time since ``before``; what all its threads acquired."""
        first = block * threads
        fences = self.times[first : first + threads]
        fresh = np.flatnonzero(fences > before)
        if not fresh.size:
            return
        # A fence hands on what the thread knows of others.
        known, acquired = np.maximum(fences, before), together
        old = self.published.get(block)
        if old is not None:
            known = np.maximum(known, old.times)
            acquired = old.acquired.merge(acquired)
        for thread in fresh.tolist() if self.acquired else ():
            acquired = acquired.merge(self.acquired.get(first + thread, NONE))
        self.published[block] = Published(known, acquired)

    def meet(self, block: int, lanes: Flat, threads: int, at: Place = -1) -> None:
        """Some threads of a block meet: any may release what one had fenced, or had been brought.

        ``__threadfence`` is a ``fence.sc``: that of a thread that then meets others, of whom one
        sets a flag, comes before that of who finds the flag (PTX ISA, "Fence-SC order").
        ``at``: the barrier, to which others may have come before.
        """
        ready = self._ready(block, lanes, threads)
        come = self.arrived.pop((block, at), None)
        together = ready.merge(come) if ready and come else ready or come
        if together:
            self.lanes.update(dict.fromkeys((block * threads + lanes).tolist(), together))

    def arrive(self, block: int, lanes: Flat, threads: int, at: Place, ends: bool) -> None:
        """Some threads of a block come to a barrier, for those who wait there."""
        ready, come = self._ready(block, lanes, threads), self.arrived.get((block, at))
        if ready:
            self.arrived[block, at] = come.merge(ready) if come else ready
        if ends:
            self.over[block, at] = self.arrived.pop((block, at), None)

    def waited(self, thread: int, block: int, at: Place) -> None:
        """A thread has seen that a phase is over."""
        brought, mine = self.over.get((block, at)), self.lanes.get(thread)
        if brought:
            self.lanes[thread] = brought.merge(mine) if mine else brought

    def _ready(self, block: int, lanes: Flat, threads: int) -> Published | None:
        """What some threads of a block have fenced, or have been brought."""
        who = block * threads + lanes
        brought = dict.fromkeys(self.lanes[one] for one in who.tolist() if one in self.lanes)
        fenced = self.times[who] > 0
        if fenced.any():
            known = np.full(threads, self.met[who][fenced].max())
            warps = np.zeros(-(-threads // WARP), np.int64)
            np.maximum.at(warps, lanes[fenced] // WARP, self.warp[who][fenced])
            np.maximum(known, np.repeat(warps, WARP)[:threads], out=known)
            known[lanes] = np.maximum(known[lanes], self.times[who])
            for seen in (self.known[one] for one in who.tolist() if one in self.known):
                np.maximum(known, seen.row(threads), out=known)
            acquired = NONE
            for thread in who.tolist() if self.acquired else ():
                acquired = acquired.merge(self.acquired.get(thread, NONE))
            brought[Published(known, acquired)] = None
        return functools.reduce(Published.merge, brought) if brought else None

    def brought(self, thread: int, threads: int) -> Published | None:
        """What barriers brought to a thread that others had fenced before them."""
        one, other = self.published.get(thread // threads), self.lanes.get(thread)
        if one is None or other is None:
            return one or other
        return one.merge(other)

    def last(self, thread: int, threads: int) -> Fenced:
        """A thread's last fence."""
        time, made = int(self.times[thread]), self._made.get(thread)
        if made is None or made.time != time:
            seen = self.known.get(thread) or Seen(
                thread % threads // WARP, int(self.warp[thread]), int(self.met[thread]),
                None, None, None,
            )  # fmt: skip
            made = self._made[thread] = Fenced(time, seen, self.acquired.get(thread, NONE))
        return made
