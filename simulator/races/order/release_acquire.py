"""Release and acquire through memory: flags, counters and locks.

Rules (PTX ISA, "Memory Consistency Model": release and acquire patterns):

- A release is a strong write after a fence, or a releasing write. It releases what its thread had
  done by the fence, what barriers had propagated to it by then, and what it had acquired.
- An acquire is a strong read that finds the released value, or a value that atomics derived from
  it, followed by a fence; or an acquiring read. The fence may be another thread's that has met the
  reader since (PTX ISA, "Fence-SC order"). The write that was found precedes the read even without
  a fence: the last thread to count may reset the counter.
- An acquire orders the accesses that the value decides on. A thread that does not test the flag has
  waited for nothing.
- A fence or access of block scope is effective within its block only.

A block barrier is no acquire. After a relaxed read and a barrier, a weak read may hit stale data in
L1 (docs/measured.md). Writes and strong reads cannot; for these the barrier suffices.

Events are logged, and replayed in order when two accesses may race. During the replay each location
has a clock of what it releases, and each thread one of what it has acquired.
"""

import functools
from collections.abc import Sequence, Set
from itertools import product

import numpy as np

from ...analysis.confined_reads import confined_reads, controls_what_it_reads, returning_reads
from ...analysis.influence import ForwardSlices
from ...core.clusters import Clusters
from ...core.geometry import WARP, Flat
from ...isa.table import DEVICE
from ...memory.site import Site
from .acquired import NONE, AcquiredClock, AcquireLog
from .event_log import Notes
from .fence_state import FenceSnapshot, FenceState
from .locks import COUNTS, Lock, Locks
from .pending_acquires import ArrivalClock, PendingAcquires
from .release_sequence import Release, ScopeLevels, SyncVariable
from .stale_reads import Looks, Reads
from .sync_events import (
    BarrierArrival,
    BarrierId,
    BarrierReleased,
    FenceEvent,
    PhaseObserved,
    StrongAccess,
    WarpBarrierReleased,
    by_block,
)
from .thread_clock import ThreadClock
from .vector_clock import VectorClock


