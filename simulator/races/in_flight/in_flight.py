"""Copies in flight, and the accesses to their bytes meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import WARP, Flat, Geometry, Mask, Rows
from ...memory.event import AccessEvent
from ...memory.site import Site
from ...memory.storage.word_ops import among, unique
from ..accesses import Accesses, Race, lanes_of
from ..shadow.shadow_memory import Conflict

TOUCHES = 64
"""Accesses to what a copy is to write that are kept until it ends."""


_WAITS = 16
"""Waits that left a copy under way, of which so many are remembered."""


@dataclass
class InFlightAccess:
    """Accesses between start and completion of a copy, one element for each pair of threads.

    Attributes:
        time: Time of the access.
        mine, issuer: Accessing and issuing thread, in the block of ``column``.
        near: Whether the two are lanes of one warp, or the copy arrives at an mbarrier, and a wait
            lies between them in program order.
    """

    race: Race
    conflict: Conflict
    time: int
    mine: Flat
    issuer: Flat
    column: Flat
    near: bool = False

    def some(self, which: Mask) -> InFlightAccess:
        """Return the accesses that a mask selects."""
        columns = (self.mine[which], self.issuer[which], self.column[which])
        return InFlightAccess(self.race, self.conflict.some(which), self.time, *columns, self.near)


@dataclass
class Copy:
    """One execution of a copy instruction, while it is in flight.

    Attributes:
        lanes: Issuing lanes, ``(threads, columns)``.
        group: Number of each lane's group.
        barrier: Number (``barrier_number``) of the mbarrier at which each lane's copy arrives.
        over: Lanes whose phase at that mbarrier is complete.
        barriers: These mbarriers, and possibly others.
        low, high: Extent of the destination in each block's shared memory, in bytes.
        since: Time of the start, or of the arrival at an mbarrier, of each or all lanes.
        touched: Accesses of other warps that know of the start.
        waited: Time at which each thread learned of the completion; 0: it has not.
        known: Epochs of threads that know of that.
        ended: Time of each lane's own wait, if the copy also arrives at an mbarrier; 0: none.
        done: Time of the wait of all lanes; ``None``: none yet.
        short: Times of waits that left the copy in flight, ascending, each with the waiting lanes,
            its pending count and the required one.
    """

    event: AccessEvent
    lanes: Rows
    group: Rows
    low: int
    high: int
    since: Rows
    touched: list[InFlightAccess] = field(default_factory=list)
    barrier: Rows | None = None
    over: Rows | None = None
    barriers: set[int] = field(default_factory=set)
    waited: Rows | None = None
    known: Rows | None = None
    ended: Rows | None = None
    done: int | None = None
    short: list[tuple[int, Rows, int, int]] = field(default_factory=list)

    @property
    def finished(self) -> Flat:
        """Return the blocks in which the copy is complete and waited for."""
        assert self.waited is not None
        return np.asarray(self.waited.any(axis=0))

    @property
    def waits_ended(self) -> Rows:
        """Return the lanes that have waited for their own copies."""
        assert self.ended is not None
        return self.ended > 0

    def within(self, instruction: Instruction, low: int, high: int) -> bool:
        """Whether this is a copy of an instruction, inside an extent of bytes."""
        return self.event.site.instruction is instruction and low <= self.low and self.high <= high

    def over_at(self, barriers: Flat, column: int | None = None) -> Rows:
        """Return the lanes whose copies arrive at some mbarriers and whose phases are complete.

        ``column``: restricts these to one block.
        """
        if self.barrier is None or self.over is None or not self.over.any():
            return np.zeros_like(self.lanes)
        if column is None:
            return self.over & among(self.barrier, barriers)
        found = np.zeros_like(self.lanes)
        found[:, column] = self.over[:, column] & among(self.barrier[:, column], barriers)
        return found

    def awaits(self, on: Rows, pending: int, groups: Rows, now: int) -> None:
        """Record a wait that leaves ``pending`` of the lanes' groups, among them this copy."""
        number = np.broadcast_to(groups - self.group - 1, self.lanes.shape)
        those = self.lanes & on & (number < pending) & (number >= 0)
        if those.any():
            waited = now, those, pending, int(number[those].min())
            self.short = [*self.short[1 - _WAITS :], waited]

    def waited_short(
        self, site: Site, until: Flat, issuer: Flat, column: Flat
    ) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the insufficient waits that accessing threads know of.

        The result maps pairs of copy site and accessing site to the numbers in ``short`` of the
        last such wait.

        Args:
            site: The accessing site.
            until: The epoch known to each accessing thread.
            issuer: The thread that issued the copy which each accesses.
            column: The issuer's block.
        """
        last = np.full(until.shape, -1)
        for at, (time, lanes, _, _) in enumerate(self.short):
            last[(time <= until) & lanes[issuer, column]] = at
        known = [self.short[at][2:] for at in unique(last[last >= 0])]
        pair = self.event.site.number, site.number
        return {pair: min(known, key=lambda one: one[1])} if known else {}

    def leave(self, which: Rows | tuple[slice, int | Flat]) -> None:
        """Stop tracking the copies of some lanes."""
        if not self.lanes.flags.writeable:  # all of them, as others have it
            self.lanes = self.lanes.copy()
        self.lanes[which] = False

    def split(self, threads: Mask) -> Copy:
        """Move the copies of some threads, in every block, to a new object."""
        lanes, self.lanes = self.lanes & threads[:, None], self.lanes & ~threads[:, None]
        part = replace(self, lanes=lanes, touched=[])
        if self.waited is not None and self.known is not None:
            part.waited, part.known = self.waited.copy(), self.known.copy()
        issued = [threads[touch.issuer] for touch in self.touched]
        part.touched = [t.some(its) for t, its in zip(self.touched, issued, strict=True)]
        self.touched = [t.some(~its) for t, its in zip(self.touched, issued, strict=True)]
        return part

    def arrives(self, which: Rows, at: Rows) -> None:
        """Record the mbarriers of lanes whose copies have none yet."""
        if self.barrier is None or self.over is None:
            self.barrier, self.over = (
                np.full(which.shape, -1, np.int64),
                np.zeros(which.shape, bool),
            )
        which &= self.barrier < 0
        self.barrier[which] = at[which]
        self.barriers |= set(unique(at[which]).tolist())

    def complete(self, which: Rows, now: int) -> None:
        """Record lanes' waits for their own copies.

        Other threads may wait for the phase instead.
        """
        if self.ended is None:
            self.ended = np.zeros(which.shape, np.int64)
        self.ended[which & (self.ended == 0)] = now


_MAX_BYTES = 1 << 20
"""Pairs of lanes of two accesses that are looked at."""


def overlapping_lanes(places: Rows, theirs: Rows) -> tuple[Flat, Flat, Flat]:
    """Return the pairs of lanes that overlap, and where, of two accesses ``(lanes, parts)``."""
    order = np.argsort(theirs, axis=None, kind="stable")
    sorted_places, wanted = theirs.reshape(-1)[order], places.reshape(-1)
    starts = np.searchsorted(sorted_places, wanted)
    many = np.searchsorted(sorted_places, wanted, "right") - starts
    many[np.cumsum(many) > _MAX_BYTES] = 0  # more pairs than are kept
    hit = np.repeat(np.arange(len(wanted)), many)  # once for each of the others at the same place
    at = np.arange(len(hit)) - np.repeat(np.cumsum(many) - many, many) + starts[hit]
    return hit // places.shape[1], order[at] // theirs.shape[1], wanted[hit]


def places_of(g: Geometry, event: AccessEvent, granule: int) -> tuple[Accesses, Rows]:
    """Return the lanes of an access, and the locations of each, ``(lanes, parts)``."""
    lanes = lanes_of(g, event)
    parts = np.arange(max(1, event.site.nbytes // granule))
    first = lanes.address // granule
    return lanes, (first[:, None] + parts) * g.columns + lanes.home[:, None]


def whole_warps(threads: Mask) -> Mask:
    """Extend a mask of a block's threads to whole warps."""
    any_of = np.logical_or.reduceat(threads, np.arange(0, len(threads), WARP))
    return np.repeat(any_of, WARP)[: len(threads)]
