"""What one block of a launch touches in its life, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..caches.footprint import ARRAY
from ..caches.watch import TouchWatch


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
    found: dict[int, list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
    geometry, some = touches.batches[0]
    middle = geometry.columns // 2
    for touch in some:
        if len(touch.starts):
            at = int(np.searchsorted(touch.columns, middle))
            if at < len(touch.columns) and touch.columns[at] == middle:
                found.setdefault(touch.site, []).append(touch.sectors + touch.starts[at])
        else:
            here = touch.sectors[touch.columns == middle]
            if len(here):
                found.setdefault(touch.site, []).append(here)
    arrays, places = {}, {}
    together: dict[int, list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
    for site, parts in found.items():
        distinct = np.unique(np.concatenate(parts))
        arrays[site] = int(distinct[0]) >> ARRAY
        places[site] = len(distinct)
        together.setdefault(arrays[site], []).append(distinct)
    sectors = {array: len(np.unique(np.concatenate(p))) for array, p in together.items()}
    return OneBlock(arrays, sectors, places)
