"""Shadow memory: for each location the latest accesses, by instruction and thread.

One access of each instruction, location and thread suffices: an earlier one of the same thread and
instruction is ordered before whatever the latest is ordered before. The size is linear in the
number of these. Races are yielded in pieces of bounded size, so that a caller can stop early.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.geometry import WARP, Flat, Mask
from ...memory.site import Site
from ..order.vector_clock import Ordered
from .access_history import AccessHistory
from .conflicts import race_kind
from .last_write_epochs import LastWriteEpochs
from .lookups import Asked, EqualRows
from .pair_limit import Clip, PairBound, pieces

_MANY = 32
"""Candidates a lane, from which on lanes that are alike are sought."""


@dataclass
class Conflict:
    """Pairs of racing accesses, one element for each pair.

    Attributes:
        place: Location (granule number).
        earlier: Thread of the recorded access (global number).
        later: Thread of the current access (global number).
        lane: Index into the current access's lanes.
        entry: Index into the history; within one execution, into its lanes.
    """

    place: Flat
    earlier: Flat
    later: Flat
    lane: Flat
    entry: Flat

    def some(self, which: Flat) -> Conflict:
        """Return the pairs that an index selects."""
        columns = (self.place, self.earlier, self.later, self.lane, self.entry)
        return Conflict(*(column[which] for column in columns))


class ShadowMemory:
    """Shadow memory of one array, or of shared memory.

    ``threads``: upper bound of thread numbers. ``block``: threads of a block. ``places``: number of
    locations, if each block has its own (``LastWriteEpochs``).
    """

    def __init__(self, threads: int, block: int, places: int = 0) -> None:
        self.threads, self.block = np.int64(threads), np.int64(block)
        self.histories: dict[int, AccessHistory] = {}
        self.newest = LastWriteEpochs(places) if places else None

    def merge(self, other: ShadowMemory) -> None:
        """Merge the accesses of other blocks."""
        for number, history in other.histories.items():
            mine = self.histories.setdefault(number, history)
            if mine is not history:
                mine.merge(history)

    def clear(self) -> None:
        """Handle a full barrier: forget all accesses."""
        self.histories = {}
        if self.newest is not None:
            self.newest.clear()

    def begin(self, places: range) -> None:
        """Forget the accesses to reallocated locations."""
        for history in self.histories.values():
            history.drop(places.start * self.threads, places.stop * self.threads)

    def conflicting_histories(
        self, site: Site, clusters: bool = False, met: int = -1
    ) -> Iterator[tuple[AccessHistory, str]]:
        """Yield the histories that an access may race with, and how: see ``race_kind``.

        ``met``: time before which everything happens before the access.
        """
        for history in list(self.histories.values()):
            if history.last <= met and history.site.queue != "product":
                continue  # a product goes on after its instruction
            how = race_kind(site, history.site, clusters)
            if how:
                yield history, how

    def record(
        self, site: Site, place: Flat, thread: Flat, now: int, values: Flat | None, since: Flat
    ) -> None:
        """Record an access, one location a lane; ``since``: each block's last barrier."""
        history = self.histories.setdefault(site.whole, AccessHistory(site))
        history.add(place * self.threads + thread, now, values, since)

    def asked(self, place: Flat, thread: Flat) -> Asked:
        """Return the lookup of some lanes in this memory."""
        return Asked(place, thread, self.threads, self.block)

    def many(self, history: AccessHistory, place: Flat) -> bool:
        """Whether many more accesses are recorded at some locations than lanes access them."""
        low, high = (
            np.searchsorted(history.table.keys, (place + end) * self.threads).sum()
            for end in (0, 1)
        )
        return bool(high - low > _MANY * len(place))

    def races(
        self, history: AccessHistory, asked: Asked, ordered: Ordered, distance: str,
        equal_rows: EqualRows | None = None, bound: PairBound | None = None,
        free: Mask | None = None,
    ) -> Iterator[Conflict]:  # fmt: skip
        """Yield races of lanes with recorded accesses of threads at a distance.

        ``ordered``: decides whether a recorded access happens before a lane's. ``distance``:
        ``lane`` of the same warp, another ``warp`` of the block, ``near`` (either), ``any``, or
        another ``block``. ``equal_rows``: for other blocks, one lane of each group is looked up for
        all. ``bound``: pairs with both threads beyond it may be omitted, except those of ``free``
        lanes.
        """
        place, thread = asked.place, asked.thread
        if not len(place) or asked.low > history.high or asked.high <= history.low:
            return  # a barrier, say, and a tile
        keys = history.table.keys
        if equal_rows is not None and distance == "block":
            yield from self._of_equal_rows(history, asked, ordered, equal_rows, bound, free)
            return
        clip = Clip(bound, keys, asked.start, thread, free) if bound else None
        for low, high in asked.ranges(distance):
            lanes: Flat | None = None
            if clip is not None and not isinstance(clipped := clip.within(low), slice):
                low, high, lanes = low[clipped], high[clipped], clipped
            begin, end = np.searchsorted(keys, low), np.searchsorted(keys, high)
            for lane, entry in pieces(begin, end, lanes, clip):
                earlier = keys[entry] % self.threads
                clashing = earlier != thread[lane]
                clashing[clashing] = ~ordered(
                    history.table.times[entry[clashing]], earlier[clashing], lane[clashing]
                )
                if clashing.any():
                    lane, entry, earlier = lane[clashing], entry[clashing], earlier[clashing]
                    yield Conflict(place[lane], earlier, thread[lane], lane, entry)

    def _of_equal_rows(
        self, history: AccessHistory, asked: Asked, ordered: Ordered, equal_rows: EqualRows,
        bound: PairBound | None, free: Mask | None,
    ) -> Iterator[Conflict]:  # fmt: skip
        """Yield races with other blocks, one lookup for each group of lanes with equal clocks."""
        keys, one, thread = history.table.keys, equal_rows.first, asked.thread
        clip = None
        if bound:
            some = None if free is None else equal_rows.of_any(free)
            clip = Clip(bound, keys, asked.start[one], equal_rows.least(thread), some)
        for low, high in asked.ranges("block"):
            begin, end = np.searchsorted(keys, low[one]), np.searchsorted(keys, high[one])
            for group, entry in pieces(begin, end, None, clip):
                earlier = keys[entry] % self.threads
                clashing = ~ordered(history.table.times[entry], earlier, one[group])
                for pair, lane in equal_rows.members(group[clashing]):
                    which = entry[clashing][pair]
                    earlier = keys[which] % self.threads
                    yield Conflict(asked.place[lane], earlier, thread[lane], lane, which)

    def intra_instruction_conflicts(
        self, place: Flat, thread: Flat, distance: str, bound: PairBound | None = None,
        values: Flat | None = None,
    ) -> Iterator[Conflict]:  # fmt: skip
        """Yield races between lanes of one execution of an instruction; ``entry`` is a lane, too.

        ``bound``: as in ``races``. ``values``: the stored values.
        """
        turn = np.lexsort((thread, place))
        where, who = place[turn], thread[turn]
        begin = np.searchsorted(where, where)
        if (begin == np.arange(len(begin))).all():
            return
        blocks = int(self.threads // self.block) + 1
        warps = int(self.block) // WARP + 1
        block = where * blocks + who // self.block
        warp = block * warps + who % self.block // WARP
        starts = [np.searchsorted(key, key) for key in (warp, block, where)]
        here = np.arange(len(turn))
        first = np.flatnonzero(starts[2] == here)
        many = np.diff(first, append=len(turn))
        low, high = {
            "lane": (starts[0], here),
            "warp": (starts[1], starts[0]),
            "near": (starts[1], here),
            "block": (starts[2], starts[1]),
        }[distance]
        clip = None
        if bound:
            keys, free = where * self.threads + who, None
            if values is not None and not bound.learnt():
                remaining = values[turn]
                free = np.repeat(
                    np.minimum.reduceat(remaining, first) != np.maximum.reduceat(remaining, first),
                    many,
                )
            clip = Clip(bound, keys, where * self.threads, who, free)
        for lane, entry in pieces(low, high, None, clip):
            lane, other = turn[lane], turn[entry]
            yield Conflict(place[lane], thread[other], thread[lane], lane, other)
