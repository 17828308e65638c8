"""Projection of a batch's events to its first block, if all blocks behave identically."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np

from ...analysis.influence import ForwardSlices
from ...core.geometry import Flat, Geometry, Lanes, Mask
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import PHASE, Site
from ..accesses import SHARED, PrecisionPlan
from ..in_flight.bulk_stores import sends

_Value = TypeVar("_Value", Lanes, Lanes | None)


class BlocksDiffer(Exception):
    """The blocks of the batch behave differently."""


def may_be_alike(steering: ForwardSlices, precision: PrecisionPlan, clusters: bool) -> bool:
    """Whether a launch can be checked by one block.

    It cannot if arrays need precise checks, or if blocks synchronise with each other.
    """
    program = steering.program
    if SHARED not in precision or clusters or steering.synchronising_reads:
        return False
    if any(places is not False for places in precision.values()):
        return False
    blocks = any(block.cluster or block.called for block in program.blocks)
    return not (blocks or any(map(sends, program.sites)))


class FirstBlock:
    """Projects events of a batch to its first block.

    Attributes:
        one: Geometry of that block alone.
    """

    def __init__(self, geometry: Geometry) -> None:
        g = self.geometry = geometry
        self.one = Geometry(g.grid, g.block, g.blocks[:1], g.cluster)
        self.one.moves = g.moves
        self._places: dict[object, LaneAddressList] = {}

    def of(self, event: AccessEvent) -> tuple[AccessEvent, bool]:
        """Return the first block's part of an access.

        And whether it is a bulk access in block order.

        Raises:
            BlocksDiffer: Blocks behave differently, or the access leaves their own memory.
        """
        if event.columns is not None or event.space != "shared":
            raise BlocksDiffer
        mask, values, old = event.mask, event.values, event.old
        if isinstance(event.address, LaneAddressList):
            at, tiled = _first_of(event.address, self.geometry.columns)
            thread, column, address = (values[at] for values in event.address[:3])
            home = None if event.address.home is None else event.address.home[at]
            first = self._known(event.site, LaneAddressList(thread, column, address, home))
            values = values and tuple(value[at] for value in values)
            return event._replace(address=first, mask=cut(mask), values=values), tiled
        address, mask = cut(event.address, mask), cut(mask)
        if values is None and old is None and address is event.address and mask is event.mask:
            return event, False
        if event.site.operation == PHASE:  # they say whether its phase ends
            values = values and tuple(cut(value, event.mask) for value in values)
            old = old and tuple(cut(value, event.mask) for value in old)
        else:
            values = values and tuple(map(_of_first, values))
            old = old and tuple(map(_of_first, old))
        return event._replace(address=address, mask=mask, values=values, old=old), False

    def whole(self, event: AccessEvent) -> AccessEvent:
        """Return all blocks' parts of a bulk access of which the first one's was recorded."""
        one, columns = cast(LaneAddressList, event.address), self.geometry.columns
        column = np.repeat(np.arange(columns), len(one.thread))
        thread, address = np.tile(one.thread, columns), np.tile(one.address, columns)
        home = None if one.home is None else column
        return event._replace(address=LaneAddressList(thread, column, address, home))

    def _known(self, site: Site, where: LaneAddressList) -> LaneAddressList:
        """Return one object for equal destinations of bulk copies, such as those of a stage."""
        if not len(where.address):
            return where
        key = site.number, len(where.address), int(where.address[0]), int(where.thread[0])
        known = self._places.setdefault(key, where)
        one, other = known[:3], where[:3]
        same = (known.home is None) == (where.home is None)
        return known if same and all(map(np.array_equal, one, other)) else where


def cut(value: _Value, mask: Mask | None = None) -> _Value:
    """Return the first block's part of a value that all blocks share under a mask.

    Raises:
        BlocksDiffer: The blocks' values differ.
    """
    if value is None or value.ndim == 0 or value.shape[3] == 1:
        return value
    first = value[..., :1]
    same = value == first
    if mask is not None:
        same = same | ~mask
    if not same.all():
        raise BlocksDiffer
    return np.ascontiguousarray(first)


def _of_first(value: Lanes) -> Lanes:
    return value[..., :1] if value.ndim else value


def _in_order(column: Flat, columns: int) -> bool:
    """Whether every block has the same number of entries, block after block."""
    each, rest = divmod(len(column), columns)
    if rest or not each:
        return False
    return bool((column.reshape(columns, each) == np.arange(columns)[:, None]).all())


def _first_of(where: LaneAddressList, columns: int) -> tuple[slice | Flat, bool]:
    """Return the first block's entries if all blocks have equal ones.

    And whether they are in order.

    Raises:
        BlocksDiffer: The blocks' entries differ.
    """
    at: slice | Flat = slice(len(where.column) // columns)
    order: slice | Flat = slice(None)
    tiled = _in_order(where.column, columns)
    if not tiled:
        order = np.argsort(where.column, kind="stable")
        if not _in_order(where.column[order], columns):
            raise BlocksDiffer
        at = order[at]
    for values in (where.thread, where.address):
        rows = values[order].reshape(columns, -1)
        if not (rows == rows[0]).all():
            raise BlocksDiffer
    if where.home is not None and not np.array_equal(where.home, where.column):
        raise BlocksDiffer
    return at, tiled
