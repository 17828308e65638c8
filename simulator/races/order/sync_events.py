"""Records of synchronisation events, as they are logged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.geometry import WARP, Flat
from ...memory.site import Site
from ...memory.storage.word_ops import unique
from .thread_clock import ThreadClock

_NUMBERS = 16
"""Barriers of a block that have numbers (PTX ISA, "barrier{.cta}")."""
BarrierId = tuple[int, int]
"""A barrier: its block and its number there, ``mbarrier_at``, or ``cluster_phase``."""


def mbarrier_at(block: int, address: int) -> BarrierId:
    """Return the identity of the mbarrier at an address of a block's shared memory."""
    return block, _NUMBERS + address


def cluster_phase(cluster: int, phase: int) -> BarrierId:
    """Return the identity of a phase of a cluster's barrier.

    Two values per barrier suffice: all threads leave a phase before the next but one begins.
    """
    return -1 - cluster, phase & 1


def by_block(threads: Flat, size: int) -> Iterator[tuple[int, Flat]]:
    """Group global thread numbers by block of ``size`` threads: block, and numbers within it."""
    block, lane = np.divmod(threads, size)
    for one in unique(block).tolist():
        yield one, lane[block == one]


@dataclass(slots=True)
class FenceEvent:
    """A fence; its fields are the arguments of ``ReleaseAcquireTracker.fence``."""

    time: int
    threads: Flat
    reach: int
    met: Flat
    warp: Flat
    known: Sequence[ThreadClock] | None


@dataclass(slots=True)
class BarrierReleased:
    """The release of a block barrier.

    ``blocks``: blocks of which all threads took part. ``number``: the barrier's number.
    """

    time: int
    threads: Flat
    blocks: Flat
    number: int

    def parts(self, size: int) -> Iterator[tuple[int, Flat]]:
        """Yield the other blocks, with the numbers of the threads that took part."""
        if len(self.threads) != len(self.blocks) * size:
            for block, lanes in by_block(self.threads, size):
                if block not in self.blocks:
                    yield block, lanes


@dataclass(slots=True)
class BarrierArrival:
    """An arrival at a barrier on which other threads wait.

    Attributes:
        at: The barrier.
        completes: Whether the arrival completes the phase.
        known: As ``ReleaseAcquireTracker.fence`` takes it, if threads of other blocks may wait.
        relaxed: Whether each thread releases only what it has fenced itself.
    """

    time: int
    threads: Flat
    at: BarrierId
    completes: bool
    known: Sequence[ThreadClock] | None
    relaxed: bool


@dataclass(slots=True)
class PhaseObserved:
    """Threads that observed a complete phase of an ``mbarrier`` or of the cluster's barrier.

    The latter is complete when the first thread observes it. ``fences``: the wait acquires at a
    scope wider than the block, like a fence.
    """

    time: int
    threads: Flat
    at: BarrierId
    fences: bool


@dataclass(slots=True)
class WarpBarrierReleased:
    """The release of a warp barrier: blocks, warps, and their lanes as bits."""

    time: int
    blocks: Flat
    warps: Flat
    lanes: Flat

    def groups(self) -> Iterator[tuple[int, Flat]]:
        """Yield each group that met: its block, and the thread numbers."""
        columns = (self.blocks.tolist(), self.warps.tolist(), self.lanes)
        for block, warp, bits in zip(*columns, strict=True):
            yield block, warp * WARP + np.flatnonzero(bits >> np.arange(WARP) & 1)


@dataclass(slots=True)
class StrongAccess:
    """A strong access of many lanes in sequence; see ``ReleaseAcquireTracker.access``."""

    time: int
    threads: Flat
    site: Site
    places: Flat
    turns: Flat
    met: Flat
    warp: Flat
    known: Sequence[ThreadClock] | None
    failed: list[bool] | None
    silent: list[bool] | None


SyncEvent = (
    FenceEvent
    | BarrierReleased
    | BarrierArrival
    | PhaseObserved
    | WarpBarrierReleased
    | StrongAccess
)
"""Something that happened, in the order of time."""
