"""Relaxed arrivals and waits at an ``mbarrier``, which take effect through fences.

A relaxed arrival releases what its thread had done and acquired by its last fence. A relaxed wait
acquires at the thread's next fence (PTX ISA, "Memory Consistency Model": release and acquire
patterns). Between blocks of a cluster the fence needs cluster scope or wider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...core.geometry import Flat, Rows
from ...isa.table import CLUSTER
from .mbarrier_phases import Key, Known

Over = tuple[Flat | None, Known | None]
"""What a phase hands on that is over: of those of the block, and of others of its cluster."""
_Thread = tuple[int, int]
"""A thread's number in its block, and the block's column."""


@dataclass(slots=True)
class _Wait:
    """Threads of a block that have observed a complete phase and not fenced since."""

    place: Key
    threads: Flat
    over: Over


class RelaxedMbarriers:
    """Fenced clocks of a batch's threads, and acquires that wait for their next fence.

    Args:
        threads: Threads of a block.
        clustered: Whether blocks of a cluster are ordered.
        gives: See ``HappensBefore.release_clocks``.
        hear: See ``HappensBefore.acquire``.
    """

    def __init__(
        self, threads: int, clustered: bool, gives: Callable[[Flat, int, int, bool], list[Known]],
        hear: Callable[[Flat, int, Over, int], None],
    ) -> None:  # fmt: skip
        self._threads, self._clustered, self._gives, self._acquire = threads, clustered, gives, hear
        self._fenced: dict[_Thread, Known] = {}
        self._far: dict[_Thread, Known] = {}
        self._waits: list[_Wait] = []

    def fence(self, lanes: Rows, now: int, reach: int) -> list[tuple[Key, Flat]]:
        """Handle a fence; return the phases that it acquires, with the threads of each."""
        wide = reach >= CLUSTER or not self._clustered
        heard = [(wait.place, self._hear(wait, lanes, now, wide)) for wait in self._waits]
        self._waits = [wait for wait in self._waits if wait.threads.size]
        for column in np.flatnonzero(lanes.any(axis=0)).tolist():
            threads = np.flatnonzero(lanes[:, column])
            given = self._gives(threads, column, now, True)
            known = dict(zip(((one, column) for one in threads.tolist()), given, strict=True))
            self._fenced.update(known)
            self._far.update(known if wide else {})
        return [(place, threads) for place, threads in heard if wide and threads.size]

    def _hear(self, wait: _Wait, lanes: Rows, now: int, wide: bool) -> Flat:
        """Acquire for waiting threads that fence; other blocks' releases need a wide fence."""
        column, (near, far) = wait.place[0], wait.over
        fence = lanes[wait.threads, column]
        threads: Flat = wait.threads[fence]
        if threads.size:
            self._acquire(threads, column, (near, far if wide else None), now)
        if wide or not far:
            wait.threads = wait.threads[~fence]
        return threads

    def wait(self, place: Key, threads: Flat, over: Over) -> None:
        """Record threads of a block that observe a complete phase."""
        self._waits.append(_Wait(place, threads, over))

    def given(self, threads: Flat, column: int, far: bool) -> list[Known]:
        """Return what each of some threads releases; ``far``: to other blocks of the cluster."""
        clocks = self._far if far else self._fenced
        nothing = np.zeros(self._threads, np.int64)
        return [clocks.get((thread, column), {column: nothing}) for thread in threads.tolist()]
