"""Log of synchronisation events, which ``release_acquire`` replays on demand."""

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
    """Synchronisation events of a launch that strong accesses may order.

    Args:
        acquiring: Numbers of the reads that may acquire; if empty, nothing is logged.

    Attributes:
        fences: Whether any fence has been executed.
    """

    def __init__(self, acquiring: frozenset[int]) -> None:
        self.acquiring = acquiring
        self.fences = False
        self._noted: list[SyncEvent] = []
        self._lanes = 0

    @property
    @abstractmethod
    def active(self) -> bool:
        """Whether a barrier could propagate or complete anything."""

    @abstractmethod
    def _catch_up(self) -> None:
        """Replay the logged events."""

    def fence(
        self, threads: Flat, now: int, reach: int, met: Flat, warp: Flat,
        known: Sequence[ThreadClock] | None,
    ) -> None:  # fmt: skip
        """Log a fence.

        ``threads``: global numbers. ``reach``: number of the scope. ``met``, ``warp``: epochs of
        the last full barrier of each thread's block and warp. ``known``: each thread's clock within
        its block, if these epochs do not determine it.
        """
        if self.acquiring:
            self.fences = True
            self._note(FenceEvent(now, threads, reach, met, warp, known))

    def barrier(self, threads: Flat, now: int, blocks: Flat, number: int) -> None:
        """Log the release of a barrier (``BarrierReleased``)."""
        if self.acquiring and self.active:
            self._note(BarrierReleased(now, threads, blocks, number))

    def arrive(
        self, threads: Flat, now: int, at: BarrierId, completes: bool = False,
        known: Sequence[ThreadClock] | None = None, relaxed: bool = False,
    ) -> None:  # fmt: skip
        """Log an arrival of threads that continue (``BarrierArrival``)."""
        if self.acquiring and self.active:
            self._note(BarrierArrival(now, threads, at, completes, known, relaxed))

    def waited(self, threads: Flat, now: int, at: BarrierId, fences: bool) -> None:
        """Log threads that observed a complete phase (``PhaseObserved``)."""
        if self.acquiring and self.active:
            self._note(PhaseObserved(now, threads, at, fences))

    def warp_barrier(self, blocks: Flat, warps: Flat, lanes: Flat, now: int) -> None:
        """Log a warp barrier (``WarpBarrierReleased``); it propagates fences, but is none."""
        if self.acquiring and len(warps):
            self._note(WarpBarrierReleased(now, blocks, warps, lanes))

    def access(
        self, site: Site, places: Flat, threads: Flat, turns: Flat, met: Flat, warp: Flat,
        known: Sequence[ThreadClock] | None, vain: Flat | None = None, silent: Flat | None = None,
    ) -> None:  # fmt: skip
        """Log a strong access.

        ``threads``: global numbers. ``turns``: the time of each lane. ``met``, ``warp``, ``known``:
        as for ``fence``, for a releasing access. ``vain``: lanes of a failed compare-and-swap.
        ``silent``: lanes of an atomic that never changes memory and is therefore a read.
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
            *(None if lanes is None else lanes[turn].tolist() for lanes in (vain, silent)),
        )  # fmt: skip
        self._note(noted)

    def _note(self, noted: SyncEvent) -> None:
        self._noted.append(noted)
        self._lanes += (
            64 if isinstance(noted, BarrierReleased | WarpBarrierReleased) else len(noted.threads)
        )
        if self._lanes > _MUCH and self.fences:
            self._catch_up()
