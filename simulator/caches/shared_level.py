"""L2 and DRAM: what all blocks of a launch bring there, in the order in which they run.

L2 of a large GPU is two partitions, each beside half of the multiprocessors. A unit has a home in
one of them, where it meets DRAM. A multiprocessor looks into the partition beside it, which asks
the home if it does not have it, and keeps a copy: what both halves use is there twice. Writes pass
the partition beside, and are dirty at home. Both throw out what was used longest ago. Nsight
Compute's lookups on an H200 say so: half as many again as multiprocessors ask for where nothing is
there, of reads and of writes; and of 134 MB written beside as many that are read, a third of L2
stays.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .block_timeline import BlockTimeline, turns
from .footprint import ATOMIC, LOAD, STORE, UNIT, Footprint, Scatter, StridedFootprint
from .launch_footprint import Touches, array_of, listed, mixed, pick, size

_TOUCHES = 700_000
"""Touches that are followed, of units picked at random if there are more."""
_LISTED = 80_000_000
"""Touches that are listed to pick from; of a larger launch some blocks in its middle."""


@dataclass(frozen=True)
class SharedLevelTraffic:
    """Bytes between L2 and DRAM during a launch.

    Attributes:
        loaded: Read for loads.
        updated: Read for atomics, which L2 applies to the previous content.
        written: Written back.
    """

    loaded: float = 0.0
    updated: float = 0.0
    written: float = 0.0

    @property
    def read(self) -> float:
        """Bytes read in total."""
        return self.loaded + self.updated


@dataclass(frozen=True)
class DeviceMemory:
    """Traffic between L2 and DRAM.

    Attributes:
        cold: With an empty L2.
        warm: After the same launch.
        arrays: Distinct bytes that the launch accesses, by array.
        least_read: Distinct bytes that it reads.
        apart_read: Share of the bytes read in scattered pieces of 64 bytes.
        apart_written: Share of the bytes written in scattered pieces of at most 128 bytes.
    """

    cold: SharedLevelTraffic = SharedLevelTraffic()
    warm: SharedLevelTraffic = SharedLevelTraffic()
    arrays: Mapping[int, float] = field(default_factory=dict)
    least_read: float = 0.0
    apart_read: float = 0.0
    apart_written: float = 0.0

    @property
    def footprint(self) -> float:
        """Distinct bytes that the launch accesses."""
        return sum(self.arrays.values())

    @property
    def row_misses(self) -> tuple[float, float]:
        """Shares of scattered bytes, read and written."""
        return self.apart_read, self.apart_written


def device_memory(
    touched: Footprint,
    grid: tuple[int, int, int],
    sms: int,
    resident: int,
    capacity: float,
    partitions: int,
    known: Touches | None = None,
) -> DeviceMemory:
    """Return the traffic between L2 and DRAM.

    Args:
        touched: Footprint of the launch.
        grid: Grid extents in blocks, x first.
        sms: Multiprocessors.
        resident: Resident blocks of a multiprocessor.
        capacity: Bytes of L2.
        partitions: Partitions of L2, one or two.
        known: All accesses, if all blocks ran.
    """
    total, slots = math.prod(grid), sms * resident
    each = sum(size(one) for one in itertools.chain(*touched.by_kind))
    if not each:
        return DeviceMemory()
    some = np.arange(total)
    if total > 4 * slots and listed(touched, grid, some) > _LISTED:
        many = max(2 * slots, int(_LISTED / each))
        some = some[max(0, (total - many) // 2) :][:many]
    touches = len(some) * each if known is None else len(known.unit)
    rate = max(1, math.ceil(touches / _TOUCHES))
    found = known.some(rate) if known else pick(touched, grid, some, rate)
    level = _Level(max(1, int(capacity / UNIT / rate / partitions)), partitions)
    lookups = _lookups(found, turns(total, sms, resident), partitions)
    whole = len(some) == total
    if not whole:  # what its first half brings in is there for the second
        level.follow(lookups[: len(lookups) // 2])
        lookups = lookups[len(lookups) // 2 :]
    cold = level.follow(lookups)
    warm = level.follow(lookups) if whole else cold
    unit = float(UNIT * rate)
    factor = unit * total / (len(some) if whole else len(some) / 2)
    each = unit * total / len(some)
    arrays, counts = np.unique(array_of(np.unique(found.unit)), return_counts=True)
    there = dict(zip(arrays.tolist(), (each * counts).tolist(), strict=True))
    read = each * len(np.unique(found.unit[found.kind != STORE]))
    first, again = (
        SharedLevelTraffic(*(count * factor for count in counts)) for counts in (cold, warm)
    )
    return DeviceMemory(
        first, again, there, read, _row_miss_share([*touched.loads, *touched.atomics], False),
        _row_miss_share([*touched.stores, *touched.atomics], True),
    )  # fmt: skip


def _row_miss_share(some: Sequence[StridedFootprint | Scatter], trails: bool) -> float:
    """Return the share of scattered accesses; ``trails``: strided ones may count as well."""
    every = sum(size(one) for one in some)
    misses = sum(
        one.each * one.lone
        if isinstance(one, Scatter)
        else size(one) * (trails and one.is_scattered)
        for one in some
    )
    return misses / every if every else 0.0


def _lookups(
    found: Touches, order: BlockTimeline, partitions: int
) -> list[tuple[int, int, int, int, int]]:
    """Return accesses in order: unit, kind, written sectors, near partition, home partition."""
    when = order.begins[found.block] + found.phase * order.takes[found.block]
    beside = np.random.default_rng(4).permutation(int(order.sm.max()) + 1) % partitions
    columns = (
        found.unit, found.kind, found.sectors * (found.kind != LOAD),
        beside[order.sm[found.block]], mixed(found.unit >> 1) % partitions,
    )  # fmt: skip
    at = np.argsort(when, kind="stable")
    return list(zip(*(column[at].tolist() for column in columns), strict=True))


class _Level:
    """L2 as an LRU list of units, each with its number of dirty sectors."""

    def __init__(self, units: int, partitions: int) -> None:
        self._units = units
        self._parts: list[OrderedDict[int, int]] = [OrderedDict() for _ in range(partitions)]

    def follow(self, lookups: Iterable[tuple[int, int, int, int, int]]) -> tuple[int, int, float]:
        """Return the units read from DRAM for loads and atomics, and those written back."""
        missed, back = [0, 0, 0], 0
        for unit, kind, stored, beside, home in lookups:
            if beside != home:
                near = self._parts[beside]
                if unit in near:
                    near.move_to_end(unit)
                    if not stored:
                        continue
                else:
                    near[unit] = 0
                    if len(near) > self._units:
                        back += near.popitem(last=False)[1]
            part = self._parts[home]
            if unit in part:
                part.move_to_end(unit)
                if stored:
                    part[unit] = min(2, part[unit] + stored)
            else:
                missed[kind] += 1
                part[unit] = stored
                if len(part) > self._units:
                    back += part.popitem(last=False)[1]
        # What is only ever written in whole sectors is not read.
        return missed[LOAD], missed[ATOMIC], back / 2
