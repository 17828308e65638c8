"""Distributed shared memory: that of the other blocks of a cluster."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.geometry import Addresses, Geometry, Mask
from ...isa.memory.address_windows import RANK_BITS, WINDOWS
from ..event import Part
from ..site import Site
from ..storage.spaces import ColumnIndex, InterleavedMemory, PlaceIndex

_RANKS = 1 << 5
"""Numbers of blocks in a cluster that an address has room for."""


class Far(NamedTuple):
    """Lanes of an access that address shared memory of other blocks by their rank in the cluster.

    Attributes:
        parts: Target blocks, with the lanes that access each.
        events: Event of each part.
        inside: Offsets in the target's shared memory.
        outside: Lanes that reach beyond it; the first entry (true) has those without a target
            block.
    """

    parts: list[tuple[Mask, PlaceIndex]]
    events: list[Part]
    inside: Addresses
    outside: list[tuple[bool, Mask]]
    misaligned: Mask


def at(g: Geometry, address: int, column: int) -> tuple[int, int]:
    """Return offset and block column of a shared address of a lane.

    Without such a block the address is returned unchanged: it is out of bounds.
    """
    rank = (address >> RANK_BITS) - 1
    if not 0 <= rank < g.clusters.size:
        return address, column
    return address & (1 << RANK_BITS) - 1, int(g.clusters.columns[column, rank])


def plain(g: Geometry, base: Addresses) -> Addresses:
    """Return generic addresses without the rank of the lane's own block."""
    if g.clusters.size == 1:
        return base
    own = (g.clusters.rank + 1).reshape(1, 1, 1, -1)
    inside = base - np.int64(WINDOWS["shared"])
    mine = inside >> np.int64(RANK_BITS) == own
    if not mine.any():
        return base
    found: Addresses = base - np.where(mine, own << np.int64(RANK_BITS), np.int64(0))
    first = found[..., :1]
    return first if (found == first).all() else found


def take(
    g: Geometry,
    shared: InterleavedMemory,
    site: Site,
    address: Addresses,
    pending: Mask,
    aligned: Mask,
) -> Far:
    """Take such lanes out of the ``pending`` ones, by addresses of ``windows.map_address``.

    All are in the geometry's full shape.
    """
    if site.space == "generic":
        address = address - np.int64(WINDOWS["shared"])
    whose = address >> np.int64(RANK_BITS)
    lanes = pending & (whose > 0) & (whose <= _RANKS)
    pending &= ~lanes
    block = lanes & (whose <= g.clusters.size)
    inside = address & np.int64((1 << RANK_BITS) - 1)
    there = block & (inside <= shared.nbytes - site.nbytes)
    outside = [(True, lanes & ~block), (False, block & ~there)]
    found = Far([], [], inside, [o for o in outside if o[1].any()], there & ~aligned)
    good = there & aligned
    if good.any():
        own = np.broadcast_to(np.arange(g.columns), g.shape)
        columns = g.clusters.columns[own, np.where(block, whose - 1, 0)]
        index = ColumnIndex(shared, inside, site.type, site.count, columns)
        found.parts.append((good, index))
        offsets = inside - np.int64(site.offset)
        found.events.append(("cluster", offsets, good, shared, columns))
    return found
