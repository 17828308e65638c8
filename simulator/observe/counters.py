"""Counters: what an access costs, worked out once for each pattern, or for all warps at once.

Definitions are the hardware's (``docs/counters.md`` names the Nsight Compute metric
each one equals). A request is one instruction of one warp with any lane on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..events import Observer
from ..geometry import Addresses, Flat, Geometry, Mask, Rows
from ..isa.windows import RANK_BITS
from ..memory.event import Event, PickedEvent, Spread
from ..memory.site import Site, interleaved
from .banks import BANKS, SECTOR, requests
from .costs import Words, bulk_cost, request_cost
from .put_by import PutBy, Some

COUNTED_SPACES = ("global", "shared", "local", "cluster")


@dataclass
class Traffic:
    """Accesses of one kind to one space.

    Attributes:
        requests: Instructions of a warp, with any lane on.
        accesses: Threads that took part, summed.
        bytes: Bytes they asked for, summed.
        distinct_bytes: Distinct bytes a request touches, summed.
        sectors: 32-byte sectors a request touches, summed (global and local memory).
        wavefronts: Passes through the 32 banks of shared memory, see ``bank_passes``.
        bank_conflicts: Wavefronts beyond one for each group of lanes.
        ideal_sectors: Sectors, were the distinct bytes side by side and aligned.
    """

    requests: int = 0
    accesses: int = 0
    bytes: int = 0
    distinct_bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    bank_conflicts: int = 0
    ideal_sectors: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(self.values(), other.values(), strict=True)))

    def values(self) -> tuple[int, ...]:
        """The figures, in order of declaration."""
        return tuple(self.__dict__.values())

    @property
    def sectors_per_request(self) -> float:
        """32-byte sectors a request touches, on average."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def coalescing(self) -> float:
        """Share of the sectors' bytes that some lane asked for; 1.0 wastes nothing."""
        return self.distinct_bytes / (self.sectors * SECTOR) if self.sectors else 1.0

    def to_dict(self) -> dict[str, int]:
        """JSON-ready."""
        return dict(self.__dict__)


_FIGURES = len(fields(Traffic))
_PATTERNS = 16
"""So many patterns of an access are looked up; of more of them all warps are judged at once."""
_TOGETHER = 1 << 18
"""Lanes that are judged at once."""


