"""Footprint of one block, and of several blocks together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..caches.access_recorder import RecordedAccess, TouchWatch
from ..caches.footprint import ARRAY
from ..core.geometry import Flat
from ..memory.storage.word_ops import unique
from ..observe.counters.banks import SECTOR

_TOGETHER = 16
"""Blocks that are looked at together, at most."""


@dataclass(frozen=True)
class OneBlock:
    """A sampled block.

    Attributes:
        arrays: First array of each access, by the access's number.
        sectors: Distinct sectors of each array that the block accesses.
        places: Distinct sectors of each access.
    """

    arrays: dict[int, int]
    sectors: dict[int, int]
    places: dict[int, int]


def one_block(touches: TouchWatch) -> OneBlock:
    """Return the middle block of the first sample."""
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
    """Return ``count`` of the sampled blocks, spread out; all if they are fewer."""
    places = np.linspace(0, len(blocks) - 1, min(len(blocks), count, _TOGETHER))
    found: Flat = blocks[places.astype(np.int64)]
    return found


def together(touches: TouchWatch, site: int, blocks: Flat) -> tuple[int, float]:
    """Return the distinct sectors of an access in some blocks together, and per block."""
    parts, each = [np.zeros(0, np.int64)], 0
    for geometry, some in touches.batches:
        for column in np.flatnonzero(np.isin(geometry.blocks, blocks)).tolist():
            here = [_sectors(touch, column) for touch in some if touch.site == site]
            parts.append(unique(np.concatenate([parts[0], *here])))
            each += len(parts[-1])
    return len(unique(np.concatenate(parts))), each / len(blocks)


def elements(touches: TouchWatch, widths: Mapping[int, int]) -> int:
    """Return the number of elements of the array with most of them; ``widths``: bytes by access."""
    parts: dict[int, list[Flat]] = {}
    wide: dict[int, int] = {}
    for _, some in touches.batches:
        for touch in some:
            sectors, _ = touch.by_block
            if not len(sectors):
                continue
            array = int(sectors[0]) >> ARRAY
            parts.setdefault(array, []).append(unique(sectors))
            wide[array] = max(wide.get(array, 1), widths[touch.site])
    return max(
        (len(unique(np.concatenate(some))) * SECTOR // wide[one] for one, some in parts.items()),
        default=0,
    )


def _sectors(touch: RecordedAccess, column: int) -> Flat:
    """Return the sectors of the block at a column of the batch."""
    here: Flat = np.flatnonzero(touch.columns == column)
    if not len(touch.starts):
        return touch.sectors.take(here)
    return (touch.sectors[:, None] + touch.starts.take(here)).reshape(-1)
