"""State of fences at one scope: what they make releasable, and by which threads."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.geometry import WARP, Flat
from .acquired import NONE, AcquiredClock
from .sync_events import BarrierId, FenceEvent
from .thread_clock import ThreadClock
from .vector_clock import join


@dataclass(eq=False, slots=True)
class FenceSnapshot:
    """Clocks of a thread at a fence.

    Attributes:
        time: Time of the fence; 0: there was none.
        clock: The thread's clock within its block.
        acquired: What it had acquired, itself and through that clock.
    """

    time: int
    clock: ThreadClock
    acquired: AcquiredClock


@dataclass(eq=False, slots=True)
class CumulativeFences:
    """Fenced accesses that a barrier made releasable by every participant (cumulativity).

    Attributes:
        times: Epochs of each thread's fenced accesses, by block.
        acquired: Join of what these threads had acquired.
    """

    times: Mapping[int, Flat]
    acquired: AcquiredClock

    def merge(self, other: "CumulativeFences") -> "CumulativeFences":
        """Return the join of two; one of them if it covers the other."""
        times, acquired = join(self.times, other.times), self.acquired.merge(other.acquired)
        for one in (self, other):
            if times is one.times and acquired is one.acquired:
                return one
        return CumulativeFences(times, acquired)


class FenceState:
    """Last fences of each thread, at one scope level or wider."""

    def __init__(self, everyone: int) -> None:
        self.times = np.zeros(everyone, np.int64)
        self.met = np.zeros_like(self.times)
        self.warp = np.zeros_like(self.times)
        self.known: dict[int, ThreadClock] = {}
        self.acquired: dict[int, AcquiredClock] = {}
        self.published: dict[int, CumulativeFences] = {}
        self.lanes: dict[int, CumulativeFences] = {}
        self.arrived: dict[BarrierId, CumulativeFences] = {}
        self.over: dict[BarrierId, CumulativeFences | None] = {}
        self._made: dict[int, FenceSnapshot] = {}

    def fence(self, event: FenceEvent) -> None:
        """Handle a fence."""
        who = event.threads
        self.times[who], self.met[who], self.warp[who] = event.time, event.met, event.warp
        if event.known is not None or self.known:
            for i, thread in enumerate(who.tolist()):
                self.known.pop(thread, None)
                if event.known is not None:
                    self.known[thread] = event.known[i]

    def propagate_at_barrier(
        self, block: int, threads: int, before: int, together: AcquiredClock
    ) -> None:
        """Handle a full barrier of a block, the first since ``before``.

        ``together``: what all of its threads have acquired.
        """
        first = block * threads
        fences = self.times[first : first + threads]
        fresh = np.flatnonzero(fences > before)
        if not fresh.size:
            return
        # A fence hands on what the thread knows of others.
        new = self._of((first + fresh).tolist(), {block: np.maximum(fences, before)})
        new = CumulativeFences(new.times, new.acquired.merge(together))
        old = self.published.get(block)
        self.published[block] = old.merge(new) if old else new

    def _of(self, fenced: Sequence[int], times: Mapping[int, Flat]) -> CumulativeFences:
        """Return the fences of some threads, with ``times`` for their own block."""
        acquired = NONE
        for one in fenced if self.acquired else ():
            acquired = acquired.merge(self.acquired.get(one, NONE))
        for one in fenced if self.known else ():
            clock = self.known.get(one)
            times = join(times, (clock and clock.others) or {})
        return CumulativeFences(times, acquired)

    def meet(self, block: int, lanes: Flat, threads: int, at: BarrierId | None = None) -> None:
        """Handle a partial barrier: each participant may release what any of them had fenced.

        ``__threadfence`` is ``fence.sc``. If a thread fences, meets others, and one of these sets a
        flag, its fence precedes that of the thread which finds the flag (PTX ISA, "Fence-SC
        order"). ``at``: the barrier, where earlier arrivals may be recorded.
        """
        ready = self._ready(block, lanes, threads)
        come = self.arrived.pop(at, None) if at else None
        together = ready.merge(come) if ready and come else ready or come
        if together:
            self.lanes.update(dict.fromkeys((block * threads + lanes).tolist(), together))

    def arrive(self, block: int, lanes: Flat, threads: int, at: BarrierId, relaxed: bool) -> None:
        """Handle an arrival at a barrier, on behalf of the threads that wait there."""
        here = None if relaxed else self.published.get(block)
        for ready in (here, self._ready(block, lanes, threads, relaxed)):
            if ready:
                come = self.arrived.get(at)
                self.arrived[at] = come.merge(ready) if come else ready

    def end(self, at: BarrierId) -> None:
        """Handle the completion of a phase."""
        self.over[at] = self.arrived.pop(at, None)

    def waited(self, threads: Sequence[int], at: BarrierId) -> None:
        """Handle threads that observed a complete phase."""
        if brought := self.over.get(at):
            for thread in threads:
                mine = self.lanes.get(thread)
                self.lanes[thread] = brought.merge(mine) if mine else brought

    def _ready(
        self, block: int, lanes: Flat, threads: int, alone: bool = False
    ) -> CumulativeFences | None:
        """Return what threads have fenced themselves or (without ``alone``) through barriers."""
        who = block * threads + lanes
        brought = dict.fromkeys(
            self.lanes[one] for one in ([] if alone else who.tolist()) if one in self.lanes
        )
        fenced = self.times[who] > 0
        if fenced.any():
            known = np.full(threads, self.met[who][fenced].max())
            warps = np.zeros(-(-threads // WARP), np.int64)
            np.maximum.at(warps, lanes[fenced] // WARP, self.warp[who][fenced])
            np.maximum(known, np.repeat(warps, WARP)[:threads], out=known)
            known[lanes] = np.maximum(known[lanes], self.times[who])
            for clock in (self.known[one] for one in who.tolist() if one in self.known):
                np.maximum(known, clock.row(threads), out=known)
            brought[self._of(who[fenced].tolist(), {block: known})] = None
        return functools.reduce(CumulativeFences.merge, brought) if brought else None

    def cumulative_fences_of(self, thread: int, threads: int) -> CumulativeFences | None:
        """Return the fences of other threads that barriers made releasable by a thread."""
        one, other = self.published.get(thread // threads), self.lanes.get(thread)
        if one is None or other is None:
            return one or other
        return one.merge(other)

    def last(self, thread: int, threads: int) -> FenceSnapshot:
        """Return the snapshot of a thread's last fence."""
        time, made = int(self.times[thread]), self._made.get(thread)
        if made is None or made.time != time:
            clock = self.known.get(thread) or ThreadClock(
                thread % threads // WARP, int(self.warp[thread]), int(self.met[thread]),
                None, None, None,
            )  # fmt: skip
            made = self._made[thread] = FenceSnapshot(time, clock, self.acquired.get(thread, NONE))
        return made