class TrafficCounter(Observer):
    """Counts every access, per site.

    A pattern is what an access looks like from its block's first lane; patterns repeat, so each is
    judged once and remembered. ``known`` has the patterns judged already, for this shape of block.
    """

    unit = SECTOR
    """Where an access to global memory begins matters modulo this."""
    sparse = True
    """Whether scattered lanes are judged without rows of 32."""

    def __init__(self, sites: int, known: dict[object, Flat]) -> None:
        slots = sites * len(COUNTED_SPACES)
        self._totals = np.zeros((slots, _FIGURES), np.int64)
        self._last = [np.zeros(_FIGURES, np.int64)] * slots
        self._pending = [0] * slots
        self._put_by = PutBy(self._totals, self._judge_rows, self.sparse)
        self.known = known
        self._words: dict[bytes, Words] = {}
        self.geometry: Geometry | None = None

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    @property
    def _shape(self) -> Geometry:
        assert self.geometry is not None, "a batch has begun"
        return self.geometry

    def finish(self) -> None:
        """See ``Observer``; adds up repeats that were only counted so far."""
        for slot, times in enumerate(self._pending):
            if times:
                self._totals[slot] += self._last[slot] * times
                self._pending[slot] = 0
        self._put_by.settle()

    def access(self, event: Event) -> None:
        """See ``Observer``."""
        site = event.site
        if not site.counted or (isinstance(event.address, Spread) and not site.in_bulk):
            if site.picture:
                self._picture(event)
            return
        slot = site.number * len(COUNTED_SPACES) + COUNTED_SPACES.index(event.space)
        if isinstance(event.address, Spread):
            self._totals[slot] += bulk_cost(event, self._shape.columns)
            return
        if event.repeated:
            if not self._put_by.again(slot):
                self._pending[slot] += 1
            return
        if self._pending[slot]:
            self._totals[slot] += self._last[slot] * self._pending[slot]
            self._pending[slot] = 0
        address = event.address
        if event.columns is not None:
            address = address + (event.columns << np.int64(RANK_BITS))
        cost = self.cost(site, event.space, address, event.mask)
        if isinstance(cost, Some):
            self._put_by.add(slot, cost)
            return
        self._put_by.other(slot)
        self._last[slot] = cost
        self._totals[slot] += cost

    def picked(self, event: PickedEvent) -> None:
        """See ``Observer``."""
        site, lanes = event.site, event.lanes
        if not site.counted:
            return
        slot = site.number * len(COUNTED_SPACES) + COUNTED_SPACES.index(event.space)
        address, at, places = event.accesses
        offset = site.offset
        if event.space == "local":
            address, offset = interleaved(site, address + offset, lanes.thread[at]), 0
        self._put_by.add(slot, Some(site, event.space, address, places, lanes.warps, offset))

    def _picture(self, event: Event) -> None:
        """Textures and surfaces: who asks, and for how many bytes."""
        site = event.site
        threads, warps = self._shape.active(event.mask)
        nbytes = (
            len(event.address.address) * site.nbytes if isinstance(event.address, Spread) else 0
        )
        slot = site.number * len(COUNTED_SPACES)
        self._totals[slot, :3] += warps, threads, nbytes

    def merge(self, other: TrafficCounter) -> None:
        """See ``Observer``."""
        self._totals += other._totals

    def traffic(self, site: Site) -> dict[str, Traffic]:
        """What a site has cost, by space."""
        first = site.number * len(COUNTED_SPACES)
        rows = self._totals[first : first + len(COUNTED_SPACES)].tolist()
        return {
            space: Traffic(*row) for space, row in zip(COUNTED_SPACES, rows, strict=True) if row[0]
        }

    def cost(self, site: Site, space: str, address: Addresses, mask: Mask | None) -> Flat | Some:
        """The figures of one access of the whole batch, in the order of ``Traffic``.

        Or its lanes, where they follow no pattern and are better judged with others'.
        """
        g = self._shape
        if mask is not None and mask.ndim == 0:
            if not mask:
                return np.zeros(_FIGURES, np.int64)
            mask = None
        if address.ndim == 0:
            address = address.reshape(1, 1, 1, 1)
        if space == "local":
            address = address + np.int64(site.offset)
            address = interleaved(site, address, self._shape.thread_ids) - np.int64(site.offset)
        unit = BANKS * 4 if space == "shared" else self.unit
        first = address[:1, :1, :1]
        relative = address[..., :1] - first[..., :1]
        if address.shape[3] > 1:
            last = address[..., -1:] - first[..., -1:]  # most of those that differ do so here
            if not (last == relative).all() or not (address - first == relative).all():
                return self._no_pattern(site, space, address + np.int64(site.offset), mask)
            relative = np.ascontiguousarray(relative)
        # Every block sees the same pattern, from a start that matters modulo the unit.
        starts = (first.reshape(-1) + np.int64(site.offset)) & np.int64(unit - 1)
        if mask is not None and mask.shape[3] > 1:
            return self._masked(site, space, relative, starts, mask)
        total = np.zeros(_FIGURES, np.int64)
        times = g.columns // len(starts)
        counts = np.bincount(starts)
        for start in np.flatnonzero(counts).tolist():
            total += self._pattern(site, space, relative, mask, start) * (
                int(counts[start]) * times
            )
        return total

    def _pattern(
        self, site: Site, space: str, relative: Addresses, mask: Mask | None, start: int
    ) -> Flat:
        key = (
            space, site.nbytes, site.access == "load", start, relative.shape, relative.tobytes(),
            None if mask is None else (mask.shape, mask.tobytes()),
        )  # fmt: skip
        found = self.known.get(key)
        if found is None:
            found = self._judge(site, space, relative + np.int64(start), mask)
            if len(self.known) > 20_000:
                self.known.clear()
            self.known[key] = found
        return found

    def _masked(
        self, site: Site, space: str, relative: Addresses, starts: Flat, mask: Mask
    ) -> Flat | Some:
        """The mask differs between blocks; often it does so only in some."""
        g = self._shape
        rows = g.factored(mask)
        if space == "shared" and site.nbytes == 4 and len(starts) == 1:
            return self._same_words(g.factored(relative)[:, 0] + starts[0], rows)
        starts = np.broadcast_to(starts, (g.columns,))
        other = (rows[:, 1:] != rows[:, :-1]).any(axis=0) | (starts[1:] != starts[:-1])
        samples = np.append(0, np.flatnonzero(other) + 1)
        if len(samples) > _PATTERNS:
            return self._no_pattern(site, space, relative + starts, mask)
        total = np.zeros(_FIGURES, np.int64)
        counts = np.diff(samples, append=g.columns)
        for column, count in zip(samples.tolist(), counts.tolist(), strict=True):
            one = np.ascontiguousarray(rows[:, column]).reshape(*g.shape[:3], 1)
            total += self._pattern(site, space, relative, one, int(starts[column])) * count
        return total

    def _same_words(self, address: Flat, rows: Rows) -> Flat:
        """Each thread wants the same word of shared memory in every block, in some of them."""
        key = address.tobytes()
        words = self._words.get(key)
        if words is None:
            if len(self._words) > _PATTERNS:
                self._words.clear()
            words = self._words[key] = Words(address)
        return words.cost(rows)

    def _no_pattern(
        self, site: Site, space: str, address: Addresses, mask: Mask | None
    ) -> Flat | Some:
        some = self._put_by.few(self._shape, site, space, address, mask)
        return some if some is not None else self._judge(site, space, address, mask)

    def _judge(self, site: Site, space: str, address: Addresses, mask: Mask | None) -> Flat:
        """Every warp by itself, some blocks at a time."""
        total = np.zeros(_FIGURES, np.int64)
        g = self._shape
        rows = g.factored(address)
        lanes = None if mask is None else g.factored(mask)
        if lanes is not None and lanes.shape[1] > rows.shape[1]:
            rows = np.broadcast_to(rows, lanes.shape)
        width = max(1, _TOGETHER // len(rows))
        for at in range(0, rows.shape[1], width):
            part = lanes
            if lanes is not None and lanes.shape[1] > 1:
                part = lanes[:, at : at + width]
            total += self._judge_rows(site, space, requests(rows[:, at : at + width], part))
        return total

    def _judge_rows(self, site: Site, space: str, in_order: Rows) -> Flat:
        """Cost of ``requests``."""
        return request_cost(site.nbytes, site.access == "load", space, in_order)
