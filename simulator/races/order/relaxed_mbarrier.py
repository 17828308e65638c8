"""Arrivals and waits at an ``mbarrier`` that are relaxed: what a fence makes of them.

Such an arrival hands on what its thread had done and seen by its last fence; who waits so has seen
what the phase hands on from its next fence on (PTX ISA, "Memory Consistency Model": release and
acquire patterns). Between blocks of a cluster a fence takes the cluster's scope, or a wider one.
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
    """Threads of a block have seen that a phase is over, and are to fence."""

    place: Key
    threads: Flat
    over: Over


class RelaxedMbarriers:
    """What threads of one batch had seen by their fences, and are to hear by their next.

    Args:
        threads: Of a block.
        clustered: Whether blocks of a cluster are put in order.
        gives: See ``HappensBefore.gives``.
        hear: See ``HappensBefore.hear``.
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
        """Threads fence: the phases that some of them have heard of by that, and which threads."""
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
        """Those who fence of them who wait; what comes from afar is left to a wide fence."""
        column, (near, far) = wait.place[0], wait.over
        fence = lanes[wait.threads, column]
        threads: Flat = wait.threads[fence]
        if threads.size:
            self._acquire(threads, column, (near, far if wide else None), now)
        if wide or not far:
            wait.threads = wait.threads[~fence]
        return threads

    def wait(self, place: Key, threads: Flat, over: Over) -> None:
        """Threads of a block see that a phase is over."""
        self._waits.append(_Wait(place, threads, over))

    def given(self, threads: Flat, column: int, far: bool) -> list[Known]:
        """What each of some threads of a block hands on without a fence (``far``: of its own)."""
        clocks = self._far if far else self._fenced
        nothing = np.zeros(self._threads, np.int64)
        return [clocks.get((thread, column), {column: nothing}) for thread in threads.tolist()]