class ReleaseAcquireTracker(Notes):
    """Order of a launch by strong accesses.

    Args:
        everyone: Threads of the launch.
        threads: Threads of a block.
        clusters: Clusters of the launch.

    Attributes:
        is_near_logged: Whether strong accesses to shared memory are logged.
    """

    def __init__(
        self, steering: ForwardSlices, everyone: int, threads: int, clusters: Clusters
    ) -> None:
        self.steering, self.threads, self.levels = steering, threads, ScopeLevels(clusters)
        program, reads = steering.program, steering.synchronising_reads
        confined = confined_reads(program, clusters.size > 1) if reads else frozenset()
        self.is_near_logged = not confined or controls_what_it_reads(program)
        if not self.is_near_logged:
            reads -= {n for n in confined if program.sites[n].space == "shared"}
        super().__init__(reads)
        size = everyone if self.acquiring else 0
        self._scopes = [FenceState(size) for _ in range(self.levels.count)]
        self._barrier: dict[int, int] = {}
        self._contents: dict[int, SyncVariable] = {}
        self._read = PendingAcquires()
        self._come: dict[BarrierId, ArrivalClock] = {}
        self._over: dict[BarrierId, ArrivalClock] = {}
        self._acquired = AcquireLog(threads)
        self._met = AcquireLog(threads)  # what relaxed reads found, by a barrier with no fence
        self.looks = Looks(threads)
        self.locks = Locks(threads)
        self._guards: dict[int, Set[int]] = {}
        self._known: dict[object, VectorClock] = {}  # since the last event
        self._numbers: dict[tuple[int, int], int] = {}
        self._near: set[int] = set()  # numbers of locations in shared memory

    @property
    def active(self) -> bool:
        """Whether a barrier could propagate or complete anything."""
        return bool(
            self._noted or self._read.any or self._acquired.since or self.locks.open or self.fences
        )

    # -- going through it -----------------------------------------------------------------

    def _catch_up(self) -> None:
        noted, self._noted, self._lanes = self._noted, [], 0
        self._known.clear()
        for event in noted:
            if isinstance(event, FenceEvent):
                self._fence(event)
            elif isinstance(event, BarrierReleased):
                self._publish(event)
                for block, lanes in event.parts(self.threads):
                    at = block, event.number
                    for scope in self._scopes:
                        scope.meet(block, lanes, self.threads, at)
                    come = self._come.pop(at, None)
                    self._meet((block * self.threads + lanes).tolist(), event.time, come)
                for block in event.blocks.tolist():
                    first = block * self.threads
                    covered = functools.partial(self._is_covered, block)
                    self._read.drop(range(first, first + self.threads), covered)
                    self._meet(range(first, first + self.threads), event.time, None)
                    for known in (self._acquired, self._met):
                        known.meet(block, covered)
            elif isinstance(event, BarrierArrival):
                self._arrive(event)
            elif isinstance(event, PhaseObserved):
                self._wait(event)
            elif isinstance(event, WarpBarrierReleased):
                for (block, lanes), scope in product(event.groups(), self._scopes):
                    scope.meet(block, lanes, self.threads)
                for block, lanes in event.groups() if self._read.any else ():
                    self._read.share((block * self.threads + lanes).tolist())
            else:
                self._strong(event)

    def _meet(self, threads: Sequence[int], now: int, come: ArrivalClock | None) -> None:
        """Handle a barrier: a fence of any participant acquires the reads of all.

        Earlier arrivals are participants as well.
        """
        if found := self._read.share(threads, come.read if come else {}):
            brought = AcquiredClock({site: clocks[-1] for site, clocks in found.items()})
            whole = len(threads) == self.threads
            for thread in threads[:1] if whole else threads:
                self._met.add(thread, now, brought, now)
        self.locks.meet(threads, now)

    def _fence(self, event: FenceEvent) -> None:
        heard = np.maximum(event.met, event.warp) if event.known is None else None
        self._effective(event.threads, event.time, event.reach, heard)
        scopes = self._scopes[: self.levels.covered(event.reach)]
        for scope in scopes:
            scope.fence(event)
        if not self._acquired.blocks():
            return
        for i, thread in enumerate(event.threads.tolist()):
            clock = event.known[i] if event.known is not None else None
            acquired = self._acquired.of(thread, int(event.met[i]), int(event.warp[i]), clock)
            for scope in scopes:
                scope.acquired[thread] = acquired

    def _publish(self, event: BarrierReleased) -> None:
        """Make fenced accesses releasable by the other participants of a barrier."""
        for block in event.blocks.tolist():
            before = self._barrier.get(block, 0)
            self._barrier[block] = event.time
            for scope in self._scopes:
                scope.propagate_at_barrier(
                    block, self.threads, before, self._acquired.together(block)
                )

    def _arrive(self, event: BarrierArrival) -> None:
        """Handle an arrival: the waiting threads get the pending reads, not the arriving ones."""
        come = self._come.setdefault(event.at, ArrivalClock())
        for block, lanes in by_block(event.threads, self.threads):
            far = block != event.at[0]  # a fence within a block is none for another one
            for scope in self._scopes[int(far) :]:
                scope.arrive(block, lanes, self.threads, event.at, event.relaxed)
            if far and self._acquired.blocks():
                come.acquired = come.acquired.merge(self._acquired_by(event))
        if not event.relaxed:
            come.read = self._read.of(event.threads.tolist(), come.read)
        if event.completes:
            self._end(event.at)

    def _acquired_by(self, event: BarrierArrival) -> AcquiredClock:
        """Return what threads have acquired that arrive at a barrier shared with other blocks.

        At a cluster's barrier, where all threads arrive, each contributes its own.
        """
        found = NONE
        for i, thread in enumerate(event.threads.tolist()):
            clock = event.known[i] if event.known else None
            found = found.merge(
                self._scopes[1].acquired.get(thread, NONE)
                if event.relaxed
                else self._acquired.of(thread, 0, 0, clock)
            )
        return found

    def _end(self, at: BarrierId) -> None:
        """Handle the completion of a phase."""
        self._over[at] = self._come.pop(at, ArrivalClock())
        for scope in self._scopes:
            scope.end(at)

    def _wait(self, event: PhaseObserved) -> None:
        """Handle a completed wait: the thread synchronises with the arrivals of the phase."""
        if event.at[0] < 0 and event.at in self._come:
            self._end(event.at)
        those = event.threads.tolist()
        for scope in self._scopes:
            scope.waited(those, event.at)
        over = self._over.get(event.at, ArrivalClock())
        for thread in those if over.acquired is not NONE else ():
            self._acquired.add(thread, event.time, over.acquired, event.time)
        for (
            thread
        ) in those:  # a waiting thread has met the arrived ones, not the other waiting ones
            self._meet([thread], event.time, over)
        if event.fences:
            self._effective(event.threads, event.time, DEVICE, None)

    def _effective(self, threads: Flat, now: int, reach: int, heard: Flat | None) -> None:
        """Turn pending reads into acquires, at a fence.

        ``heard``: the epoch up to which other threads had synchronised with each thread; ``None``:
        now.
        """
        if not (self._read.any or self.locks.open):
            return
        for i, thread in enumerate(those := threads.tolist()):
            if brought := self._read.take(thread, self.levels.covered(reach)):
                known = now if heard is None else int(heard[i])
                self._acquired.add(thread, now, AcquiredClock(brought), known)
        self.locks.fence(set(those), now, self.levels.covered(reach) > 1)

    def _strong(self, event: StrongAccess) -> None:
        site = event.site
        reads = site.number in self.acquiring
        columns = (event.places, event.threads, event.turns, event.met, event.warp)
        end = event.time + 1
        rows = zip(*(c.tolist() for c in columns), strict=True)
        for i, (place, thread, turn, met, warp) in enumerate(rows):
            content = self._contents.get(place)
            if site.acquires and (self._read.any or self.locks.open):
                # Behind it nothing is read that L1 held before, whatever it reads itself.
                before = np.array([max(met, warp)])
                self._effective(np.array([thread]), turn, site.scope, before)
            idle = site.access == "load" or (event.silent is not None and event.silent[i])
            vain = event.failed is not None and event.failed[i]
            if reads:
                # A comparison that fails acquires no lock, nor does a count: the last thread to
                # count continues, and it could not have come before the others.
                if not (idle or vain or site.operation in COUNTS):
                    far = self.levels.covered(site.scope) > 1
                    self.locks.take(site, place, thread, turn, far, content is None)
                heard = turn if event.known is not None else max(met, warp)
                if self._finds(site, thread, turn, content, heard, not idle):
                    self.looks.add(thread, turn)
            if idle or vain:
                continue
            if content is None or site.access == "store":
                content = self._contents[place] = SyncVariable(
                    place, self.threads, self.levels, self._number, self.guards_of,
                    self.locks.free(place),
                )  # fmt: skip
            covered = self.levels.covered(site.scope)
            fenced = [scope.last(thread, self.threads) for scope in self._scopes]
            if site.releases:
                clock = event.known[i] if event.known is not None else None
                acquired = self._acquired.of(thread, met, warp, clock)
                acquired = acquired.merge(self._met.of(thread, met, warp, clock))
                clock = clock or ThreadClock(
                    thread % self.threads // WARP, warp, met, None, None, None
                )
                fenced[:covered] = [FenceSnapshot(turn, clock, acquired)] * covered
            self.locks.put(place, thread, turn, fenced[0].time, fenced[1].time)
            published = [scope.cumulative_fences_of(thread, self.threads) for scope in self._scopes]
            by = list(zip(fenced, published, strict=True))[:covered]
            content.add(Release(site, thread, end, by))

    def _finds(
        self,
        site: Site,
        thread: int,
        turn: int,
        content: SyncVariable | None,
        heard: int,
        atomic: bool,
    ) -> bool:
        """Handle a strong read of a released value; return whether its acquire needs a fence."""
        if content is None:
            return False
        block = thread // self.threads
        count = self.levels.covered(site.scope)
        taken = content.acquire_clock(site.number, block, count, atomic)
        if taken is None:
            return False
        if site.acquires:
            clock = taken.observed_writes[site.number][-1]
            self._acquired.add(thread, turn, AcquiredClock({site.number: clock}), heard)
            return False
        if site.number in self._returns:
            found = AcquiredClock({site.number: content.observed_writes(block, count)})
            self._acquired.add(thread, turn, found, heard)
        self._read.hear(thread, taken)
        return True

    def _number(self, place: int, site: Site) -> int:
        number = self._numbers.setdefault((place, site.number), len(self._numbers))
        if place < 0:
            self._near.add(number)
        return number

    def _is_covered(self, barrier: int, block: int, number: int) -> bool:
        """Whether a block's barrier orders a strong write for all that may access its location.

        That is a write of the block to its own shared memory.
        """
        return block == barrier and number in self._near and self.levels.clusters.size == 1

    def guards_of(self, site: Site) -> Set[int]:
        """Return the acquiring instructions whose values an access depends on."""
        found = self._guards.get(site.number)
        if found is None:
            sites = self.steering.program.sites
            found = self._guards[site.number] = frozenset(
                read.number
                for read in sites
                if read.number in self.acquiring and self.steering.guards(read, site)
            )
        return found

    # -- asking ------------------------------------------------------------------------------

    def blocks(self) -> set[int]:
        """Return the blocks that have acquired anything or read a released value."""
        before = self._acquired.blocks()
        if (
            before
            or (self.fences and self._noted)
            or any(not isinstance(e, StrongAccess) or self._gives(e.site) for e in self._noted)
        ):
            self._catch_up()
        return self._acquired.blocks() | self.looks.blocks

    def _gives(self, site: Site) -> bool:
        """Whether a strong access may release anything without a fence."""
        return site.acquires or site.number in self._returns

    @functools.cached_property
    def relaxed(self) -> bool:
        """Whether relaxed reads control other accesses."""
        sites = self.steering.program.sites
        return any(s.number in self.acquiring and not s.acquires for s in sites)

    @functools.cached_property
    def _returns(self) -> Set[int]:
        return returning_reads(self.steering, self.acquiring)

    def known(
        self, site: Site, thread: int, met: int, warp: int, clock: ThreadClock | None, reads: Reads
    ) -> VectorClock:
        """Return the clock that a thread (global number) has acquired when it accesses at ``site``.

        ``met``, ``warp``, ``clock``: as ``fence`` takes them. ``reads``: which strong reads count.
        """
        guards = self.guards_of(site)
        key = None if clock is not None else (guards, thread, met, warp, reads)
        if key is None or (known := self._known.get(key)) is None:
            acquired = self._acquired.of(thread, met, warp, clock)
            if reads >= Reads.MET:
                acquired = acquired.merge(self._met.of(thread, met, warp, clock))
            if reads is Reads.ALL and (found := self._read.of([thread], {})):
                brought = {number: clocks[-1] for number, clocks in found.items()}
                acquired = acquired.merge(AcquiredClock(brought))
            known = acquired.through(guards)
            if key:
                self._known[key] = known
        return known

    def handed(self, time: int, thread: int, block: int) -> bool:
        """Whether any thread of a block has acquired a thread's access at a time."""
        if block not in self.blocks():
            return False
        acquired = self._acquired.all_of(block).merge(self._met.all_of(block))
        clock = acquired.through(self.acquiring)
        when, who = np.array([time]), np.array([thread])
        if clock.happens_after(when, who, self.threads).all():
            return True
        mine = np.array([block * self.threads])
        return bool(self.locks.ordered(clock, mine, when, who, True)[0].any())

    def doubtful(self, lock: Lock, time: int, first: Site, second: Site) -> bool:
        """Whether a lock fails to order two accesses, the second at a time.

        This is so if a thread released it without a fence after its access. It is also so if it
        released the lock before the access and no other value that either thread read controls the
        accesses: another run may order them the other way.
        """
        if self._noted:
            self._catch_up()
        if self.locks.let_go_unfenced(lock, time):
            return True
        if not lock.schedule_dependent:
            return False
        reads = (
            s
            for s in self.steering.program.sites
            if s.access != "store" and s.space != "param" and s.number not in self.locks.sites
        )
        return not any(self.steering.guards(r, s) for r in reads for s in (first, second))
