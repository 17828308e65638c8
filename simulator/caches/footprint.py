"""Footprint of a launch, extrapolated from sampled blocks by their distance.

The start of an access in a block is nearly always linear in the block's coordinates; this is
verified on the sample. Other accesses (such as indices read from memory) are drawn at random in the
observed range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..core import clusters
from ..core.geometry import Flat, Geometry, Mask
from ..isa.memory.address_windows import ARRAY_BITS
from ..memory.site import Site
from ..memory.storage.word_ops import unique
from ..observe.counters.banks import SECTOR
from .access_recorder import RecordedAccess, TouchWatch

ARRAY = ARRAY_BITS - 5
"""Bits of a sector's number inside an array."""
INSIDE = (1 << ARRAY_BITS - 6) - 1
"""Of a unit's number, what says where in the array it is."""
UNIT = 64
"""Bytes that DRAM hands over at once: two sectors."""
_PIECE = 128
"""Bytes of a piece up to which DRAM writes them slower, where nothing is written beside it."""
PHASES = 32
"""Pieces that the time of a block is cut into."""
KINDS = ("load", "store", "atomic")
LOAD, STORE, ATOMIC = range(3)


@dataclass
class StridedFootprint:
    """Accesses of one kind whose place is linear in the block's coordinates.

    Attributes:
        slope: Sectors by which a block's accesses move, by coordinate.
        sectors: Distinct sectors of a block at the origin.
        phases: Times of these accesses, ascending.
    """

    slope: NDArray[np.int64]
    sectors: Flat
    phases: Flat

    @property
    def is_scattered(self) -> bool:
        """Whether a block accesses short pieces that its neighbour does not continue."""
        runs = 1 + np.count_nonzero(np.diff(np.unique(self.sectors)) > 1)
        run = len(self.sectors) / runs
        return bool(run * SECTOR <= _PIECE and abs(int(self.slope[0])) > run)


@dataclass
class Scatter:
    """Random accesses: so many units of a block, in a range.

    Attributes:
        each: Units of a block.
        low, high: The range.
        fresh: Whether no two blocks access the same unit.
        lone: Share of units without an accessed neighbour in the block.
    """

    each: float
    low: int
    high: int
    fresh: bool
    lone: float = 1.0


@dataclass
class Footprint:
    """Footprint of a launch: ``loads``, ``stores`` and ``atomics``, each strided or scattered."""

    loads: list[StridedFootprint | Scatter] = field(default_factory=list)
    stores: list[StridedFootprint | Scatter] = field(default_factory=list)
    atomics: list[StridedFootprint | Scatter] = field(default_factory=list)

    @property
    def by_kind(self) -> tuple[list[StridedFootprint | Scatter], ...]:
        """Return the accesses at the indices ``LOAD``, ``STORE`` and ``ATOMIC``."""
        return self.loads, self.stores, self.atomics


def coordinates(blocks: Flat, grid: tuple[int, int, int]) -> NDArray[np.int64]:
    """Return the block coordinates, ``(blocks, 3)``, x first."""
    return np.stack(clusters.coordinates(blocks, grid), axis=1)


def footprint(
    touches: TouchWatch, sites: Sequence[Site], blocks: int, missed: Mapping[int, float]
) -> Footprint:
    """Return the footprint of a launch, estimated from the sample.

    Args:
        touches: Recorded accesses of the sample.
        sites: The program's accesses.
        blocks: Blocks of the grid.
        missed: L1 misses of a block in sectors, by access.
    """
    found = Footprint()
    ran = sum(geometry.columns for geometry, _ in touches.batches)
    for access, into in zip(KINDS, found.by_kind, strict=True):
        loose: dict[int, list[tuple[int, RecordedAccess]]] = {}
        for site in sites:
            if site.access == access:
                into += _of_site(touches, site.number, loose, missed.get(site.number))
        # What goes beside a trail, such as a halo, is on another block's.
        lined = {int(t.sectors[0]) >> ARRAY for t in into if isinstance(t, StridedFootprint)}
        into += [_scatter(some, ran, blocks) for at, some in loose.items() if at not in lined]
    return found


