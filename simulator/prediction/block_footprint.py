"""What one block of a launch touches in its life, and how often; and what several do together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..caches.access_recorder import RecordedAccess, TouchWatch
from ..caches.footprint import ARRAY
from ..core.geometry import Flat
from ..memory.storage.word_ops import unique

_TOGETHER = 16
"""Blocks that are looked at together, at most."""


@dataclass(frozen=True)
class OneBlock:
    """A block of the sample.

    Attributes:
        arrays: The array that each access goes to first, by the access's number.
        sectors: Distinct sectors of each array that the block touches.
        places: Distinct sectors that each access touches.
    """

    arrays: dict[int, int]
    sectors: dict[int, int]
    places: dict[int, int]


def one_block(touches: TouchWatch) -> OneBlock:
    """The block in the middle of what was run first."""
    found: dict[int, list[Flat]] = {}
    geometry, some = touches.batches[0]
    middle = geometry.columns // 2
    for touch in some:
        here = _sectors(touch, middle)
        if len(here):
            found.setdefault(touch.site, []).append(here)
    arrays, places = {}, {}
    by_array: dict[int, list[Flat]] = {}
    for site, parts in found.items():
        sectors_of_site = unique(np.concatenate(parts))
        arrays[site] = int(sectors_of_site[0]) >> ARRAY
        places[site] = len(sectors_of_site)
        by_array.setdefault(arrays[site], []).append(sectors_of_site)
    sectors = {array: len(unique(np.concatenate(parts))) for array, parts in by_array.items()}
    return OneBlock(arrays, sectors, places)


def some_of(blocks: Flat, count: int) -> Flat:
    """So many of the blocks that ran, far from each other; all, if they are fewer."""
    places = np.linspace(0, len(blocks) - 1, min(len(blocks), count, _TOGETHER))
    found: Flat = blocks[places.astype(np.int64)]
    return found


def together(touches: TouchWatch, site: int, blocks: Flat) -> tuple[int, float]:
    """Distinct sectors that an access touches in some blocks together, and in one on average."""
    parts, each = [np.zeros(0, np.int64)], 0
    for geometry, some in touches.batches:
        for column in np.flatnonzero(np.isin(geometry.blocks, blocks)).tolist():
            here = [_sectors(touch, column) for touch in some if touch.site == site]
            parts.append(unique(np.concatenate([parts[0], *here])))
            each += len(parts[-1])
    return len(unique(np.concatenate(parts))), each / len(blocks)


def _sectors(touch: RecordedAccess, column: int) -> Flat:
    """Those that the block at a place in the batch touches."""
    here: Flat = np.flatnonzero(touch.columns == column)
    if not len(touch.starts):
        return touch.sectors.take(here)
    return (touch.sectors[:, None] + touch.starts.take(here)).reshape(-1)
