"""Accesses flattened to lanes, and what race checks say to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .geometry import Geometry
from .memory import Allocation
from .shadow import Conflict
from .site import Site

SHARED = -1
"""The number under which ``LookCloser`` names shared memory."""


class LookCloser(Exception):
    """The quick look cannot rule a hazard out; run again with this array's table on."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass
class Race:
    """Racing accesses of two instructions, as they are found."""

    conflict: Conflict
    site: Site
    space: str
    allocation: Allocation | None
    threads: int
    granule: int
    same_value: Any
    columns: Any
    start: int


@dataclass
class Lanes:
    """The lanes of an access: thread of the block, column and byte address, 1-D each."""

    thread: Any
    column: Any
    address: Any
    pick: Any = field(repr=False, default=None)


def lanes_of(g: Geometry, site: Site, address: Any, mask: Any, columns: int) -> Lanes:
    """Flatten an access; ``columns`` is 1 where all blocks do the same."""
    rows = np.broadcast_to(g.factored(address), (g.threads, columns))
    if mask is None:
        thread = np.repeat(np.arange(g.threads), columns)
        column = np.tile(np.arange(columns), g.threads)
        flat = rows.reshape(-1)
        pick: Any = slice(None)
    else:
        on = np.broadcast_to(g.factored(mask), (g.threads, columns))
        thread, column = np.nonzero(on)
        flat = rows[thread, column]
        pick = thread * columns + column
    return Lanes(thread, column, flat + np.int64(site.offset), pick)


def width_of(*values: Any) -> int:
    """Number of block columns that a set of addresses and masks distinguish."""
    return max(v.shape[3] if v is not None and v.ndim else 1 for v in values)
