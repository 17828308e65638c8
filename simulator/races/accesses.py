"""Accesses flattened to lanes, and what race checks say to each other."""

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
    """The quick look cannot rule a hazard out; run again and look closer at this array.

    Attributes:
        number: The array's, or ``SHARED``.
        places: ``False``: find out which locations several threads access. An array: the
            exact table for those locations.
    """

    def __init__(self, number: int, places: Flat | Literal[False] = False) -> None:
        super().__init__(number)
        self.number, self.places = number, places


PrecisionPlan = dict[int, Flat | Literal[False]]
"""What to look at closely, by array number (and ``SHARED``): ``EscalateCheck.places``."""


@dataclass
class Race:
    """Racing accesses of two instructions, as they are found.

    Attributes:
        other: The instruction remembered; ``site``: the present one.
        granule: Bytes of a location.
        how: See ``conflicts.clash``.
        distance: ``lane``, ``warp`` or ``block``.
        threads: Of a block; ``columns``: blocks of the batch; ``blocks``: their numbers, where the
            memory of one is raced on by others.
        at_once: Whether both are of one execution of an instruction, or of two to which the lanes
            did not come together.
        met: Whether a barrier stands behind a relaxed read that a fence would make an acquire.
        behind: Whether the read comes behind an earlier write by the same thread.
        loaded: What the readers' blocks would have to hold in L1 from before that.
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
        """At which locations one of the two is out of bounds of the variables it is meant for."""
        found = np.zeros(len(places), bool)
        for room in (self.other.object_bounds, self.site.object_bounds):
            if room is not None and self.space == "shared":
                at = places // self.columns * self.granule
                found |= (at < room[0]) | (at >= room[1])
        return found


@dataclass
class Accesses:
    """The lanes of an access: thread of the block, column and byte address, 1-D each.

    ``home``: the column of the block whose shared memory it is.
    """

    thread: Flat
    column: Flat
    address: Addresses
    home: Flat

    def some(self, at: Flat) -> Accesses:
        """Some of them."""
        return Accesses(self.thread[at], self.column[at], self.address[at], self.home[at])

    def located(self, site: Site, granule: int) -> tuple[Accesses, Flat]:
        """Each lane for each location that it accesses; and which of its lane's that is."""
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
    """Which lanes access, ``(threads, columns)``."""
    if not isinstance(event.address, LaneAddressList):
        return g.everyone_on if event.mask is None else g.full(event.mask)
    on = np.zeros((g.threads, g.columns), bool)
    on[event.address.thread, event.address.column] = True
    return on


def flatten(
    g: Geometry, site: Site, address: Addresses | LaneAddressList, mask: Mask | None, columns: int,
    homes: Lanes | None = None,
) -> Accesses:  # fmt: skip
    """Flatten an access; ``columns``: 1 where all blocks do the same; ``homes``: ``Event``'s."""
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
    """An access's addresses, and the numbers in the launch of its threads, block after block.

    In this order neighbours usually access neighbours; ``flatten`` goes thread after thread.
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
    """Places as an index: a slice, with which nothing is gathered, where they follow each other."""
    count = len(places)
    if count and places[-1] - places[0] == count - 1 and (places[1:] > places[:-1]).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def columns_of(*values: Lanes | None) -> int:
    """Number of block columns that a set of addresses and masks distinguish."""
    return max(v.shape[3] if v is not None and v.ndim else 1 for v in values)