def _of_site(
    touches: TouchWatch,
    site: int,
    loose: dict[int, list[tuple[int, RecordedAccess]]],
    missed: float | None,
) -> list[StridedFootprint | Scatter]:
    """Return the strided footprint of an access; irregular ones go to ``loose`` by array."""
    lined: list[tuple[Geometry, float, RecordedAccess]] = []
    single: list[tuple[int, RecordedAccess]] = []
    for number, (geometry, some) in enumerate(touches.batches):
        last = max((touch.time for touch in some), default=1)
        for touch in some:
            if touch.site == site:
                if len(touch.starts):
                    lined.append((geometry, (touch.time - 1) / last, touch))
                else:
                    single.append((number, touch))
    slope = _slope(lined) if lined else None
    if slope is not None:
        return [_beyond(_trail(lined, slope), missed)]
    numbers = {id(geometry): number for number, (geometry, _) in enumerate(touches.batches)}
    single += [(numbers[id(geometry)], touch) for geometry, _, touch in lined]
    for number, touch in single:
        if len(touch.sectors):
            at = int(touch.sectors[0] + (touch.starts[0] if len(touch.starts) else 0))
            loose.setdefault(at >> ARRAY, []).append((number, touch))
    return []


def _slope(lined: list[tuple[Geometry, float, RecordedAccess]]) -> NDArray[np.int64] | None:
    """Return the sectors per block coordinate; ``None`` if starts are not linear."""
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


def _trail(
    lined: list[tuple[Geometry, float, RecordedAccess]], slope: NDArray[np.int64]
) -> StridedFootprint:
    """Return the distinct sectors of one block, with the phase of each access."""
    first = lined[0][0]
    keys = []
    for geometry, when, touch in lined:
        if geometry is not first:
            break
        at = coordinates(geometry.blocks[touch.columns[:1]], geometry.grid)[0]
        start = touch.starts[0] - int(at @ slope)
        keys.append((touch.sectors + start) | (int(when * PHASES) << 52))
    merged = unique(np.concatenate(keys))
    return StridedFootprint(slope, merged & ((1 << 52) - 1), merged >> 52)


def _beyond(trail: StridedFootprint, missed: float | None) -> StridedFootprint:
    """Return the part of a footprint that misses L1."""
    first = np.unique(trail.sectors, return_index=True)[1]
    some = beyond(trail.sectors, first, missed)
    return replace(trail, sectors=trail.sectors[some], phases=trail.phases[some])


def beyond(sectors: Flat, first: Flat, missed: float | None) -> Mask:
    """Return which accesses miss L1: the ``first`` of each sector, and some repetitions.

    If the number of misses is unknown, all of them miss.
    """
    again = len(sectors) - len(first)
    share = 1.0 if missed is None or not again else max(0.0, missed - len(first)) / again
    some: Mask = (sectors >> 2) * 2654435761 % 1024 < share * 1024
    some[first] = True
    return some


def _scatter(loose: list[tuple[int, RecordedAccess]], ran: int, blocks: int) -> Scatter:
    keys = []
    for batch, touch in loose:
        units, columns = touch.by_block
        block = (np.int64(batch) << 10) + columns % 1024
        keys.append(((units >> 1) & INSIDE) + (block << 36))
        base = int(units[0] >> 1) & ~INSIDE
    pairs = unique(np.concatenate(keys))
    units = unique(pairs & INSIDE)
    low, high = int(units[0]) + base, int(units[-1]) + base + 1
    each = len(pairs) / ran
    is_sparse = len(pairs) < 1.1 * len(units) and each * blocks < 2 * (high - low)
    beside = np.diff(pairs) == 1
    paired = np.append(beside, False) | np.append(False, beside)
    return Scatter(each, low, high, is_sparse, 1 - float(paired.mean()))
