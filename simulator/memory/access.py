"""Memory accesses: the event is dispatched first, then the access takes place."""

import dataclasses

import numpy as np

from ..core.geometry import Addresses, Flat, Lanes, Mask, as_mask
from ..isa import DTYPES
from . import atomics
from .addressing.lane_index import Index, MixedIndex
from .event import AccessEvent, Part
from .memories import AddressSpaces
from .site import Site
from .storage.spaces import GlobalIndex

_NOWHERE = MixedIndex([], "b32", 0)


class Access:
    """A site bound to a launch; generated code calls ``load``, ``store`` or ``atomic``."""

    __slots__ = ("again", "base", "events", "index", "mask", "memories", "site", "whole")

    def __init__(self, site: Site, memories: AddressSpaces) -> None:
        self.site, self.memories = site, memories
        self.forget()

    def forget(self) -> None:
        """Reset caches between batches, whose memories are new."""
        self.base: Addresses | None = None
        self.mask: Mask | None = None
        self.index: Index = _NOWHERE
        self.events: list[Part] = []
        self.whole = False
        self.again: AccessEvent | None = None

    def _check(
        self, base: Addresses, mask: Mask | None, values: tuple[Lanes, ...] | None = None
    ) -> None:
        self._notify(self._resolve(base, mask), values)

    def _resolve(self, base: Addresses, mask: Mask | None) -> bool:
        """Resolve the lanes' addresses; return whether they are those of the last execution."""
        # Registers are never changed in place: the same object is the same address.
        repeated = base is self.base and mask is self.mask
        if not repeated:
            self.index, self.events = self.memories.resolve(self.site, base, mask)
            self.base, self.mask = base, mask
            self.whole, self.again = len(self.events) == 1, None
        return repeated and self.whole

    def _notify(
        self, repeated: bool, values: tuple[Lanes, ...] | None, old: tuple[Lanes, ...] | None = None
    ) -> None:
        for space, address, lanes, home, columns in self.events:
            event = AccessEvent(
                self.site, space, address, lanes, repeated, home, values, old, columns
            )
            for callback in self.memories.access_callbacks:
                callback(event)

    def load(
        self, base: Addresses, mask: Mask | None, length: Lanes | None = None
    ) -> tuple[Lanes, ...]:
        """Return the loaded elements; values of inactive lanes are unspecified.

        ``length``: number of loaded bytes; the others are zero.
        """
        if length is not None:
            return self._load_some(base, mask, length)
        if not self._resolve(base, mask):
            self._notify(False, None)
        elif self.memories.access_callbacks:
            # A load that repeats its addresses has an equal event: made once, it takes
            # half a microsecond less each time.
            if self.again is None:
                space, address, lanes, home, columns = self.events[0]
                self.again = AccessEvent(
                    self.site, space, address, lanes, True, home, None, None, columns
                )
            for callback in self.memories.access_callbacks:
                callback(self.again)
        return self.index.load()

    def _load_some(self, base: Addresses, mask: Mask | None, length: Lanes) -> tuple[Lanes, ...]:
        """Load whole elements at once, partial ones byte by byte."""
        site, full = self.site, length >= self.site.nbytes
        if full.all():
            return self.load(base, mask)
        whole = as_mask(mask) & full
        self._check(base, whole)
        found = [np.where(whole, value, value.dtype.type(0)) for value in self.index.load()]
        part = as_mask(mask) & (length < site.nbytes)
        for at in range(int(np.max(np.where(part, length, 0), initial=0))):
            lanes = part & (length > at)
            byte = dataclasses.replace(site, type="u8", count=1, offset=site.offset + at)
            index, self.events = self.memories.resolve(byte, base, lanes)
            self._notify(False, None)
            value = np.where(lanes, index.load()[0], np.uint8(0)).astype(np.uint32)
            word, shift = divmod(at, 4)
            found[word] = found[word] | (value << np.uint32(8 * shift)).view(np.int32)
        self.base = None
        return tuple(found)

    def store(self, base: Addresses, mask: Mask | None, *values: Lanes) -> None:
        """Store values of active lanes."""
        self._check(base, mask, values)
        mask = self.memories.narrowed(self.site, mask)
        self.memories.stored(self.index, values, mask)
        self.index.store(values, mask)

    def atomic(
        self, base: Addresses, mask: Mask | None, *values: Lanes
    ) -> Lanes | tuple[Lanes, ...]:
        """Perform an atomic; return the old values, one array for each element of a vector.

        The result is zero if nothing reads it.
        """
        repeated = self._resolve(base, mask)
        site, index = self.site, self.index
        shape = self.memories.geometry.shape
        if not (site.returns or site.has_trace) and in_bulk(
            self.memories, site, index, shape, mask, values
        ):
            self._notify(repeated, values)
            nothing: Lanes = DTYPES[site.type].type(0)
            return nothing
        geometry = self.memories.geometry
        vector = (site.count,) if site.count > 1 else ()
        old = np.zeros((*geometry.shape, *vector), DTYPES[site.type])
        parts = index.parts if isinstance(index, MixedIndex) else [(mask, index)]
        for part, place in parts:
            lanes = part if part is None or mask is None or part is mask else part & mask
            chosen = geometry.full(as_mask(lanes))
            # In C order of (block, thread): blocks one after the other, threads ascending.
            order = np.flatnonzero(chosen.T)
            if not order.size:
                continue
            thread, column = order % geometry.threads, order // geometry.threads
            flat = thread * geometry.columns + column

            def pick(first: int, flat: Flat = flat) -> Flat:
                parts = [
                    geometry.full(value).reshape(-1)[flat]
                    for value in values[first : first + site.count]
                ]
                return np.stack(parts, -1) if vector else parts[0]

            everywhere = np.ones(geometry.shape, bool)
            where = place.positions(geometry.shape, everywhere)[flat]
            is_global = place.space == "global"
            before = place.read(where) if self.memories.exact else None
            operands = tuple(map(pick, range(0, len(values), site.count)))
            previous = atomics.apply(
                site.operation, site.type, where, operands, place.read, place.write, is_global
            )
            old.reshape(-1, *vector)[flat] = previous
            if before is None or (previous != before).any() or (place.read(where) != before).any():
                self.memories.writes += 1
        several = tuple(old[..., i] for i in range(site.count)) if vector else (old,)
        self._notify(repeated, values, several)
        return several if vector else old


def in_bulk(
    memories: AddressSpaces, site: Site, index: Index, shape: tuple[int, ...], mask: Mask | None,
    values: tuple[Lanes, ...],
) -> bool:  # fmt: skip
    """Perform an atomic on all lanes at once, if possible; return whether it was."""
    operation = atomics.in_bulk(site.operation, site.type)
    if operation is None or site.count > 1 or isinstance(index, MixedIndex):
        return False
    if index.space != "global" and site.size > 4:
        return False  # its words lie apart
    lanes = np.broadcast_to(as_mask(mask), shape)
    where = index.positions(shape, lanes)
    if not where.size:
        return True
    if isinstance(index, GlobalIndex):
        index.allocation.change()
        view = index.view
    else:
        view = index.memory.flat.view(index.dtype)
    operand = np.broadcast_to(values[0], shape)[lanes]
    before = view[where] if memories.exact else None
    operation.at(view, where, operand)
    if before is None or atomics.changes(site.operation, operand, before, view[where]):
        memories.writes += 1
    return True
