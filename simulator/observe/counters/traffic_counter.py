"""Traffic counter: cost of accesses, evaluated once for each pattern or for all warps together.

Definitions are the hardware's (``docs/counters.md`` names the equal Nsight Compute metric). A
request is one instruction of one warp with any active lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import cast

import numpy as np

from ...core.geometry import Addresses, Flat, Geometry, Mask, Rows
from ...events import Observer
from ...isa.memory.address_windows import RANK_BITS
from ...memory.event import AccessEvent, CompactAccessEvent, LaneAddressList
from ...memory.site import Site, interleaved
from .banks import SECTOR, requests
from .costs import MaskedBankModel, access_kind, atomic_cost, bulk_cost, by_word, request_cost
from .deferred_requests import DeferredRequests, LaneSample
from .grouped_load_costs import Several
from .patterns import PATTERNS, Masks, Pattern, Patterns, pattern_of
from .traffic import Traffic

COUNTED_SPACES = ("global", "shared", "local", "cluster")
_FIGURES = len(fields(Traffic))
_TOGETHER = 1 << 18
"""Lanes that are judged at once."""


class TrafficCounter(Observer):
    """Counts every access, per site.

    A pattern has the addresses relative to the block's first lane. Patterns repeat, so that each is
    evaluated once and cached. ``known``: cached patterns for this block shape.
    """

    unit = SECTOR
    """Where an access to global memory begins matters modulo this; it divides ``LINE``."""
    sparse = True
    """Whether scattered lanes are judged without rows of 32."""

    def __init__(self, sites: int, known: dict[object, Flat]) -> None:
        slots = sites * len(COUNTED_SPACES)
        self._totals = np.zeros((slots, _FIGURES), np.int64)
        self._last = [np.zeros(_FIGURES, np.int64)] * slots
        self._times, self._again = [0] * slots, [0] * slots
        self._slot = [-1] * sites  # of each site's last access that was judged
        self._put_by = DeferredRequests(self._totals, self._judge_rows, self.sparse)
        self._several = Several(self._totals)
        self.known = known
        self._words: dict[bytes, MaskedBankModel] = {}
        self._masks = Masks()
        self._patterns = Patterns()
        self.geometry: Geometry | None = None

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry
        self._patterns.start(geometry.moves)

    @property
    def _shape(self) -> Geometry:
        assert self.geometry is not None, "a batch has begun"
        return self.geometry

    def finish(self) -> None:
        """See ``Observer``; adds up counted repetitions."""
        slots = [slot for slot, times in enumerate(self._times) if times]
        if slots:
            times = np.array([self._times[slot] for slot in slots])[:, None]
            self._totals[slots] += np.array([self._last[slot] for slot in slots]) * times
            self._times = [0] * len(self._times)
        self._put_by.settle()
        self._several.settle()

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site = event.site
        if event.repeated and (slot := self._slot[site.number]) >= 0:
            if not self._put_by.again(slot):
                self._times[slot] += self._again[slot]
            return
        if not site.counted or (isinstance(event.address, LaneAddressList) and not site.in_bulk):
            if site.is_image:
                self._picture(event)
            return
        if not (site.traffic or site.in_bulk):
            return  # an mbarrier's, a ``wgmma``'s: no counter has them (``collect``)
        slot = site.number * len(COUNTED_SPACES) + COUNTED_SPACES.index(event.space)
        if isinstance(event.address, LaneAddressList):
            self._totals[slot] += bulk_cost(event, self._shape.columns)
            return
        self._slot[site.number] = slot
        cost = self._patterns.known(event, slot) or self._cost(event, slot)
        if isinstance(cost, LaneSample):
            self._put_by.add(slot, cost)
            return
        self._put_by.other(slot)
        figures, times = cost
        if figures is not self._last[slot]:
            if self._times[slot]:
                self._totals[slot] += self._last[slot] * self._times[slot]
            self._last[slot], self._times[slot] = figures, 0
        self._times[slot] += times
        self._again[slot] = times

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """See ``Observer``."""
        one = events[0]
        if one.repeated and self._several.repeat_last(sites):
            return
        pattern = None
        if not one.repeated:
            if one.mask is None:
                pattern = self._patterns(cast(Addresses, one.address))
            if self._several.access(sites, pattern):
                return
        self._one_by_one(events)
        if pattern is not None:
            self._several.learn(sites, pattern, [self._slot[site.number] for site in sites])

    def _one_by_one(self, events: Sequence[AccessEvent]) -> None:
        for event in events:
            slot = self._slot[event.site.number]
            if not event.repeated or slot < 0:
                self.access(event)  # which takes twice the time for what is repeated
            elif not self._put_by.again(slot):
                self._times[slot] += self._again[slot]

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``."""
        site, lanes = event.site, event.lanes
        if not site.counted:
            return
        slot = site.number * len(COUNTED_SPACES) + COUNTED_SPACES.index(event.space)
        address, at, places = event.accesses
        offset = site.offset
        if event.space == "local":
            address, offset = interleaved(address + offset, lanes.thread[at]), 0
        self._put_by.add(slot, LaneSample(site, event.space, address, places, lanes.warps, offset))

    def _picture(self, event: AccessEvent) -> None:
        """Count an access to a texture or surface: requests, threads and bytes."""
        site = event.site
        threads, warps = self._shape.active(event.mask)
        nbytes = (
            len(event.address.address) * site.nbytes
            if isinstance(event.address, LaneAddressList)
            else 0
        )
        slot = site.number * len(COUNTED_SPACES)
        self._totals[slot, :3] += warps, threads, nbytes

    def add(self, site: Site, space: str, figures: Flat) -> None:
        """Add what accesses of a site to a space cost, as native code counted."""
        self._totals[site.number * len(COUNTED_SPACES) + COUNTED_SPACES.index(space)] += figures

    def merge(self, other: TrafficCounter) -> None:
        """See ``Observer``."""
        self._totals += other._totals

    def traffic(self, site: Site) -> dict[str, Traffic]:
        """Return the traffic of a site, by space."""
        first = site.number * len(COUNTED_SPACES)
        rows = self._totals[first : first + len(COUNTED_SPACES)].tolist()
        return {
            space: Traffic(*row) for space, row in zip(COUNTED_SPACES, rows, strict=True) if row[0]
        }

    def costs(self) -> list[tuple[int, list[int]]]:
        """Return slots with any traffic and their figures; each site has four adjacent slots."""
        slots = np.flatnonzero(self._totals[:, 0])
        return list(zip(slots.tolist(), self._totals[slots].tolist(), strict=True))

    def _cost(self, event: AccessEvent, slot: int) -> tuple[Flat, int] | LaneSample:
        """Return the figures of one access, in the order of ``Traffic``, and their multiplicity.

        Lanes without a pattern are returned instead, to be evaluated with others.
        """
        g, site, space, mask = self._shape, event.site, event.space, event.mask
        address = cast(Addresses, event.address)
        if event.columns is not None:
            address = address + (event.columns << np.int64(RANK_BITS))
        if mask is not None and mask.ndim == 0:
            if not mask:
                return np.zeros(_FIGURES, np.int64), 1
            mask = None
        if space == "local":
            address = interleaved(address, self._shape.thread_ids) - np.int64(site.offset)
            pattern = pattern_of(address)
        else:
            pattern = self._patterns(address)
        if pattern is None:
            return self._no_pattern(site, space, address + np.int64(site.offset), mask)
        # Every block sees the same pattern, from a start that matters modulo the unit: which words
        # share a bank is the same wherever in the banks they begin.
        unit = 4 if space == "shared" else self.unit
        if mask is not None and mask.shape[3] > 1:
            starts = (pattern.first + np.int64(site.offset)) & np.int64(unit - 1)
            return self._masked(site, space, pattern, starts, mask)
        found: dict[int, int] = {}
        for at, blocks in pattern.begins:
            start = (at + site.offset) % unit
            found[start] = found.get(start, 0) + blocks * (g.columns // len(pattern.first))
        if len(found) == 1:
            cost = self._judged(site, space, pattern, mask, start), found[start]
        else:
            each = [self._judged(site, space, pattern, mask, at) * n for at, n in found.items()]
            cost = np.add.reduce(each), 1
        if mask is None:
            pattern.costs[slot] = cost
        return cost

    def _judged(
        self, site: Site, space: str, pattern: Pattern, mask: Mask | None, start: int
    ) -> Flat:
        key = (
            space, site.nbytes, access_kind(site), start, pattern.content,
            None if mask is None else (mask.shape, mask.tobytes()),
        )  # fmt: skip
        found = self.known.get(key)
        if found is None:
            found = self._cost_of(site, space, pattern.relative + np.int64(start), mask)
            if len(self.known) > 20_000:
                self.known.clear()
            self.known[key] = found
        return found

    def _masked(
        self, site: Site, space: str, pattern: Pattern, starts: Flat, mask: Mask
    ) -> tuple[Flat, int] | LaneSample:
        """Return the cost of an access whose mask differs between blocks."""
        g = self._shape
        rows = g.factored(mask)
        found, known = self._masks.group_equal_masks(mask, rows, g.shape[:3])
        if found is not None:
            key = space, site.nbytes, access_kind(site), pattern.content, starts.tobytes()
            if key not in known:
                if len(known) > PATTERNS:
                    known.clear()
                known[key] = self._by_kind(site, space, pattern, starts, *found)
            total = known[key]
            if total is not None:
                return total, 1
        plain = site.access != "atomic"
        if plain and space == "shared" and site.nbytes == 4 and len(starts) == 1:
            return self._same_words(g.factored(pattern.relative)[:, 0] + starts[0], rows), 1
        return self._no_pattern(site, space, pattern.relative + starts, mask)

    def _by_kind(
        self, site: Site, space: str, pattern: Pattern, starts: Flat, group: Flat, masks: list[Mask]
    ) -> Flat | None:
        """Evaluate blocks with equal mask and start together; ``None``: too many differ."""
        each = np.bincount(group * np.intp(self.unit) + starts)
        kinds = np.flatnonzero(each)
        if len(kinds) > PATTERNS:
            return None
        total = np.zeros(_FIGURES, np.int64)
        for kind in kinds.tolist():
            number, start = divmod(kind, self.unit)
            total += self._judged(site, space, pattern, masks[number], start) * each[kind]
        return total

    def _same_words(self, address: Flat, rows: Rows) -> Flat:
        """Evaluate accesses in which each thread accesses one word in all blocks."""
        key = address.tobytes()
        words = self._words.get(key)
        if words is None:
            if len(self._words) > PATTERNS:
                self._words.clear()
            words = self._words[key] = MaskedBankModel(address)
        return words.cost(rows)

    def _no_pattern(
        self, site: Site, space: str, address: Addresses, mask: Mask | None
    ) -> tuple[Flat, int] | LaneSample:
        some = self._put_by.few(self._shape, site, space, address, mask)
        return some if some is not None else (self._cost_of(site, space, address, mask), 1)

    def _cost_of(self, site: Site, space: str, address: Addresses, mask: Mask | None) -> Flat:
        """Evaluate every warp, some blocks at a time."""
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
        """Return the cost of ``requests``."""
        if site.access == "atomic":
            return atomic_cost(site.nbytes, space, in_order, site.operation == "cas")
        figures = request_cost(site.nbytes, site.access == "load", space, in_order)
        return by_word(figures, site.nbytes) if space == "local" else figures
