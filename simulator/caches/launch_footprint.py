"""Accesses of all blocks of a launch, sampled by unit if there are many."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.geometry import Flat, Mask
from ..memory.site import Site
from .access_recorder import TouchWatch
from .footprint import (
    INSIDE,
    KINDS,
    PHASES,
    Footprint,
    Scatter,
    StridedFootprint,
    beyond,
    coordinates,
)

_AT_ONCE = 4_000_000
"""Touches that are listed at a time."""
_MIXED = -7046029254386353131
"""An odd number whose multiples have well-mixed upper bits."""

_FRESH = np.int64(1) << 60
"""Where units lie that no two blocks touch; those of an array together."""


@dataclass(frozen=True)
class Touches:
    """Accesses, one entry each.

    Attributes:
        unit: The accessed unit.
        sectors: One or both of its sectors.
        block: The block.
        phase: Time, as a share of the block's execution.
        kind: ``LOAD``, ``STORE`` or ``ATOMIC``.
    """

    unit: Flat
    sectors: Flat
    block: Flat
    phase: NDArray[np.float64]
    kind: Flat

    def some(self, rate: int) -> Touches:
        """Return the accesses of one unit in ``rate``."""
        here = mixed(self.unit) % rate == 0
        columns = (self.unit, self.sectors, self.block, self.phase, self.kind)
        return Touches(*(column[here] for column in columns))


def mixed(units: Flat) -> Flat:
    """Return a hash of unit numbers."""
    found: Flat = (units * _MIXED) >> 40
    return found


def array_of(units: Flat) -> Flat:
    """Return the array of each unit."""
    found: Flat = (units & ~_FRESH) // (INSIDE + 1)
    return found


def size(one: StridedFootprint | Scatter) -> float:
    """Return the approximate number of units of a block."""
    return len(one.sectors) / 2 if isinstance(one, StridedFootprint) else one.each


def listed(touched: Footprint, grid: tuple[int, int, int], blocks: Flat) -> float:
    """Return the number of units to enumerate; blocks at one place count once."""
    found = 0.0
    for one in itertools.chain(*touched.by_kind):
        places = len(blocks)
        if isinstance(one, StridedFootprint):
            places = len(np.unique(coordinates(blocks, grid) @ one.slope))
        found += places * size(one)
    return found


def pick(touched: Footprint, grid: tuple[int, int, int], blocks: Flat, rate: int) -> Touches:
    """Return the accesses of one unit in ``rate``, by some blocks of a grid."""
    rng = np.random.default_rng(2)
    parts: list[tuple[Flat, Flat, Flat, NDArray[np.float64], Flat]] = []
    for kind, some in enumerate(touched.by_kind):
        for one in some:
            found = (
                _drawn(one, blocks, rate, rng)
                if isinstance(one, Scatter)
                else _moved(one, grid, blocks, rate)
            )
            parts += [(*part, np.full(len(part[0]), kind)) for part in found]
    return Touches(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def of_all(
    watch: TouchWatch, sites: Sequence[Site], blocks: int, missed: Mapping[int, float]
) -> Touches:
    """Return the accesses of a launch whose blocks all ran; ``missed``: as for ``footprint``."""
    touched: dict[int, list[NDArray[np.int64]]] = {}
    for geometry, some in watch.batches:
        last = max((touch.time for touch in some), default=1)
        for touch in some:
            sectors, columns = touch.by_block
            phase = np.full(len(sectors), (touch.time - 1) * PHASES // last)
            rows = np.stack([geometry.blocks[columns], phase, sectors])
            touched.setdefault(touch.site, []).append(rows)
    parts = [np.zeros((5, 0), np.int64)]
    for number, found in touched.items():
        block, phase, sector = _distinct(np.concatenate(found, axis=1))
        order = np.lexsort((phase, sector, block))
        first = order[_new(block[order], sector[order])]
        away = missed[number] * blocks if number in missed else None
        some_pass = beyond(sector, first, away)
        block, phase, sector = block[some_pass], phase[some_pass], sector[some_pass]
        at = np.flatnonzero(_new(block, phase, sector >> 1))
        both = np.diff(np.append(at, len(sector)))
        kind = np.full(len(at), KINDS.index(sites[number].access))
        parts.append(np.stack([sector[at] >> 1, both, block[at], phase[at], kind]))
    unit, both, block, phase, kind = np.concatenate(parts, axis=1)
    return Touches(unit, both, block, phase / PHASES, kind)


def _distinct(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct columns, sorted by the first row, then the others."""
    ordered = rows[:, np.lexsort(rows[::-1])]
    return ordered[:, _new(*ordered)]


def _new(*rows: Flat) -> Mask:
    """Return which columns differ from their predecessors."""
    found = np.ones(len(rows[0]), bool)
    found[1:] = np.any([row[1:] != row[:-1] for row in rows], axis=0)
    return found


def _drawn(
    one: Scatter, blocks: Flat, rate: int, rng: np.random.Generator
) -> Iterator[tuple[Flat, Flat, Flat, NDArray[np.float64]]]:
    count = int(rng.poisson(one.each / rate * len(blocks)))
    if one.fresh:
        unit = _FRESH + (one.low & ~INSIDE) + np.arange(count)
    else:
        units = max(1, (one.high - one.low) // rate)
        unit = one.low + rng.integers(0, units, count) * rate
    block = blocks[rng.integers(0, len(blocks), count)]
    yield unit, np.ones(count, np.int64), block, rng.random(count)


def _moved(
    one: StridedFootprint, grid: tuple[int, int, int], blocks: Flat, rate: int
) -> Iterator[tuple[Flat, Flat, Flat, NDArray[np.float64]]]:
    """Yield the sampled accesses of blocks; each place is enumerated once."""
    places, which, counts = np.unique(
        coordinates(blocks, grid) @ one.slope, return_inverse=True, return_counts=True
    )
    order = blocks[np.argsort(which.reshape(-1), kind="stable")]
    begins = np.concatenate([[0], np.cumsum(counts)])
    step = max(1, _AT_ONCE // max(1, len(one.sectors)))
    for at in range(0, len(places), step):
        units = (places[at : at + step, None] + one.sectors) >> 1
        column, row = np.nonzero(mixed(units) % rate == 0)
        unit, phase = units[column, row], one.phases[row]
        second = np.zeros(len(unit), bool)  # of a unit whose lower sector is beside it
        second[1:] = (
            (unit[1:] == unit[:-1]) & (phase[1:] == phase[:-1]) & (column[1:] == column[:-1])
        )
        sectors = 1 + np.append(second[1:], False)[~second]
        unit, place, phase = unit[~second], at + column[~second], phase[~second]
        times = counts[place]
        touch = np.repeat(np.arange(len(unit)), times)
        number = np.arange(len(touch)) - np.repeat(np.cumsum(times) - times, times)
        block = order[begins[place][touch] + number]
        yield unit[touch], sectors[touch], block, (phase / PHASES)[touch]
