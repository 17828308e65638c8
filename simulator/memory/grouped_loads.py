"""Grouped loads of shared memory from one base, without an intervening write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ..core.geometry import Addresses, Lanes, Mask
from ..isa import DTYPES
from .access import Access
from .event import AccessEvent
from .memories import AddressSpaces

_AT_ONCE = 1 << 16
"""So many elements are gathered at once; more of them are cheaper one array after the other."""


class Loads:
    """Loads that are looked up and dispatched together at the first of them.

    They also execute together if few lanes are active.

    Args:
        accesses: Loads of one 4-byte element each, all of one type.
        callbacks: Called with the sites and one event for each.
    """

    __slots__ = (
        "_base",
        "_bits",
        "_events",
        "_high",
        "_low",
        "_mask",
        "_offsets",
        "_rows",
        "_shape",
        "_store",
        "accesses",
        "callbacks",
        "memories",
        "sites",
    )  # fmt: skip

    def __init__(
        self,
        accesses: Sequence[Access],
        memories: AddressSpaces,
        callbacks: Sequence[Callable[..., None]],
    ) -> None:
        self.accesses, self.memories, self.callbacks = accesses, memories, callbacks
        self.sites = tuple(access.site for access in accesses)
        starts = [site.offset for site in self.sites]
        self._low, self._high = min(starts), max(starts) + 4
        self._bits = int(np.bitwise_or.reduce(starts))
        self._offsets = (np.array(starts) >> 2)[:, None]
        self.forget()

    def forget(self) -> None:
        """Reset caches between batches."""
        self._base: Addresses | None = None
        self._mask: Mask | None = None
        self._rows: Lanes | None = None

    def __call__(self, base: Addresses, mask: Mask | None) -> Found:
        """Execute the loads; returns results by their numbers."""
        repeated = base is self._base and mask is self._mask
        if not repeated:
            self._base, self._mask = base, mask
            self._check(base)
        if self._rows is None:
            return OneByOne(self.accesses, base, mask)
        if self.callbacks:
            self._notify(repeated)
        if self._rows.size * self._shape[3] > _AT_ONCE:
            return self
        got: Lanes = self._store.take(self._rows.reshape(-1), axis=0, mode="clip")
        return got.reshape(-1, *self._shape)

    def __getitem__(self, number: int) -> Lanes:
        """Return the result of one load."""
        assert self._rows is not None
        got: Lanes = self._store.take(self._rows[number], axis=0, mode="clip")
        return got.reshape(self._shape)

    def _check(self, base: Addresses) -> None:
        """Resolve all loads at once, if every lane is inside and aligned.

        Otherwise each load resolves its own address.
        """
        self._rows, self._events, memory = None, list[AccessEvent](), self.memories.shared
        low, high, bits = self.memories.extent(base)
        inside = low + self._low >= 0 and high + self._high <= memory.nbytes
        is_uniform = base.ndim == 0 or 1 in (base.shape[3], memory.count)
        if not (inside and is_uniform) or (bits | self._bits) & 3:
            for access in self.accesses:  # the last event may have been one of the group
                access.forget()
            return
        self._shape = (*(base.shape[:3] if base.ndim else (1, 1, 1)), memory.count)
        self._rows = (base >> 2).reshape(1, -1) + self._offsets
        self._store = memory.words.view(DTYPES[self.sites[0].type])

    def _notify(self, repeated: bool) -> None:
        if not (self._events and self._events[0].repeated):
            assert self._base is not None
            what = self._base, self._mask, repeated, self.memories.shared, None
            self._events = [AccessEvent(site, "shared", *what) for site in self.sites]
        for callback in self.callbacks:
            callback(self.sites, self._events)


class _Loader(Protocol):
    def load(self, base: Addresses, mask: Mask | None) -> tuple[Lanes, ...]: ...


class OneByOne:
    """Loads that execute one by one, at their own place."""

    __slots__ = ("accesses", "base", "mask")

    def __init__(self, accesses: Sequence[_Loader], base: Addresses, mask: Mask | None) -> None:
        self.accesses, self.base, self.mask = accesses, base, mask

    def __getitem__(self, number: int) -> Lanes:
        """Execute one load."""
        return self.accesses[number].load(self.base, self.mask)[0]


Found = Lanes | Loads | OneByOne
"""What several load, by their numbers."""


class AllLoads:
    """Grouped loads of a launch, by the number of the first site, created on demand."""

    def __init__(
        self,
        accesses: Sequence[Access],
        memories: AddressSpaces,
        callbacks: Sequence[Callable[..., None]],
    ) -> None:
        self.accesses, self.memories, self.callbacks = accesses, memories, callbacks
        self._made: dict[int, Loads] = {}

    def __call__(self, sites: tuple[int, ...], base: Addresses, mask: Mask | None) -> Found:
        """Execute the loads of several sites from one base; generated code calls it."""
        return self.of(sites)(base, mask)

    def of(self, sites: tuple[int, ...]) -> Loads:
        """Return the loads of several sites."""
        made = self._made.get(sites[0])
        if made is None:
            several = [self.accesses[number] for number in sites]
            made = Loads(several, self.memories, self.callbacks)
            self._made[sites[0]] = made
        return made

    def forget(self) -> None:
        """Reset caches between batches."""
        for made in self._made.values():
            made.forget()
