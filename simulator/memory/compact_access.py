"""Memory accesses of compact lanes: places, order and event.

Uncommon cases (lanes in several arrays, bad addresses, atomics with a result) are expanded and take
the path of the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..core.compact_lanes import CompactLanes
from ..core.geometry import Addresses, Lanes, Mask
from ..isa import DTYPES
from .access import Access, in_bulk
from .addressing.address_range import extent
from .addressing.lane_index import place_index
from .event import CompactAccessEvent
from .grouped_loads import AllLoads, OneByOne
from .storage.spaces import Home, InterleavedMemory, PlaceIndex

Extent = tuple[Addresses, Mask | None, tuple[int, int, int]]
"""Addresses, which of them, and their ``extent``."""


class Holder(Protocol):
    """Owner of compact lanes, with extents cached by the identity of the address array.

    An unrolled loop accesses several places from one base; computing an extent takes 6
    microseconds.
    """

    lanes: CompactLanes
    extents: dict[tuple[int, int], Extent]


class CompactAccess:
    """An ``Access`` of compact lanes."""

    __slots__ = ("access", "callbacks", "holder", "site")

    def __init__(
        self,
        access: Access,
        holder: Holder,
        callbacks: Sequence[Callable[[CompactAccessEvent], None]],
    ) -> None:
        self.access, self.site, self.holder, self.callbacks = access, access.site, holder, callbacks

    def _find(self, base: Addresses, mask: Mask | None) -> tuple[Home, Addresses, Addresses] | None:
        found = self._whole(base, None)  # a third of the cost, if lanes that are off do no harm
        return found if found is not None or mask is None else self._whole(base, mask)

    def _whole(
        self, base: Addresses, mask: Mask | None
    ) -> tuple[Home, Addresses, Addresses] | None:
        key = id(base), id(mask)
        known = self.holder.extents.get(key)
        if known is None:
            known = self.holder.extents[key] = base, mask, extent(base, mask)
        low, high, bits = known[2]
        if low > high:
            return None
        return self.access.memories.whole(self.site, base, low, high, bits, mask)

    def _index(
        self, home: Home, relative: Addresses, lanes: CompactLanes, ordered: bool
    ) -> PlaceIndex:
        """Return the places of lanes; ``ordered``: in the order of a whole batch."""
        order = lanes.order if ordered else slice(None)
        columns: Lanes | None = None
        if isinstance(home, InterleavedMemory):
            columns = lanes.gather(home.numbers)[..., order]
        if relative.ndim:
            relative = relative[..., order]
        return place_index(home, relative, self.site, columns)

    def _notify(
        self, home: Home, address: Addresses, mask: Mask | None,
        values: tuple[Lanes, ...] | None = None,
    ) -> None:  # fmt: skip
        self.access.forget()  # what the whole batch does next is no repetition
        space = home.space if isinstance(home, InterleavedMemory) else "global"
        event = CompactAccessEvent(self.holder.lanes, self.site, space, address, mask, home, values)
        for callback in self.callbacks:
            callback(event)

    def _spread(self, mask: Mask | None, *values: Lanes) -> tuple[Mask, list[Lanes]]:
        lanes = self.holder.lanes
        return lanes.spread_mask(mask), [lanes.spread(v) if v.ndim else v for v in values]

    def load(
        self, base: Addresses, mask: Mask | None, length: Lanes | None = None
    ) -> tuple[Lanes, ...]:
        """See ``Access``."""
        lanes = self.holder.lanes
        found = self._find(base, mask) if length is None else None
        if found is None:
            given = () if length is None else (length,)
            on, (base, *lengths) = self._spread(mask, base, *given)
            return tuple(map(lanes.gather, self.access.load(base, on, *lengths)))
        home, relative, address = found
        self._notify(home, address, mask)
        return self._index(home, relative, lanes, False).load()

    def store(self, base: Addresses, mask: Mask | None, *values: Lanes) -> None:
        """See ``Access``."""
        lanes = self.holder.lanes
        found = self._find(base, mask)
        if found is None:
            on, (base, *given) = self._spread(mask, base, *values)
            self.access.store(base, on, *given)
            return
        home, relative, address = found
        self._notify(home, address, mask, values)
        ordered = not (
            isinstance(home, InterleavedMemory) and home.space == "local"
        )  # a lane's own
        index = self._index(home, relative, lanes, ordered)
        if ordered:
            values = tuple(v[..., lanes.order] if v.ndim else v for v in values)
            mask = mask if mask is None else mask[..., lanes.order]
        self.access.memories.stored(index, values, mask)
        index.store(values, mask)

    def atomic(
        self, base: Addresses, mask: Mask | None, *values: Lanes
    ) -> Lanes | tuple[Lanes, ...]:
        """See ``Access``."""
        lanes, site = self.holder.lanes, self.site
        found = None if site.returns or site.has_trace else self._find(base, mask)
        if found is not None:
            home, relative, address = found
            index = self._index(home, relative, lanes, False)
            if in_bulk(self.access.memories, site, index, lanes.shape, mask, values):
                self._notify(home, address, mask, values)
                nothing: Lanes = DTYPES[site.type].type(0)
                return nothing
        on, (base, *given) = self._spread(mask, base, *values)
        results = self.access.atomic(base, on, *given)
        return (
            tuple(map(lanes.gather, results))
            if isinstance(results, tuple)
            else lanes.gather(results)
        )


class CompactLoads:
    """``AllLoads`` for compact lanes; each load resolves its own address."""

    def __init__(self, accesses: Sequence[CompactAccess], whole: AllLoads) -> None:
        self.accesses, self.whole = accesses, whole

    def __call__(self, sites: tuple[int, ...], base: Addresses, mask: Mask | None) -> OneByOne:
        """See ``AllLoads``."""
        self.whole.of(sites).forget()  # what the whole batch does next is no repetition
        return OneByOne([self.accesses[number] for number in sites], base, mask)
