"""What happens, as it is noted down for ``releases``."""

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
    """The barrier at an address of a block's shared memory."""
    return block, _NUMBERS + address


def cluster_phase(cluster: int, phase: int) -> BarrierId:
    """The barrier of a cluster, in a phase; all have left it before the next but one begins."""
    return -1 - cluster, phase & 1


def by_block(threads: Flat, size: int) -> Iterator[tuple[int, Flat]]:
    """Of threads (global numbers) in blocks of ``size``: each block, and their numbers in it."""
    block, lane = np.divmod(threads, size)
    for one in unique(block).tolist():
        yield one, lane[block == one]


@dataclass(slots=True)
class FenceEvent:
    """Fence of some threads; the fields are arguments of ``ReleaseAcquireTracker.fence``."""

    time: int
    threads: Flat
    reach: int
    met: Flat
    warp: Flat
    known: Sequence[ThreadClock] | None


@dataclass(slots=True)
class BarrierReleased:
    """A barrier let threads go.

    ``blocks``: those of which all threads came; ``number``: the barrier's.
    """

    time: int
    threads: Flat
    blocks: Flat
    number: int

    def parts(self, size: int) -> Iterator[tuple[int, Flat]]:
        """Of other blocks, of ``size`` threads: the numbers in it of those who met."""
        if len(self.threads) != len(self.blocks) * size:
            for block, lanes in by_block(self.threads, size):
                if block not in self.blocks:
                    yield block, lanes


@dataclass(slots=True)
class BarrierArrival:
    """Threads came to a barrier, for others who wait there.

    Attributes:
        at: The barrier.
        ends: With them its phase.
        known: As ``ReleaseAcquireTracker.fence`` takes it, where others than those of their block
            may wait.
        relaxed: They hand on what each has fenced itself.
    """

    time: int
    threads: Flat
    at: BarrierId
    completes: bool
    known: Sequence[ThreadClock] | None
    relaxed: bool


@dataclass(slots=True)
class PhaseObserved:
    """Threads saw that a phase of an ``mbarrier`` is over, or of the barrier of a cluster.

    (That is over with the first who sees it.) ``fences``: the wait acquires at a wider scope than
    the block, as a fence does.
    """

    time: int
    threads: Flat
    at: BarrierId
    fences: bool


@dataclass(slots=True)
class WarpBarrierReleased:
    """Lanes of warps met: of which, by block and number, and ``lanes``, as bits."""

    time: int
    blocks: Flat
    warps: Flat
    lanes: Flat

    def groups(self) -> Iterator[tuple[int, Flat]]:
        """Those who met each other: their block, and their numbers in it."""
        columns = (self.blocks.tolist(), self.warps.tolist(), self.lanes)
        for block, warp, bits in zip(*columns, strict=True):
            yield block, warp * WARP + np.flatnonzero(bits >> np.arange(WARP) & 1)


@dataclass(slots=True)
class StrongAccess:
    """A strong access of many lanes, in their turns; see ``ReleaseAcquireTracker.access``."""

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
