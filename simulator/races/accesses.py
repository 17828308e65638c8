"""Accesses flattened to lanes, and the types that race checks exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.geometry import Addresses, Flat, Geometry, Lanes, Mask, Rows, as_mask
from ..memory.event import AccessEvent, LaneAddressList
from ..memory.site import Site
from ..memory.storage.spaces import Allocation
from .order.stale_reads import Loaded

SHARED = -1
"""The number under which ``EscalateCheck`` names shared memory."""


class EscalateCheck(Exception):
    """A cheap check cannot decide; repeat the launch with a closer check of an array.

    Reasons are possible races, reads of shared memory that nothing wrote, intervals of too many
    accesses, events that barrier intervals do not model, and arrays that are written and read
    through the read-only path. ``docs/checks.md``, "Further runs of a launch", lists all.

    Attributes:
        number: Number of the array, or ``SHARED``; for the read-only path -2 minus the number.
        places: Of an array, ``False``: determine which locations several threads access. Flags of
            the locations: use shadow memory for these. Unused for the others.
    """

    def __init__(self, number: int, places: Flat | Literal[False] = False) -> None:
        super().__init__(number)
        self.number, self.places = number, places


PrecisionPlan = dict[int, Flat | Literal[False]]
"""What to check more closely: ``EscalateCheck.places`` by ``EscalateCheck.number``."""


@dataclass
class Race:
    """Racing accesses of two instructions.

    Attributes:
        other: Site of the recorded access.
        site: Site of the current access.
        granule: Bytes of a location.
        how: Kind of the race: see ``conflicts.race_kind``.
        distance: ``lane``, ``warp`` or ``block``.
        threads: Threads of a block.
        columns: Blocks of the batch.
        blocks: Their numbers, if other blocks race on a block's memory.
        same_execution: Whether both are of one execution of an instruction, or of two that the
            lanes did not reach together.
        met: Whether a barrier follows a relaxed read that a fence would turn into an acquire.
        behind: Whether the read follows an earlier write by the same thread.
        loaded: Sectors that the readers' blocks would have to hold in L1 since before that.
    """

    other: Site
    site: Site
    space: str
    allocation: Allocation | None
    granule: int
    how: str
    distance: str
    threads: int
    columns: int
    blocks: Flat | None = None
    same_execution: bool = False
    met: bool = False
    behind: bool = False
    loaded: Loaded | None = None

    def overruns(self, places: Flat) -> Flat:
        """Return the locations at which one access is outside the variables it is derived from."""
        found = np.zeros(len(places), bool)
        for room in (self.other.object_bounds, self.site.object_bounds):
            if room is not None and self.space == "shared":
                at = places // self.columns * self.granule
                found |= (at < room[0]) | (at >= room[1])
        return found


@dataclass
class Accesses:
    """Lanes of an access: thread of the block, column and byte address, 1-D each.

    ``home``: column of the block whose shared memory is accessed.
    """

    thread: Flat
    column: Flat
    address: Addresses
    home: Flat

    def some(self, at: Flat) -> Accesses:
        """Return some of the lanes."""
        return Accesses(self.thread[at], self.column[at], self.address[at], self.home[at])

    def located(self, site: Site, granule: int) -> tuple[Accesses, Flat]:
        """Expand each lane to its locations; return also the index of each within its lane."""
        parts, count = max(1, site.nbytes // granule), len(self.thread)
        part = np.repeat(np.arange(parts), count)
        if parts == 1:
            return self, part
        columns = self.thread, self.column, self.address, self.home
        return Accesses(*(np.concatenate([column] * parts) for column in columns)), part


def lanes_of(g: Geometry, event: AccessEvent) -> Accesses:
    """Flatten an event."""
    return flatten(g, event.site, event.address, event.mask, g.columns, event.columns)


def rows_of(g: Geometry, event: AccessEvent) -> Rows:
    """Return the mask of accessing lanes, ``(threads, columns)``."""
    if not isinstance(event.address, LaneAddressList):
        return g.everyone_on if event.mask is None else g.full(event.mask)
    on = np.zeros((g.threads, g.columns), bool)
    on[event.address.thread, event.address.column] = True
    return on


def flatten(
    g: Geometry, site: Site, address: Addresses | LaneAddressList, mask: Mask | None, columns: int,
    homes: Lanes | None = None,
) -> Accesses:  # fmt: skip
    """Flatten an access.

    ``columns``: 1 if all blocks access the same addresses. ``homes``: as in
    ``AccessEvent.columns``.
    """
    if isinstance(address, LaneAddressList):
        on = g.full(as_mask(mask))[address.thread, address.column]
        home = address.column if address.home is None else address.home
        return Accesses(
            address.thread[on], address.column[on], address.address[on] + np.int64(site.offset),
            home[on],
        )  # fmt: skip
    rows = g.factored(address, columns)
    if mask is None:
        thread = np.repeat(np.arange(g.threads), columns)
        column = np.tile(np.arange(columns), g.threads)
        flat = rows.reshape(-1)
    else:
        on = g.factored(mask, columns)
        thread, column = np.nonzero(on)
        flat = rows[thread, column]
    home = column if homes is None else g.full(homes)[thread, column]
    return Accesses(thread, column, flat + np.int64(site.offset), home)


def by_block(
    g: Geometry, site: Site, address: Addresses | LaneAddressList, mask: Mask | None
) -> tuple[Flat, Flat]:
    """Return addresses and global thread numbers of an access, block by block.

    In this order neighbours usually access neighbouring addresses; ``flatten`` orders by thread.
    """
    if isinstance(address, LaneAddressList):
        lanes = flatten(g, site, address, mask, g.columns)
        return lanes.address, g.blocks[lanes.column] * g.threads + lanes.thread
    known = g.by_block
    if known and known[0] is address and known[1] is mask and known[2] == site.offset:
        return known[3], known[4]
    rows = g.factored(address, g.columns)
    flat = np.ascontiguousarray(rows.T).reshape(-1)
    thread = g.lane_numbers
    if mask is not None:
        on = g.factored(mask, g.columns)
        at = np.flatnonzero(on.T)
        if at.size < flat.size:
            flat, thread = flat[at], thread[at]
    if site.offset:
        flat = flat + np.int64(site.offset)
    g.by_block = address, mask, site.offset, flat, thread
    return flat, thread


def dense(places: Flat) -> slice | Flat:
    """Return places as an index: a slice, which copies nothing, if they are consecutive."""
    count = len(places)
    if count and places[-1] - places[0] == count - 1 and (places[1:] > places[:-1]).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def columns_of(*values: Lanes | None) -> int:
    """Return the number of block columns that some addresses and masks distinguish."""
    return max(v.shape[3] if v is not None and v.ndim else 1 for v in values)
