"""Contention of atomics in a sample of blocks."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..core.geometry import Flat, Geometry
from ..events import Observer
from ..memory.event import AccessEvent, LaneAddressList
from .keys import SECTOR_BITS, packed, unpacked

_HOT = 4096
"""Words of a request by all blocks of a batch up to which one of them may be busy."""


class AtomicWatch(Observer):
    """Contention of atomics on common locations.

    Attributes:
        pieces: Passes of global atomics by 512-byte piece. Lanes of a request in one sector pass
            together, unless they access one word.
        reach: First and last block that accesses each piece.
        words: Lanes of global atomics by word, for few words.
        passes: Passes of global atomics by access.
        requests: The same with all lanes of a line together.
        conflicts: Additional passes of shared atomics with lanes on one word, by access.
        same: Those that global atomics would take if they were shared.
    """

    def __init__(self) -> None:
        self.pieces: Counter[int] = Counter()
        self.reach: dict[int, tuple[int, int]] = {}
        self.words: Counter[int] = Counter()
        self.passes: Counter[int] = Counter()
        self.requests: Counter[int] = Counter()
        self.conflicts: Counter[int] = Counter()
        self.same: Counter[int] = Counter()
        self.geometry: Geometry

    def hottest(self, blocks: Flat, factor: float) -> float:
        """Return the busiest piece's share of all passes of the launch.

        Pieces that only neighbouring blocks access are no busier in a larger launch.

        Args:
            blocks: Sampled blocks.
            factor: Blocks of the launch for each sampled one.
        """
        far = (int(blocks.max()) - int(blocks.min())) / 2
        busiest = max(
            (
                count * (factor if self.reach[number][1] - self.reach[number][0] >= far else 1)
                for number, count in self.pieces.items()
            ),
            default=0.0,
        )
        return busiest / (self.passes.total() * factor) if self.pieces else 0.0

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site, g = event.site, self.geometry
        if (
            site.access != "atomic"
            or not site.traffic
            or isinstance(event.address, LaneAddressList)
        ):
            return
        rows = g.by_warp(np.broadcast_to(event.address, g.shape), np.int64(-1))
        on = True if event.mask is None else np.broadcast_to(event.mask, g.shape)
        lanes = g.by_warp(np.broadcast_to(on, g.shape), False)
        keys = np.where(lanes, rows + site.offset, -1).transpose(0, 2, 1).reshape(-1, 32)
        ordered = np.sort(keys, axis=1)
        live = ordered >= 0
        run = np.where(live, 1, 0)
        for lane in range(1, 32):
            same = (ordered[:, lane] == ordered[:, lane - 1]) & live[:, lane]
            run[:, lane] = np.where(same, run[:, lane - 1] + 1, run[:, lane])
        further = int((run.max(axis=1) - 1)[live[:, -1]].sum())
        if event.space == "shared":
            # The machine counts lanes that add one to a word, and adds them all at once.
            ones = not site.type.startswith("f") and all(
                (np.asarray(one) == 1).all() for one in event.values or (0,)
            )
            self.conflicts[site.number] += 0 if ones and site.instruction.has("add") else further
            return
        self.same[site.number] += further
        words, lanes_of = np.unique(ordered[live], return_counts=True)
        if len(words) <= _HOT:
            self.words.update(dict(zip(words.tolist(), lanes_of.tolist(), strict=True)))
        sectors = np.where(live, ordered >> SECTOR_BITS, -1)
        row = np.broadcast_to(np.arange(len(sectors))[:, None], sectors.shape)[live]
        places, inverse = np.unique(packed(row, sectors[live]), return_inverse=True)
        passes = np.zeros(len(places), np.int64)
        np.maximum.at(passes, inverse, run[live])
        self.passes[site.number] += int(passes.sum())
        self.requests[site.number] += len(np.unique(places >> 2))
        rows, touched = unpacked(places)
        numbers, which = np.unique(touched >> 4, return_inverse=True)
        counts = np.bincount(which, passes)
        blocks = g.blocks[rows % g.columns]
        first, last = np.full((2, len(numbers)), blocks[0] if len(blocks) else 0)
        np.minimum.at(first, which, blocks)
        np.maximum.at(last, which, blocks)
        found = zip(*(x.tolist() for x in (numbers, counts, first, last)), strict=True)
        for number, count, begin, end in found:
            self.pieces[number] += int(count)
            before = self.reach.get(number, (begin, end))
            self.reach[number] = min(begin, before[0]), max(end, before[1])
