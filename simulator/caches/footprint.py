"""What blocks that were not run touch: as those that were, moved by how far apart they stand.

Where an access begins in a block is nearly always linear in the block's coordinates; that is tried
on the blocks that ran. What does not fit (indices read from memory) is drawn: as many places, from
where such accesses were seen to go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .. import clusters
from ..geometry import Flat, Geometry
from ..memory.site import Site
from .watch import Touch, TouchWatch

UNIT = 64
"""Bytes that DRAM hands over at once: two sectors."""
PHASES = 32
"""Pieces that the time of a block is cut into."""


@dataclass
class Trail:
    """Where accesses of one kind go in a block.

    Attributes:
        slope: Sectors by which a block's accesses are moved, by its coordinates.
        sectors: Distinct sectors of a block at the origin, and ``phases``: when they are touched.
        phases: See there; ascending.
    """

    slope: NDArray[np.int64]
    sectors: Flat
    phases: Flat


@dataclass
class Scatter:
    """Accesses that follow no line: so many of a block, in a range of sectors.

    Attributes:
        each: Of a block; ``low``, ``high``: the range; ``fresh``: no two blocks touch the same.
    """

    each: float
    low: int
    high: int
    fresh: bool


@dataclass
class Footprint:
    """All of a launch: ``reads`` and ``writes``, each of trails and scatters."""

    reads: list[Trail | Scatter] = field(default_factory=list)
    writes: list[Trail | Scatter] = field(default_factory=list)


def coordinates(blocks: Flat, grid: tuple[int, int, int]) -> NDArray[np.int64]:
    """``(blocks, 3)``, x first."""
    return np.stack(clusters.coordinates(blocks, grid), axis=1)


def footprint(touches: TouchWatch, sites: Sequence[Site]) -> Footprint:
    """What a block touches, as far as the sample tells."""
    found = Footprint()
    for writes, into in ((False, found.reads), (True, found.writes)):
        for site in sites:
            if (site.access != "load") == writes:
                into += _of_site(touches, site.number)
    return found


def _of_site(touches: TouchWatch, site: int) -> list[Trail | Scatter]:
    lined: list[tuple[Geometry, float, Touch]] = []
    loose: list[tuple[Geometry, Touch]] = []
    blocks = 0
    for geometry, some in touches.batches:
        last = max((touch.time for touch in some), default=1)
        blocks += geometry.columns
        for touch in some:
            if touch.site == site:
                if len(touch.starts):
                    lined.append((geometry, (touch.time - 1) / last, touch))
                else:
                    loose.append((geometry, touch))
    found: list[Trail | Scatter] = []
    if lined:
        slope = _slope(lined)
        if slope is None:
            loose += [(geometry, touch) for geometry, _, touch in lined]
        else:
            found.append(_trail(lined, slope))
    if loose and not found:
        found.append(_scatter(loose, blocks))
    return found


def _slope(lined: list[tuple[Geometry, float, Touch]]) -> NDArray[np.int64] | None:
    """Sectors a block's start moves by, for each coordinate; ``None`` if it is not linear."""
    rows, values = [], []
    for geometry, _, touch in lined[:64]:
        at = coordinates(geometry.blocks[touch.columns], geometry.grid)
        rows.append(at - at[0])
        values.append(touch.starts - touch.starts[0])
    matrix, wanted = np.concatenate(rows).astype(float), np.concatenate(values).astype(float)
    solved = np.linalg.lstsq(matrix, wanted, rcond=None)[0]
    slope = np.rint(solved).astype(np.int64)
    off = np.abs(matrix @ slope - wanted)
    return slope if np.mean(off <= 1.0) > 0.9 else None


def _trail(lined: list[tuple[Geometry, float, Touch]], slope: NDArray[np.int64]) -> Trail:
    """The distinct sectors of one block, by the phase they are touched in."""
    first = lined[0][0]
    keys = []
    for geometry, when, touch in lined:
        if geometry is not first:
            break
        at = coordinates(geometry.blocks[touch.columns[:1]], geometry.grid)[0]
        start = touch.starts[0] - int(at @ slope)
        keys.append((touch.sectors + start) | (int(when * PHASES) << 52))
    merged = np.unique(np.concatenate(keys))
    return Trail(slope, merged & ((1 << 52) - 1), merged >> 52)


def _scatter(loose: list[tuple[Geometry, Touch]], blocks: int) -> Scatter:
    units = [
        (touch.sectors[:, None] + touch.starts if len(touch.starts) else touch.sectors).reshape(-1)
        for _, touch in loose
    ]
    everything = np.concatenate(units)
    distinct = np.unique(everything)
    low, high = int(distinct[0]), int(distinct[-1]) + 1
    columns = np.concatenate(
        [
            np.broadcast_to(touch.columns, unit.shape) if not len(touch.starts)
            else np.broadcast_to(touch.columns, (len(touch.sectors), len(touch.starts))).reshape(-1)
            for (_, touch), unit in zip(loose, units, strict=True)
        ]
    )  # fmt: skip
    pairs = len(np.unique(everything * 4096 + columns % 4096))
    fresh = pairs < 1.05 * len(distinct) and pairs > 0.5 * (high - low) * 0.02
    return Scatter(pairs / blocks, low, high, fresh)
