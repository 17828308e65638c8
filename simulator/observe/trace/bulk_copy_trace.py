"""Sources and destinations of bulk copies, as arrays of a trace."""

from collections.abc import Sequence

import numpy as np

from ...core.geometry import Flat, Lanes
from ...memory.bulk.bulk_copy import BulkTransfer
from ...memory.site import Site
from ...memory.storage.layout import array_address, array_number
from .access_counts import NOWHERE, SHARED

_UNIT = 16
"""Bytes of the largest piece: addresses are multiples of it."""


def pieces(
    moved: Sequence[tuple[Site, BulkTransfer]], columns: int
) -> tuple[Lanes, Lanes, tuple[Lanes, ...]]:
    """Return an instruction's transfers as arrays: pieces along x, copying threads along y.

    Missing pieces are -1. Transfers into the shared memory of other blocks are omitted.

    Returns:
        Places read from (one for each thread), offsets in these; and the offsets written, their
        places, the threads' numbers, and the bytes of a piece.
    """
    own = [(site, piece) for site, piece in moved if piece.block == piece.column]
    lists, size = _merged([piece for _, piece in own])
    ranks: dict[int, int] = {}
    rows = []
    for _, piece in own:
        rows.append(ranks.get(piece.column, 0))
        ranks[piece.column] = rows[-1] + 1
    threads = max(ranks.values(), default=1)
    longest = max((len(source) for source, _ in lists), default=1)
    cells = np.full((2, 1, threads, longest, columns), -1, np.int64)
    about = np.full((3, 1, threads, 1, columns), NOWHERE, np.int64)
    for row, (site, piece), pair in zip(rows, own, lists, strict=True):
        assert site.bulk
        for side, (space, places) in enumerate(
            zip((site.bulk.space, site.space), pair, strict=True)
        ):
            if not len(places):
                continue
            place = SHARED if space == "shared" else int(array_number(places[0]))
            start = 0 if space == "shared" else int(array_address(place))
            cells[side, 0, row, : len(places), piece.column] = places - start
            about[side, 0, row, 0, piece.column] = place
        about[2, 0, row, 0, piece.column] = piece.thread
    return about[0], cells[0], (cells[1], about[1], about[2], np.full((1, 1, 1, 1), size))


def _merged(moved: Sequence[BulkTransfer]) -> tuple[list[tuple[Flat, Flat]], int]:
    """Return the bytes read and written in pieces of up to 16, all of them equally long."""
    lists = [(piece.source, piece.into) for piece in moved]
    size = min((piece.size for piece in moved), default=_UNIT)
    while size < _UNIT and all(_pairs(side, size) for pair in lists for side in pair):
        lists = [(source[::2], into[::2]) for source, into in lists]
        size *= 2
    return lists, size


def _pairs(places: Flat, size: int) -> bool:
    """Whether every second piece follows the one before it."""
    return len(places) % 2 == 0 and bool((places[1::2] - places[::2] == size).all())
