"""Accesses flattened to lanes, and what race checks say to each other."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..geometry import Addresses, Flat, Geometry, Lanes, Mask, as_mask
from ..memory.event import Spread
from ..memory.site import Site
from ..memory.spaces import Allocation

SHARED = -1
"""The number under which ``LookCloser`` names shared memory."""


class LookCloser(Exception):
    """The quick look cannot rule a hazard out; run again and look closer at this array.

    Attributes:
        number: The array's, or ``SHARED``.
        places: ``False``: find out which locations several threads access. An array: the
            exact table for those locations.
    """

    def __init__(self, number: int, places: Flat | Literal[False] = False) -> None:
        super().__init__(number)
        self.number, self.places = number, places


Closer = dict[int, Flat | Literal[False]]
"""What to look at closely, by array number (and ``SHARED``): ``LookCloser.places``."""


@dataclass
class Race:
    """Racing accesses of two instructions, as they are found.

    Attributes:
        other: The instruction remembered; ``site``: the present one.
        granule: Bytes of a location.
        how: See ``shadow.clash``.
        distance: ``lane``, ``warp`` or ``block``.
        threads: Of a block; ``columns``: blocks of the batch.
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


@dataclass
class Accesses:
    """The lanes of an access: thread of the block, column and byte address, 1-D each."""

    thread: Flat
    column: Flat
    address: Addresses


def flatten(
    g: Geometry, site: Site, address: Addresses | Spread, mask: Mask | None, columns: int
) -> Accesses:
    """Flatten an access; ``columns`` is 1 where all blocks do the same."""
    if isinstance(address, Spread):
        on = g.full(as_mask(mask))[address.thread, address.column]
        return Accesses(
            address.thread[on], address.column[on], address.address[on] + np.int64(site.offset)
        )
    rows = np.broadcast_to(g.factored(address), (g.threads, columns))
    if mask is None:
        thread = np.repeat(np.arange(g.threads), columns)
        column = np.tile(np.arange(columns), g.threads)
        flat = rows.reshape(-1)
    else:
        on = np.broadcast_to(g.factored(mask), (g.threads, columns))
        thread, column = np.nonzero(on)
        flat = rows[thread, column]
    return Accesses(thread, column, flat + np.int64(site.offset))


def columns_of(*values: Lanes | None) -> int:
    """Number of block columns that a set of addresses and masks distinguish."""
    return max(v.shape[3] if v is not None and v.ndim else 1 for v in values)
