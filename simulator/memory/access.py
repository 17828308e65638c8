"""Memory accesses as they happen: each is told, then done."""

import numpy as np

from ..geometry import Addresses, Flat, Lanes, Mask, as_mask
from ..isa import DTYPES
from . import atomics
from .event import Event
from .memories import Memories, Part
from .site import Site
from .spaces import Index, MixedIndex

_NOWHERE = MixedIndex([], "b32", 0)


class Access:
    """A site bound to a launch; generated code calls ``load``, ``store`` or ``atomic``."""

    __slots__ = ("base", "events", "index", "mask", "memories", "site", "whole")

    def __init__(self, site: Site, memories: Memories) -> None:
        self.site, self.memories = site, memories
        self.forget()

    def forget(self) -> None:
        """Between batches: the memories are new."""
        self.base: Addresses | None = None
        self.mask: Mask | None = None
        self.index: Index = _NOWHERE
        self.events: list[Part] = []
        self.whole = False

    def _look(
        self, base: Addresses, mask: Mask | None, values: tuple[Lanes, ...] | None = None
    ) -> None:
        self._tell(self._resolve(base, mask), values)

    def _resolve(self, base: Addresses, mask: Mask | None) -> bool:
        """Find out where the lanes access; whether it is where they did last time."""
        # Registers are never changed in place: the same object is the same address.
        repeated = base is self.base and mask is self.mask
        if not repeated:
            self.index, self.events = self.memories.resolve(self.site, base, mask)
            self.base, self.mask = base, mask
            self.whole = len(self.events) == 1
        return repeated and self.whole

    def _tell(
        self, repeated: bool, values: tuple[Lanes, ...] | None, old: Lanes | None = None
    ) -> None:
        for space, address, lanes, home in self.events:
            event = Event(self.site, space, address, lanes, repeated, home, values, old)
            for tell in self.memories.told:
                tell(event)

    def load(self, base: Addresses, mask: Mask | None) -> tuple[Lanes, ...]:
        """The loaded elements; lanes that are off get anything."""
        self._look(base, mask)
        return self.index.load()

    def store(self, base: Addresses, mask: Mask | None, *values: Lanes) -> None:
        """Write; lanes that are off write nothing."""
        self._look(base, mask, values)
        self.memories.stored(self.index, values, mask)
        self.index.store(values, mask)

    def atomic(self, base: Addresses, mask: Mask | None, *values: Lanes) -> Lanes:
        """Read-modify-write; gives the old values."""
        repeated = self._resolve(base, mask)
        site, index = self.site, self.index
        geometry = self.memories.geometry
        old = np.zeros(geometry.shape, DTYPES[site.type])
        parts = index.parts if isinstance(index, MixedIndex) else [(mask, index)]
        for part, place in parts:
            lanes = part if part is None or mask is None or part is mask else part & mask
            chosen = np.broadcast_to(as_mask(lanes), geometry.shape)
            # In C order of (block, thread): blocks one after the other, threads ascending.
            order = np.flatnonzero(chosen.reshape(geometry.threads, -1).T)
            if not order.size:
                continue
            thread, column = order % geometry.threads, order // geometry.threads
            flat = thread * geometry.columns + column

            def pick(value: Lanes, flat: Flat = flat) -> Flat:
                return np.broadcast_to(value, geometry.shape).reshape(-1)[flat]

            everywhere = np.ones(geometry.shape, bool)
            where = place.positions(geometry.shape, everywhere)[flat]
            is_global = place.space == "global"
            before = place.read(where) if self.memories.exact else None
            seen = atomics.apply(
                site.operation, site.type, where, tuple(pick(v) for v in values),
                place.read, place.write, is_global,
            )  # fmt: skip
            old.reshape(-1)[flat] = seen
            if before is None or (seen != before).any() or (place.read(where) != before).any():
                self.memories.writes += 1
        self._tell(repeated, values, old)
        return old
