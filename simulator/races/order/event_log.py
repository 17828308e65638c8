"""What happens is noted down, for ``releases`` to go through when somebody asks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ...core.geometry import Flat
from ...memory.site import Site
from .sync_events import (
    BarrierArrival,
    BarrierId,
    BarrierReleased,
    FenceEvent,
    PhaseObserved,
    StrongAccess,
    SyncEvent,
    WarpBarrierReleased,
)
from .thread_clock import ThreadClock

_MUCH = 1 << 20
"""Lanes that are noted down at most before they are gone through."""


class Notes(ABC):
    """The events of a launch that strong accesses may put in order.

    Args:
        acquiring: The numbers of the reads that may acquire something; none: nothing is noted.

    Attributes:
        fences: Whether anybody has fenced.
    """

    def __init__(self, acquiring: frozenset[int]) -> None:
        self.acquiring = acquiring
        self.fences = False
        self._noted: list[SyncEvent] = []
        self._lanes = 0

    @property
    @abstractmethod
    def active(self) -> bool:
        """Whether there is anything that a barrier could hand on or complete."""

    @abstractmethod
    def _catch_up(self) -> None:
        """Go through what was noted."""

    def fence(
        self, threads: Flat, now: int, reach: int, met: Flat, warp: Flat,
        known: Sequence[ThreadClock] | None,
    ) -> None:  # fmt: skip
        """A fence of some threads.

        ``threads`` are global numbers, ``reach``: of its scope; ``met``, ``warp``: times of the
        last barrier of each thread's block, of its warp; ``known``: up to when each of them has
        seen each thread of its block, if those do not say all.
        """
        if self.acquiring:
            self.fences = True
            self._note(FenceEvent(now, threads, reach, met, warp, known))

    def barrier(self, threads: Flat, now: int, blocks: Flat, number: int) -> None:
        """A barrier let threads go (``BarrierReleased``)."""
        if self.acquiring and self.active:
            self._note(BarrierReleased(now, threads, blocks, number))

    def arrive(
        self, threads: Flat, now: int, at: BarrierId, completes: bool = False,
        known: Sequence[ThreadClock] | None = None, relaxed: bool = False,
    ) -> None:  # fmt: skip
        """Threads came to a barrier, and go on (``Arrival``)."""
        if self.acquiring and self.active:
            self._note(BarrierArrival(now, threads, at, completes, known, relaxed))

    def waited(self, threads: Flat, now: int, at: BarrierId, fences: bool) -> None:
        """Threads saw that a phase is over (``PhaseObserved``)."""
        if self.acquiring and self.active:
            self._note(PhaseObserved(now, threads, at, fences))

    def warp_barrier(self, blocks: Flat, warps: Flat, lanes: Flat, now: int) -> None:
        """Lanes of warps met (``WarpBarrierReleased``); it hands on their fences, and is none."""
        if self.acquiring and len(warps):
            self._note(WarpBarrierReleased(now, blocks, warps, lanes))

    def access(
        self, site: Site, places: Flat, threads: Flat, turns: Flat, met: Flat, warp: Flat,
        known: Sequence[ThreadClock] | None, vain: Flat | None = None, quiet: Flat | None = None,
    ) -> None:  # fmt: skip
        """A strong access.

        ``threads`` are global numbers, ``turns`` when each lane has its turn; ``met``, ``warp``,
        ``known``: as ``fence`` takes them, for an access that is a release itself; ``vain``: lanes
        of a compare-and-swap that wrote nothing; ``quiet``: of an atomic that never does: a read.
        """
        if not self.acquiring:
            return
        if not (self.fences or site.releases or site.acquires) and self._lanes > _MUCH:
            return  # with no fence it can order but its own location
        if site.releases:
            self.fences = True
        turn = np.argsort(turns, kind="stable")
        noted = StrongAccess(
            int(turns.max()), threads[turn], site,
            places[turn], turns[turn], met[turn], warp[turn],
            None if known is None else [known[i] for i in turn],
            *(None if lanes is None else lanes[turn].tolist() for lanes in (vain, quiet)),
        )  # fmt: skip
        self._note(noted)

    def _note(self, noted: SyncEvent) -> None:
        self._noted.append(noted)
        self._lanes += (
            64 if isinstance(noted, BarrierReleased | WarpBarrierReleased) else len(noted.threads)
        )
        if self._lanes > _MUCH and self.fences:
            self._catch_up()
