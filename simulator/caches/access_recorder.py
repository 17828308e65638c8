"""Recorder of accesses: sectors of each block for each access, and the cost of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.geometry import Addresses, Flat, Geometry, Lanes, Mask, Rows
from ..events import Observer
from ..memory.event import AccessEvent, CompactAccessEvent, LaneAddressList
from ..memory.site import Site
from ..memory.storage.word_ops import unique
from ..observe.counters.banks import LINE, SECTOR, first_of_run, inactive_address, mark_inactive
from ..observe.counters.traffic_counter import TrafficCounter
from .keys import SECTOR_BITS, packed, unpacked

SETS = 4
"""Of L1: the tags of lines in different ones are looked up at once (Z. Jia and others: "Dissecting
the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, table 3.1)."""
_LINES, _TAGS = 5, 6
"""Places among the figures of ``Traffic`` that global memory has no use for here."""
_COMPARED = 64
"""Executions of a site whose addresses are compared with those before."""
_MIN_STRIDE_SHARE = 0.85
"""Share of a warp's lanes that stand as far apart as is said of all: rows of a tile begin anew."""


class RequestCounter(TrafficCounter):
    """Costs of requests in L1, for instructions as in the machine code.

    ``widths``: bytes of a lane by site; 0 for a part of another access. For global memory
    ``bank_conflicts`` are cycles of the tag stage, and ``wavefronts`` are 128-byte lines.

    Attributes:
        strides: Bytes between neighbouring lanes, by site; ``None`` if they differ.
        executed: Executions of each site, up to a limit.
        again: Executions at the addresses of the previous one.
        starts: Bitwise or of the addresses at which rows of lanes begin, by site.
    """

    unit = LINE
    sparse = False

    def __init__(self, sites: int, known: dict[object, Flat], widths: Mapping[int, int]) -> None:
        super().__init__(sites, known)
        self._widths = widths
        self._wide: dict[int, Site] = {}
        self.strides: dict[int, int | None] = {}
        self.executed: Counter[int] = Counter()
        self.again: Counter[int] = Counter()
        self.starts: Counter[int] = Counter()
        self._before: dict[int, Addresses] = {}

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        super().start(geometry)
        self._before.clear()

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site = event.site
        if site.counted and not isinstance(event.address, LaneAddressList):
            self._note(site, event)
        width = self._widths.get(site.number, site.nbytes)
        if width == 0:
            return
        if width != site.nbytes:
            if site.number not in self._wide:
                self._wide[site.number] = replace(site, count=max(1, width // site.size))
            event = event._replace(site=self._wide[site.number])
        super().access(event)

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """See ``Observer``."""
        self._one_by_one(events)

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``."""
        self.access(event.full)

    def _note(self, accessed: Site, event: AccessEvent) -> None:
        """Record the stride of lanes at the first execution, alignment, and repeated addresses."""
        assert not isinstance(event.address, LaneAddressList)
        site = accessed.number
        if site not in self.strides:
            self.strides[site] = _stride(self._shape, event.address, event.mask)
        if self.executed[site] < _COMPARED:
            self.executed[site] += 1
            self.starts[site] |= _starts(event.address + np.int64(accessed.offset), event.mask)
            before = self._before.get(site)
            self._before[site] = event.address
            self.again[site] += event.repeated or (
                before is not None and np.array_equal(before, event.address)
            )

    def _judge_rows(self, site: Site, space: str, in_order: Rows) -> Flat:
        figures = super()._judge_rows(site, space, in_order)
        if space != "shared":
            figures[_TAGS], figures[_LINES] = self._lines(in_order)
        return figures

    def _lines(self, in_order: Rows) -> tuple[int, int]:
        """Return tag-stage cycles (all sets are looked up at once), and distinct lines."""
        lanes = np.sort(in_order)
        lines = mark_inactive(lanes // LINE, lanes != inactive_address(lanes))
        distinct = first_of_run(lines)
        sets = [np.count_nonzero(distinct & (lines % SETS == one), axis=1) for one in range(SETS)]
        return int(np.max(sets, axis=0).sum()), int(np.count_nonzero(distinct))


def _starts(address: Addresses, mask: Mask | None) -> int:
    """Return the bitwise or of the addresses of each row's first lane, where it is on."""
    first = address[:, :, :1] if address.ndim else address
    if mask is not None:
        lanes = mask[:, :, :1] if mask.ndim else mask
        first, lanes = np.broadcast_arrays(first, lanes)
        first = first[lanes]
    return int(np.bitwise_or.reduce(first, axis=None))


@dataclass
class RecordedAccess:
    """One execution of an access by the blocks of a batch.

    Attributes:
        site: The access.
        time: Number of earlier accesses.
        sectors: Distinct sectors, ``(touches,)``; with ``starts``, relative to the sector of each
            block's first lane.
        starts: Sector of each block's first lane, ``(blocks,)``, or empty.
        columns: Column of each block, or else of each sector.
    """

    site: int
    time: int
    sectors: Flat
    starts: Flat
    columns: Flat

    @property
    def by_block(self) -> tuple[Flat, Flat]:
        """Return each sector that a block accesses, with the block's column."""
        if not len(self.starts):
            return self.sectors, self.columns
        sectors = self.sectors[:, None] + self.starts
        return sectors.reshape(-1), np.broadcast_to(self.columns, sectors.shape).reshape(-1)


class TouchWatch(Observer):
    """Records which sectors of global memory each block accesses, and in what order.

    All lanes of a block at one access count as one access of each sector, because later warps hit
    L1.
    """

    def __init__(self, limit: int = 1 << 23) -> None:
        self.batches: list[tuple[Geometry, list[RecordedAccess]]] = []
        self._patterns: dict[object, Flat] = {}
        self._budget = limit

    @property
    def full(self) -> bool:
        """Whether the recording is long enough."""
        return self._budget <= 0

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.batches.append((geometry, []))
        self._patterns.clear()
        self._time = 0

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site = event.site
        if not site.counted or event.space != "global" or site.space == "const":
            return
        self._time += 1
        g, touches = self.batches[-1]
        if isinstance(event.address, LaneAddressList):
            keys = unique(packed(event.address.column, event.address.address >> SECTOR_BITS))
            touches.append(self._scattered(site, keys))
            self._budget -= len(keys)
            return
        address = event.address + np.int64(site.offset)
        mask, common, others = event.mask, None, event.mask
        if mask is not None and mask.ndim and mask.shape[3] > 1:
            mask, common, others = _commonest(g, mask)
        found = self._strided(g, site, address, mask, common)
        if not found or common is not None:
            unrecorded = others if found else event.mask
            found.append(self._scattered(site, self._keys(g, site, address, unrecorded)))
        for touch in found:
            self._budget -= len(touch.sectors) * max(1, len(touch.starts))
        touches += [touch for touch in found if len(touch.sectors)]  # some lane was on

    def _scattered(self, site: Site, keys: Flat) -> RecordedAccess:
        columns, sectors = unpacked(keys)
        return RecordedAccess(site.number, self._time, sectors, sectors[:0], columns)

    def _strided(
        self, g: Geometry, site: Site, address: Addresses, mask: Mask | None, some: Mask | None
    ) -> list[RecordedAccess]:
        """Record an access with the same pattern in every block, relative to its start.

        ``some``: mask of the blocks, if not all.
        """
        address = address.reshape((1,) * (4 - address.ndim) + address.shape)
        first = address[:1, :1, :1]
        relative = address - first
        if relative.shape[3] > 1:
            if not (relative == relative[..., :1]).all():
                return []
            relative = np.ascontiguousarray(relative[..., :1])
        starts = np.broadcast_to(first.reshape(-1), (g.columns,))
        inside = starts & (SECTOR - 1)
        found = []
        for start in np.flatnonzero(np.bincount(inside)).tolist():
            here = inside == start
            columns = np.flatnonzero(here if some is None else here & some)
            if not len(columns):
                continue
            sectors = self._pattern(g, site, relative, mask, start)
            found.append(
                RecordedAccess(
                    site.number, self._time, sectors, starts[columns] >> SECTOR_BITS, columns
                )
            )
        return found

    def _pattern(
        self, g: Geometry, site: Site, relative: Addresses, mask: Mask | None, start: int
    ) -> Flat:
        key = (
            site.nbytes, relative.shape, relative.tobytes(), start,
            None if mask is None else mask.tobytes(),
        )  # fmt: skip
        sectors = self._patterns.get(key)
        if sectors is None:
            rows = g.factored(relative + start)
            if mask is not None:
                rows = rows[g.factored(mask)[:, 0]]
            sectors = _touched(rows.reshape(-1), site.nbytes)
            if len(self._patterns) < 20_000:
                self._patterns[key] = sectors
        return sectors

    def _keys(self, g: Geometry, site: Site, address: Addresses, mask: Mask | None) -> Flat:
        """Return the distinct pairs of block and sector."""
        sectors = g.full(address) >> SECTOR_BITS
        keys = packed(np.arange(g.columns, dtype=np.int64), sectors)
        if mask is not None:
            keys = keys[g.full(mask)]
        keys = keys.reshape(-1)
        if site.nbytes > SECTOR:
            keys = np.concatenate([keys, keys + 1])
        return unique(keys)


def _stride(g: Geometry, address: Addresses, mask: Mask | None) -> int | None:
    """Return the bytes between neighbouring active lanes, in the warp with most of them."""

    def by_lane(value: Lanes, fill: Any) -> Rows:
        rows = g.by_warp(np.broadcast_to(value, g.shape), fill)
        return rows.transpose(0, 2, 1).reshape(-1, 32)

    on = by_lane(np.ones((1, 1, 1, 1), bool) if mask is None else mask, False)
    best = int(np.argmax(on.sum(axis=1)))
    lanes, live = by_lane(address, 0)[best], on[best]
    distances = np.diff(lanes)[live[1:] & live[:-1]]
    values, counts = np.unique(distances, return_counts=True)
    if not len(values):
        return 0
    mode = int(np.argmax(counts))
    return int(values[mode]) if counts[mode] >= _MIN_STRIDE_SHARE * len(distances) else None


def _commonest(g: Geometry, mask: Mask) -> tuple[Mask, Flat, Mask]:
    """Return the most frequent mask of a block, its blocks, and the masks of the others."""
    rows = g.factored(mask)
    kinds, which, counts = np.unique(
        np.packbits(rows, axis=0), axis=1, return_inverse=True, return_counts=True
    )
    # One with no lane on tells nothing.
    best = int(np.argmax(np.where(kinds.any(axis=0), counts, 0)))
    common = which.reshape(-1) == best
    column = int(np.argmax(common))
    one = np.ascontiguousarray(np.broadcast_to(mask, (*g.shape[:3], mask.shape[3]))[..., column])
    return one[..., None], common, mask & ~common


def _touched(addresses: Flat, nbytes: int) -> Flat:
    """Return the distinct sectors of some addresses."""
    first = addresses >> SECTOR_BITS
    if nbytes > SECTOR:
        first = np.concatenate([first, first + 1])
    return unique(first)
