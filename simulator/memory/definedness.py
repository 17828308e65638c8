"""V bits of memory: which bits are uninitialised, or were computed from such bits."""

import dataclasses
import functools
from collections.abc import Collection, Sequence

import numpy as np

from ..core.geometry import NO_LANE, Addresses, Flat, Geometry, Lanes, Mask, as_mask
from ..isa import Op
from ..isa.definedness import bits_of, propagate_v_bits
from ..isa.memory.address_windows import WINDOWS
from . import atomics
from .access import Access
from .addressing.lane_index import MixedIndex
from .bulk.bulk_copy import BulkTransfer
from .memories import AddressSpaces
from .site import Site
from .storage.layout import HEAP, Layout, array_number
from .storage.spaces import Allocation
from .stored_bytes import Written

_SHADOWS = 1 << 30
"""Added to a site's number: the number of its access to V bits."""


def shadow_site(site: Site) -> Site:
    """Return the access to the V bits for one to memory; of an atomic it merges both."""
    operation = site.operation and ("exch" if site.operation == "exch" else "or")
    kind = bits_of(site.type)
    number = site.number + _SHADOWS
    return dataclasses.replace(site, number=number, type=kind, operation=operation, returns=True)


class DefinednessMemory:
    """V bits of a launch's memory.

    Args:
        allocations: Initial global memory.
        wanted: Numbers of the sites whose uninitialised reads count as undefined.
        followed: Numbers of the global arrays whose stores are recorded.

    Attributes:
        copied: Ones in bits that were written with undefined values.
        uninitialised: Ones in bits that were never written.
        stores: Sites that stored undefined bits in each global array, by its number.
        printed: Whether undefined bits were printed.
        returned: Whether stored undefined bits were read again.
        written: Written places of ``followed`` arrays.
        readers: For each ``wanted`` site, lanes whose reads count, whatever they read; ``None``:
            all lanes, for uninitialised memory.
        strays: Whether out-of-bounds reads are undefined, and out-of-bounds writes tracked.
    """

    readers: dict[int, Mask] | None = None
    strays = False

    def __init__(
        self, layout: Layout, allocations: dict[int, Allocation], shared_bytes: int,
        wanted: Collection[int], followed: Collection[int] = (),
    ) -> None:  # fmt: skip
        def shadow(uninitialised: bool) -> AddressSpaces:
            made = {number: _shadow(a, uninitialised) for number, a in allocations.items()}
            return AddressSpaces(layout, made, shared_bytes, (), ())

        self.copied, self.uninitialised, self.wanted = shadow(False), shadow(True), wanted
        self.stores: dict[int, set[int]] = {}
        self.returned = self.printed = False
        self.written = {n: Written(np.zeros(allocations[n].nbytes, bool)) for n in followed}

    def accesses(self, sites: Collection[Site], real: AddressSpaces) -> dict[str, object]:
        """Return the callbacks of generated code, by name; ``real``: the memory with the values."""
        self._accesses = [_UndefinedAccess(site, self, real) for site in sites]
        names = ((a, a.stored_v_bits.site) for a in self._accesses)
        return {f"{s.access}_{s.number}": getattr(a, s.access) for a, s in names}

    def frame_cleared(self, lanes: Mask | None, places: Sequence[range]) -> None:
        """Mark bytes of local memory as uninitialised."""
        for memories, fill in ((self.copied, 0), (self.uninitialised, 255)):
            local = memories.local
            on = np.broadcast_to(as_mask(lanes), local.shape).reshape(-1)
            content = local.words.view(np.uint8).reshape(-1, local.count, 4)
            for place in places:
                at = np.arange(place.start, place.stop)[:, None]
                content[at // 4, np.flatnonzero(on), at % 4] = fill

    def bulk_copied(self, into: Site, moved: Sequence[BulkTransfer]) -> None:
        """Propagate V bits through bulk copies; a reduction merges them."""
        assert into.bulk
        wanted = {site.number for site in (into, into.bulk)} & set(self.wanted)
        wanted = wanted if self.readers is None else set()
        for piece in moved:
            nearby = piece.column if into.space == "shared" else piece.block
            source = _Bytes(into.bulk.space, _all_of(piece.source, piece.size), nearby)
            to = _Bytes(into.space, _all_of(piece.into, piece.size), piece.block)
            bits = source.of(self.copied)
            self.returned |= bool(bits.any())
            if into.bulk.number in wanted:
                bits = bits | source.of(self.uninitialised)
            if into.operation:
                bits = bits | to.of(self.copied)
            if into.operation and into.number in wanted:
                bits = bits | to.of(self.uninitialised)
            if bits.any() and into.space == "global":
                self.stores.setdefault(to.array, set()).add(into.number)
            to.put(self.copied, bits)
            if to.array in self.written:
                self.written[to.array].mask[to.places - self.copied.allocations[to.array].base] = (
                    True
                )
            filled = _Bytes(into.space, _all_of(piece.filled, piece.size), piece.block)
            for memories, where in (
                (self.uninitialised, to),
                (self.uninitialised, filled),
                (self.copied, filled),
            ):
                where.put(memories, 0)

    def looked(self, address: int, max_bytes: int, lane: tuple[int, ...]) -> None:
        """Check that printed memory is defined: a number, or a string up to its NUL."""
        self.printed |= any(self.copied.bytes_at(address, max_bytes, lane))

    def start(self, geometry: Geometry) -> None:
        """Begin a batch: shared and local memory are uninitialised."""
        for access in self._accesses:
            access.stored_v_bits.forget()
            access.uninitialised_v_bits.forget()
            access.settled.forget()
        for memories in (self.copied, self.uninitialised):
            memories.start(geometry)
        self.uninitialised.shared.words.fill(-1)
        self.uninitialised.shared.words[: self.uninitialised.layout.reserved // 4] = 0
        self.uninitialised.local.words.fill(-1)


class _Bytes:
    """Bytes of one array, or of a block's shared memory, by its column."""

    def __init__(self, space: str, places: Flat, column: int) -> None:
        self.array = array_number(int(places[0])) if len(places) and space != "shared" else -1
        self.places, self.column = places, column

    def of(self, memories: AddressSpaces) -> Flat:
        """Return the bytes from a memory."""
        if self.array < 0:
            return self._column(memories)[self.places]
        array = memories.allocations[self.array]
        found: Flat = array.content()[self.places - array.base]
        return found

    def put(self, memories: AddressSpaces, value: Flat | int) -> None:
        """Write the bytes to a memory."""
        if self.array >= 0:
            array = memories.allocations[self.array]
            array.content()[self.places - array.base] = value
        elif len(self.places):
            column = self._column(memories)
            column[self.places] = value
            memories.shared.words[:, self.column] = column.view(np.int32)

    def _column(self, memories: AddressSpaces) -> Flat:
        return np.ascontiguousarray(memories.shared.words[:, self.column]).view(np.uint8)


def _all_of(places: Flat, size: int) -> Flat:
    """Expand pieces of ``size`` to their bytes."""
    return (places[:, None] + np.arange(size)).reshape(-1)


def _shadow(array: Allocation, uninitialised: bool) -> Allocation:
    nothing = np.zeros(0, np.uint8)
    made = Allocation(array.number, nothing, array.name, array.writable, array.nbytes)
    made.change()
    if uninitialised and array.number == HEAP:  # whatever is allocated
        made.content().fill(0xFF)
        if array.heap is not None and array.missing is not None and array.valid is not None:
            end = array.heap.end  # what earlier launches wrote there
            made.content()[:end][array.valid[:end] & ~array.missing[:end]] = 0
    elif uninitialised and array.missing is not None:
        made.content()[array.missing] = 0xFF
    return made


class _UndefinedAccess:
    """Access of a site to V bits."""

    def __init__(self, site: Site, memory: DefinednessMemory, real: AddressSpaces) -> None:
        shadow = shadow_site(site)
        self.site, self.real = site, real
        self.number, self.memory, self.wanted = site.number, memory, site.number in memory.wanted
        self.stored_v_bits, self.uninitialised_v_bits = (
            Access(shadow, memory.copied),
            Access(shadow, memory.uninitialised),
        )
        self.settled = Access(dataclasses.replace(shadow, operation="and"), memory.copied)

    def load(self, base: Addresses, mask: Mask | None, *length: Lanes) -> tuple[Lanes, ...]:
        """Return the V bits of loaded values."""
        found = self._read(self.stored_v_bits, base, mask, *length)
        self.memory.returned |= any(bits.any() for bits in found)
        if self.memory.strays and (astray := self._astray(base, mask)) is not None:
            found = tuple(np.where(astray, ~bits.dtype.type(0), bits) for bits in found)
        if self.wanted:
            uninitialised = self._wanted(found, base, mask, *length)
            found = tuple(a | b for a, b in zip(found, uninitialised, strict=True))
        return tuple(bits if bits.any() else bits.dtype.type(0) for bits in found)

    def _wanted(
        self, like: tuple[Lanes, ...], base: Addresses, mask: Mask | None, *length: Lanes
    ) -> tuple[Lanes, ...]:
        """Return the bits that count as undefined because of this read."""
        if self.memory.readers is None:
            return self._read(self.uninitialised_v_bits, base, mask, *length)
        on = self.memory.readers[self.number] & as_mask(mask)
        return tuple(np.where(on, ~bits.dtype.type(0), bits.dtype.type(0)) for bits in like)

    def store(self, base: Addresses, mask: Mask | None, *values: Lanes) -> None:
        """Store V bits."""
        if self.memory.strays and (astray := self._astray(base, mask)) is not None:
            values = tuple(np.where(astray, ~v.dtype.type(0), v) for v in values)
        self.stored_v_bits.store(base, mask, *values)
        self._note(mask, values)
        self.uninitialised_v_bits.store(base, mask, *(value.dtype.type(0) for value in values))

    def _astray(self, base: Addresses, mask: Mask | None) -> Mask | None:
        """Return the lanes out of bounds of all memory, or of the intended shared variables."""
        index, _ = self.memory.copied.resolve(self.stored_v_bits.site, base, mask)
        placed: Mask = as_mask(None)
        if isinstance(index, MixedIndex):
            placed = functools.reduce(np.logical_or, (part for part, _ in index.parts), NO_LANE)
        elif self.site.object_bounds is None:
            return None
        if self.site.object_bounds is not None:
            start = WINDOWS["shared"] if self.site.space == "generic" else 0
            at = base + np.int64(self.site.offset - start)
            placed = placed & (at >= self.site.object_bounds[0]) & (at < self.site.object_bounds[1])
        astray = as_mask(mask) & ~placed
        return astray if astray.any() else None

    def atomic(
        self, base: Addresses, mask: Mask | None, *values: Lanes
    ) -> Lanes | tuple[Lanes, ...]:
        """Return the V bits of an atomic's old value.

        ``values``: V bits of the operands; except for an exchange also the operands.
        """
        values, operands = values[: self.site.count], values[self.site.count :]
        zeros = tuple(value.dtype.type(0) for value in values)
        found = self._read(self.uninitialised_v_bits, base, mask) if self.wanted else zeros
        mixed = self._mixed(base, mask, found, values, operands) if operands else ()
        stored = values
        if self.stored_v_bits.site.operation != "exch":
            stored = tuple(a | b for a, b in zip(values, found, strict=True))
        self.uninitialised_v_bits.store(base, mask, *zeros)
        old = self.stored_v_bits.atomic(base, mask, *stored)
        if self.site.operation in ("and", "or"):  # defined zeros or ones leave nothing undefined
            turned = (x if self.site.operation == "and" else ~x for x in operands)
            self.settled.atomic(base, mask, *(x | a for x, a in zip(turned, values, strict=True)))
        elif mixed:
            self.settled.atomic(base, mask, *zeros)
            self.stored_v_bits.atomic(base, mask, *mixed)
        several = old if isinstance(old, tuple) else (old,)
        found = tuple(a | b for a, b in zip(found, several, strict=True))
        self._note(mask, tuple(a | b for a, b in zip(stored, found, strict=True)))
        return found if len(found) > 1 else found[0]

    def _mixed(
        self, base: Addresses, mask: Mask | None, found: tuple[Lanes, ...],
        values: tuple[Lanes, ...], operands: tuple[Lanes, ...],
    ) -> tuple[Lanes, ...]:  # fmt: skip
        """Return the V bits that an atomic's arithmetic stores; none if everything is defined."""
        copied = self._read(self.stored_v_bits, base, mask)
        shadows = [(a | b, c) for a, b, c in zip(found, copied, values, strict=True)]
        if self.site.operation in ("and", "or") or not any(a.any() or b.any() for a, b in shadows):
            return ()
        kind = self.site.type
        fn = atomics.meaning(self.site.operation, kind, False)
        spreads = propagate_v_bits(Op(fn, (kind, kind), (kind,)))
        index, _ = self.real.resolve(self.site, base, mask)
        return tuple(
            np.asarray(spreads(old, x, *undefined))
            for old, x, undefined in zip(index.load(), operands, shadows, strict=True)
        )

    def _read(
        self, access: Access, base: Addresses, mask: Mask | None, *length: Lanes
    ) -> tuple[Lanes, ...]:
        """Return loaded values; zeros for inactive lanes and invalid addresses."""
        found, index = access.load(base, mask, *length), access.index
        on = as_mask(mask)
        if isinstance(index, MixedIndex):
            on = on & functools.reduce(np.logical_or, (part for part, _ in index.parts), NO_LANE)
        return tuple(np.where(on, bits, bits.dtype.type(0))[()] for bits in found)

    def _note(self, mask: Mask | None, values: tuple[Lanes, ...]) -> None:
        if self.memory.written:
            self._follow()
        if any((as_mask(mask) & (value != 0)).any() for value in values):
            for _, _, _, home, _ in self.stored_v_bits.events:
                if isinstance(home, Allocation):
                    self.memory.stores.setdefault(home.number, set()).add(self.number)

    def _follow(self) -> None:
        """Record the places that the last store or atomic wrote in followed arrays."""
        site, shape = self.site, self.memory.copied.geometry.shape
        for _, address, lanes, home, _ in self.stored_v_bits.events:
            if isinstance(home, Allocation) and home.number in self.memory.written:
                chosen = np.broadcast_to(address, shape)[np.broadcast_to(as_mask(lanes), shape)]
                places = np.unique(chosen.astype(np.int64)) + (site.offset - home.base)
                if places.size:
                    self.memory.written[home.number].add(site, places)
