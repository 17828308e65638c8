"""Copies that are under way, and what touched their bytes meanwhile."""

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
    """An access that began between the begin of a copy and its end, an element a pair.

    Attributes:
        time: When it was; ``mine``, ``issuer``: threads of the blocks in ``column``.
        near: Whether they are lanes of a warp, or the copy is to arrive at an mbarrier, and the
            text has a wait between the two.
    """

    race: Race
    conflict: Conflict
    time: int
    mine: Flat
    issuer: Flat
    column: Flat
    near: bool = False

    def some(self, which: Mask) -> InFlightAccess:
        """Those that a mask names."""
        columns = (self.mine[which], self.issuer[which], self.column[which])
        return InFlightAccess(self.race, self.conflict.some(which), self.time, *columns, self.near)


@dataclass
class Copy:
    """One execution of a copy, as far as it is under way.

    Attributes:
        lanes: Which lanes' copies are, ``(threads, columns)``; ``group``: of each lane.
        barrier: The mbarrier at which each lane's copy arrives when it is done, by its number
            (``barrier_number``); ``over``: of which lanes the phase is over in which it has;
            ``barriers``: these, and perhaps others.
        low, high: The bytes they are to write, in each block's shared memory.
        since: When each lane's, or all of them, began, or arrived at an mbarrier for its end.
        touched: Accesses by other warps that know that it has begun, until it ends.
        waited: When each thread saw that it was done; 0: it did not. ``known``: who knows of that.
        ended: When each lane waited for its own, which arrives at an mbarrier, too; 0: it did not.
        done: When its lanes had waited for it, all at a time; ``None``: they have not.
        short: When its issuers waited and left it under way, ascending; with what number, and with
            what they had to.
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
    short: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def finished(self) -> Flat:
        """The blocks in which it is done, and somebody has waited for that."""
        assert self.waited is not None
        return np.asarray(self.waited.any(axis=0))

    @property
    def waits_ended(self) -> Rows:
        """The lanes that have waited for their own."""
        assert self.ended is not None
        return self.ended > 0

    def within(self, instruction: Instruction, low: int, high: int) -> bool:
        """Whether it is one of an instruction's, and of no other bytes than these."""
        return self.event.site.instruction is instruction and low <= self.low and self.high <= high

    def over_at(self, barriers: Flat, column: int | None = None) -> Rows:
        """The lanes that arrive at some mbarriers, and the phase is over in which they do.

        ``column``: only those of this block.
        """
        if self.barrier is None or self.over is None or not self.over.any():
            return np.zeros_like(self.lanes)
        if column is None:
            return self.over & among(self.barrier, barriers)
        found = np.zeros_like(self.lanes)
        found[:, column] = self.over[:, column] & among(self.barrier[:, column], barriers)
        return found

    def awaits(self, on: Rows, pending: int, groups: Rows, now: int) -> None:
        """Lanes wait until so many groups are left, of those that they have ended: not for it."""
        number = np.broadcast_to(groups - self.group - 1, self.lanes.shape)
        those = self.lanes & on & (number < pending) & (number >= 0)
        if those.any():
            self.short = [*self.short[1 - _WAITS :], (now, pending, int(number[those].min()))]

    def waited_short(self, site: Site, until: Flat) -> dict[tuple[int, int], tuple[int, int]]:
        """The waits that those know of who touch its bytes; ``until``: up to when, each of them.

        By this copy's site and theirs: of the last wait, the numbers of ``short``.
        """
        last = np.searchsorted([time for time, _, _ in self.short], until, "right") - 1
        known = [self.short[at][1:] for at in unique(last[last >= 0])]
        pair = self.event.site.number, site.number
        return {pair: min(known, key=lambda one: one[1])} if known else {}

    def leave(self, which: Rows | tuple[slice, int | Flat]) -> None:
        """Some lanes' copies, an index, are followed no more."""
        if not self.lanes.flags.writeable:  # all of them, as others have it
            self.lanes = self.lanes.copy()
        self.lanes[which] = False

    def split(self, threads: Mask) -> Copy:
        """Those of some threads, in every block: from now on a copy of its own."""
        lanes, self.lanes = self.lanes & threads[:, None], self.lanes & ~threads[:, None]
        part = replace(self, lanes=lanes, touched=[])
        if self.waited is not None and self.known is not None:
            part.waited, part.known = self.waited.copy(), self.known.copy()
        issued = [threads[touch.issuer] for touch in self.touched]
        part.touched = [t.some(its) for t, its in zip(self.touched, issued, strict=True)]
        self.touched = [t.some(~its) for t, its in zip(self.touched, issued, strict=True)]
        return part

    def arrives(self, which: Rows, at: Rows) -> None:
        """Copies of some lanes arrive at mbarriers, those not told of yet."""
        if self.barrier is None or self.over is None:
            self.barrier, self.over = (
                np.full(which.shape, -1, np.int64),
                np.zeros(which.shape, bool),
            )
        which &= self.barrier < 0
        self.barrier[which] = at[which]
        self.barriers |= set(unique(at[which]).tolist())

    def complete(self, which: Rows, now: int) -> None:
        """Lanes have waited for their own; others may see the end of the phase instead."""
        if self.ended is None:
            self.ended = np.zeros(which.shape, np.int64)
        self.ended[which & (self.ended == 0)] = now


_MAX_BYTES = 1 << 20
"""Pairs of lanes of two accesses that are looked at."""


def overlapping_lanes(places: Rows, theirs: Rows) -> tuple[Flat, Flat, Flat]:
    """Of two accesses, ``(lanes, parts)`` each: the lanes that meet, pair by pair, and where."""
    order = np.argsort(theirs, axis=None, kind="stable")
    sorted_places, wanted = theirs.reshape(-1)[order], places.reshape(-1)
    starts = np.searchsorted(sorted_places, wanted)
    many = np.searchsorted(sorted_places, wanted, "right") - starts
    many[np.cumsum(many) > _MAX_BYTES] = 0  # more pairs than are kept
    hit = np.repeat(np.arange(len(wanted)), many)  # once for each of the others at the same place
    at = np.arange(len(hit)) - np.repeat(np.cumsum(many) - many, many) + starts[hit]
    return hit // places.shape[1], order[at] // theirs.shape[1], wanted[hit]


def places_of(g: Geometry, event: AccessEvent, granule: int) -> tuple[Accesses, Rows]:
    """The lanes of an access, and the locations of each, ``(lanes, parts)``."""
    lanes = lanes_of(g, event)
    parts = np.arange(max(1, event.site.nbytes // granule))
    first = lanes.address // granule
    return lanes, (first[:, None] + parts) * g.columns + lanes.home[:, None]


def whole_warps(threads: Mask) -> Mask:
    """The threads of a block whose warps have any of some."""
    any_of = np.logical_or.reduceat(threads, np.arange(0, len(threads), WARP))
    return np.repeat(any_of, WARP)[: len(threads)]
