"""Model of L1: which sectors of loads hit, and which go to L2.

Stores go to L2 and take room in L1: eight blocks that read 16 KiB each three times hit 62 % in an
H200's L1, and 32 % if they write as much elsewhere in between (Nsight Compute).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.geometry import Flat
from ..memory.site import Site
from ..observe.counters.banks import LINE, SECTOR
from .access_recorder import TouchWatch
from .keys import packed
from .reuse_times import reuse_times, window

Vector = NDArray[np.float64]
SPREAD = 0.1
"""How much a block's time differs from another's, as a share of it."""
_PACE = 0.35
"""How much the time differs after which what L1 keeps is used again, as a share of it, where blocks
share L1. Eight that read 32, 40, 48 KiB each three times find 0.50, 0.31, 0.15 of what an H200's L1
would have if it held all (Nsight Compute)."""
_STEP = 1 / 64
_CHANCES = np.array(
    [0.5 * math.erfc((1 - late * _STEP) / _PACE / math.sqrt(2)) for late in range(256)]
)
_NOT_KEPT = frozenset({"cg", "cv", "volatile", "relaxed", "acquire", "mmio"})
"""Loads that do not look for their data in L1 (PTX ISA, "Cache Operators")."""


def l1_hits(site: Site) -> bool:
    """Whether a load may hit L1."""
    words = site.instruction.modifiers
    return site.access == "load" and _NOT_KEPT.isdisjoint(words)


def l1_misses(
    touches: TouchWatch,
    sites: Sequence[Site],
    groups: Collection[Flat],
    capacity: float,
    slots: int,
    meet: bool,
) -> dict[int, tuple[float, float]]:
    """Return the sectors that loads fetch from L2, and that they access, by access.

    Simultaneous accesses of a block's warps count once.

    Args:
        touches: Recorded accesses.
        sites: The program's accesses.
        groups: Blocks that share a multiprocessor, one array for each.
        capacity: Bytes of L1.
        slots: Concurrently running blocks; blocks of later waves are less in step.
        meet: Whether the warps of a block synchronise.
    """
    cached = np.array([l1_hits(site) for site in sites], bool)
    loads = np.array([site.access == "load" for site in sites], bool)
    stores = np.array([site.access == "store" for site in sites], bool)
    missed, touched = np.zeros((2, len(sites)))
    unit = {int(block): number for number, group in enumerate(groups) for block in group}
    for geometry, some in touches.batches:
        owner = np.array([unit.get(int(block), -1) for block in geometry.blocks], np.int64)
        keys, times, numbers, written = [], [], [], []
        span = max((touch.time for touch in some), default=1)
        off = _out_of_step(geometry.blocks, slots) * span
        for touch in some:
            if not (loads[touch.site] or stores[touch.site]):
                continue
            if len(touch.starts):
                here = owner[touch.columns]
                inside = here >= 0
                sectors = touch.sectors[:, None] + touch.starts[inside]
                units = np.broadcast_to(here[inside], sectors.shape)
                when = np.broadcast_to(touch.time + off[touch.columns[inside]], sectors.shape)
            else:
                units = owner[touch.columns]
                inside = units >= 0
                sectors, units = touch.sectors[inside], units[inside]
                when = touch.time + off[touch.columns[inside]]
            if stores[touch.site]:
                written.append((packed(units, sectors).reshape(-1), when.reshape(-1)))
                continue
            if not cached[touch.site]:
                missed[touch.site] += sectors.size
                touched[touch.site] += sectors.size
                continue
            keys.append(packed(units, sectors).reshape(-1))
            times.append(when.reshape(-1))
            numbers.append(np.full(sectors.size, touch.site, np.int32))
        if not keys:
            continue
        key, time, number = (np.concatenate(part) for part in (keys, times, numbers))
        there = len(np.unique(owner[owner >= 0]))
        used = (np.concatenate([own, *more]) for own, more in
                ((key, [k for k, _ in written]), (time, [t for _, t in written])))  # fmt: skip
        line_ages = reuse_times(next(used) >> int(np.log2(LINE // SECTOR)), next(used))
        distinct = float(np.count_nonzero(np.isinf(line_ages)))
        keep = window(line_ages, float(span), capacity / LINE, distinct, there)
        alone = there == len(owner)
        gone = _gone(reuse_times(key, time), keep, alone, meet)
        missed += np.bincount(number, gone, minlength=len(sites))
        touched += np.bincount(number, minlength=len(sites))
    return dict(enumerate(zip(missed.tolist(), touched.tolist(), strict=True)))


def _gone(age: Vector, keep: float, alone: bool, meet: bool) -> Vector:
    """Return the probability of eviction by age, for a mean lifetime of ``keep``.

    Blocks run at different speeds, so that eviction is not sharp. Warps that never synchronise are
    served by age, and as many as fit in L1 find their data.
    """
    with np.errstate(invalid="ignore"):
        late = np.where(np.isinf(age), np.inf, age / keep)
    if alone:
        return (late > 1).astype(float)
    after = _CHANCES[np.minimum(late / _STEP, len(_CHANCES) - 1).astype(np.int64)]
    with np.errstate(divide="ignore"):
        return after if meet else np.minimum(after, 1 - 1 / np.maximum(late, 1))


def _out_of_step(blocks: Flat, slots: int) -> Flat:
    """Return how far blocks have drifted apart, in units of a block's execution time."""
    waves = blocks // max(1, slots)
    drawn = np.random.default_rng(3).standard_normal(len(blocks))
    found: Flat = SPREAD * np.sqrt(waves) * drawn
    return found
