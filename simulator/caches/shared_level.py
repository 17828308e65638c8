"""L2 and DRAM: what all blocks of a launch bring there, in the order in which they run.

Blocks begin in order, each on whichever multiprocessor has room first. They do not stay in step:
each takes a little longer or shorter, so after some waves they stand at all stages at once.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..geometry import Flat
from .footprint import PHASES, UNIT, Footprint, Scatter, Trail, coordinates
from .reuse import ages, window

SPREAD = 0.1
"""How much a block's time differs from another's, as a share of it."""
_TOUCHES = 1_500_000
"""Touches that are looked at, of lines picked at random if there are more."""
_LISTED = 80_000_000
"""Touches that are listed to pick from; of a larger launch some blocks in its middle."""


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes between L2 and DRAM.

    Attributes:
        cold_read: With nothing in L2; ``warm_read``: after the same launch.
        cold_write, warm_write: Written back while the launch runs.
        footprint: Distinct bytes that the launch touches; ``least_read``: that it reads.
    """

    cold_read: float
    warm_read: float
    cold_write: float
    warm_write: float
    footprint: float
    least_read: float


def begins(blocks: int, slots: int) -> NDArray[np.float64]:
    """When each block begins, in units of a block's time."""
    if blocks <= slots or blocks > 300_000:
        return (np.arange(blocks) // slots).astype(np.float64)
    takes = 1 + SPREAD * np.random.default_rng(1).standard_normal(blocks)
    ends = takes[:slots].tolist()
    heapq.heapify(ends)
    found = np.zeros(blocks)
    for block in range(slots, blocks):
        begin = ends[0]
        found[block] = begin
        heapq.heapreplace(ends, begin + takes[block])
    return found


def device_memory(
    touched: Footprint, grid: tuple[int, int, int], slots: int, capacity: float
) -> DeviceMemory:
    """What L2 has to get from DRAM and to write back.

    Args:
        touched: What each block touches.
        grid: Blocks, x first; ``slots``: how many run at a time.
        slots: See there.
        capacity: Bytes of L2 that hold what is used again.
    """
    total = math.prod(grid)
    each = sum(_size(one) for one in (*touched.reads, *touched.writes))
    if not each:
        return DeviceMemory(0, 0, 0, 0, 0, 0)
    started = begins(total, slots)
    some = np.arange(total)
    counted = np.ones(total, bool)
    if total * each > _LISTED and total > 4 * slots:
        many = max(2 * slots, int(_LISTED / each))
        middle = max(0, (total - many) // 2)
        some = np.arange(middle, min(total, middle + many))
        counted = some >= middle + len(some) // 2
    part = 1.0 if len(some) == total else float(np.count_nonzero(counted)) / total
    rate = max(1, math.ceil(len(some) * each / _TOUCHES))
    keys, times, stores, inside = [], [], [], []
    rng = np.random.default_rng(2)
    for writes, trails in ((False, touched.reads), (True, touched.writes)):
        for trail in trails:
            for key, time, block in _list(trail, some, grid, started, rate, rng):
                keys.append(key)
                times.append(time)
                stores.append(np.full(len(key), writes))
                inside.append(counted[block])
    key, time = np.concatenate(keys), np.concatenate(times)
    store, count = np.concatenate(stores), np.concatenate(inside)
    lines, factor = capacity / UNIT / rate, UNIT * rate / part
    span = float(time.max() - time.min()) + 1 / PHASES
    cold = ages(key, time)
    distinct = float(np.count_nonzero(np.isinf(cold)))
    keep = window(cold, span, lines, distinct)
    missed = (cold > keep) | np.isinf(cold)
    whole = part == 1.0
    again = ages(key, time, span) if whole else cold
    missed_again = again > (window(again, span, lines, distinct) if whole else keep)
    # A line that is only ever written in whole sectors is not read first.
    read = float(np.count_nonzero(missed & ~store & count)) * factor
    read = max(read, float(np.count_nonzero(np.isinf(cold) & ~store)) * UNIT * rate)
    read_again = float(np.count_nonzero(missed_again & ~store & count)) * factor
    dirty = _stays(key, time, missed, store & count) * factor
    # What L2 holds at the end it holds in proportion to what came in.
    left = min(dirty, capacity * dirty / (dirty + read)) if dirty else 0.0
    written = max(0.0, dirty - left)
    return DeviceMemory(
        read,
        read_again,
        written,
        written,
        distinct * UNIT * rate,
        float(np.count_nonzero(np.isinf(cold) & ~store)) * UNIT * rate,
    )


def _stays(key: Flat, time: Flat, missed: Flat, stores: Flat) -> int:
    """How many times a line was written to while it was in the cache, from one miss to the next."""
    order = np.lexsort((time, key))
    stay = np.cumsum(missed[order])
    return len(np.unique(stay[stores[order]]))


def _size(one: Trail | Scatter) -> float:
    return len(one.sectors) / 2 if isinstance(one, Trail) else one.each


def _list(
    one: Trail | Scatter,
    blocks: Flat,
    grid: tuple[int, int, int],
    started: NDArray[np.float64],
    rate: int,
    rng: np.random.Generator,
) -> list[tuple[Flat, NDArray[np.float64], Flat]]:
    """Picked touches: which unit, when, and by which of the blocks (its place among these)."""
    if isinstance(one, Scatter):
        count = rng.poisson(one.each / rate * len(blocks))
        which = rng.integers(0, len(blocks), count)
        if one.fresh:
            key = (np.int64(1) << 60) + np.arange(count)
        else:
            units = max(1, (one.high - one.low) // rate)
            key = one.low + rng.integers(0, units, count) * rate
        return [(key, started[blocks[which]] + rng.random(count), which)]
    moved = coordinates(blocks, grid) @ one.slope
    found = []
    step = max(1, 4_000_000 // max(1, len(one.sectors)))
    for at in range(0, len(blocks), step):
        key = (one.sectors[:, None] + moved[at : at + step]) >> 1
        if rate > 1:
            picked = ((key * -7046029254386353131) >> 40) % rate == 0
        else:
            picked = np.ones(key.shape, bool)
        row, column = np.nonzero(picked)
        when = started[blocks[at + column]] + one.phases[row] / PHASES
        found.append((key[row, column], when, at + column))
    return found
