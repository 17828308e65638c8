"""All memory of a launch: address resolution, and invalid addresses."""

from collections.abc import Callable, Sequence

import numpy as np

from ..core.geometry import WARP, Addresses, Geometry, Lanes, Mask, as_mask
from ..isa.memory.address_windows import MIDDLE, RANK_BITS, WINDOWS
from .addressing import distributed_shared
from .addressing.address_range import extent, moved, valid
from .addressing.identity_memo import IdentityMemo
from .addressing.lane_index import Index, MixedIndex, place_index
from .event import ADDRESS_SPACE, MISALIGNED, OUT_OF_BOUNDS, READ_ONLY, AccessEvent, BadAccess, Part
from .site import Site
from .storage.heap import Heap
from .storage.layout import HEAP, Layout, array_number
from .storage.spaces import Allocation, Home, InterleavedMemory, PlaceIndex
from .storage.word_ops import unique

_SHARED, _LOCAL = WINDOWS["shared"], WINDOWS["local"]

_ADDS_BITS = (
    "another block's shared memory: there ptxas makes an addition of integers of that of two "
    "floats; use atomics of f16, bf16 or f32, or cas"
)
_Target = tuple[Home, int]
"""A memory, and where it starts among the addresses."""


class UnreachedMemoryError(Exception):
    """A launch accesses memory of a device that it was not thought to reach."""


class AddressSpaces:
    """All memory of a launch, and of the batch that runs.

    Attributes:
        allocations: Global arrays by number.
        heap: Allocator of the device heap.
        access_callbacks: Called with each access.
        bad_access_callbacks: Called with each invalid access.
        bulk_copy_callbacks: Called with source and destination of each bulk copy.
        writes: Number of operations that may have changed global or shared memory.
        local_writes: Number of stores to local memory.
        looked: Called with address, size and lane of memory that system functions read.
        is_unreached: Whether the memory of an array number exists and is none of the launch's.
        exact: Whether an atomic counts as a write only if it changes memory.
        watched: Whether this also goes for stores.
    """

    def __init__(
        self,
        layout: Layout,
        allocations: dict[int, Allocation],
        shared_bytes: int,
        access_callbacks: Sequence[Callable[[AccessEvent], None]],
        bad_access_callbacks: Sequence[Callable[[BadAccess], None]],
    ) -> None:
        self.layout, self.allocations, self.shared_bytes = layout, allocations, shared_bytes
        self.access_callbacks, self.bad_access_callbacks = access_callbacks, bad_access_callbacks
        self.bulk_copy_callbacks: Sequence[Callable[..., None]] = ()
        self.looked: Callable[[int, int, tuple[int, ...]], None] | None = None
        self.is_unreached: Callable[[int], bool] | None = None
        self.heap = Heap(allocations[HEAP]) if HEAP in allocations else None
        self.writes = self.local_writes = 0
        self.exact = self.watched = False
        self.extent = IdentityMemo(lambda base: extent(base, None), moved)
        self.geometry: Geometry
        self.shared: InterleavedMemory
        self.local: InterleavedMemory

    def start(self, geometry: Geometry) -> None:
        """Create shared and local memory for a batch."""
        self.geometry = geometry
        self.extent.start(geometry.moves)
        self.shared = InterleavedMemory("shared", self.shared_bytes, (1, 1, 1, geometry.columns))
        self.local = InterleavedMemory("local", self.layout.local_bytes, geometry.shape)

    def stored(self, index: Index, values: tuple[Lanes, ...], mask: Mask | None) -> None:
        """Note a store; while memory is watched, a silent store does not count."""
        if index.space == "local":
            self.local_writes += 1
            return
        if self.watched:
            on = as_mask(mask)
            if not any(((v != b) & on).any() for v, b in zip(values, index.load(), strict=True)):
                return
        self.writes += 1

    def bytes_at(self, address: int, max_bytes: int, lane: tuple[int, ...]) -> bytes:
        """Return what a lane reads at a generic address, up to the end of the array or space."""
        for window, memory in ((_SHARED, self.shared), (_LOCAL, self.local)):
            column = int(np.broadcast_to(memory.numbers, self.geometry.shape)[lane])
            at = address - window
            if memory is self.shared:
                at, column = distributed_shared.at(self.geometry, at, column)
            if 0 <= at < memory.nbytes:
                words = memory.words[at // 4 : (at + max_bytes) // 4 + 1, column]
                return words.tobytes()[at % 4 :][: min(max_bytes, memory.nbytes - at)]
        return self.param_bytes(address, max_bytes)

    def array_at(self, address: int) -> Allocation | None:
        """Return the global array at an address, if any."""
        return self.allocations.get(array_number(address))

    def param_bytes(self, address: int, max_bytes: int) -> bytes:
        """Return bytes of a global array or of the parameters at an address."""
        home = self.array_at(address)
        at = address - home.base if home else -1
        return home.content()[at : at + max_bytes].tobytes() if home and at >= 0 else b""

    # -- address to index -------------------------------------------------------

    def narrowed(self, site: Site, mask: Mask | None) -> Mask | None:
        """Return the lanes of a mask that access memory."""
        if site.lanes == WARP:
            return mask
        some = self.geometry.lane_ids < site.lanes
        return some if mask is None else mask & some

    def resolve(self, site: Site, base: Addresses, mask: Mask | None) -> tuple[Index, list[Part]]:
        """Return the index of an access, and its events."""
        mask = self.narrowed(site, mask)
        if site.space == "generic":
            base = distributed_shared.plain(self.geometry, base)
        found = self.whole(site, base, *self.extent(base), None)
        if found is None and mask is not None:
            low, high, bits = extent(base, mask)
            if low > high:  # no lane at all
                return MixedIndex([], site.type, site.count), []
            found = self.whole(site, base, low, high, bits, mask)
        if found is None:
            return self._piecewise(site, base, mask)
        home, relative, address = found
        index = place_index(home, relative, site)
        return index, [(index.space, address, mask, home, None)]

    def whole(
        self, site: Site, base: Addresses, low: int, high: int, bits: int, mask: Mask | None
    ) -> tuple[Home, Addresses, Addresses] | None:
        """Return the fast path: every lane in one array or one space, aligned; else ``None``.

        Returns:
            The target, the offsets from its start, and the addresses for the event.
        """
        offset, nbytes = site.offset, site.nbytes
        low, high = low + offset, high + offset
        if (bits | low) & (nbytes - 1):
            return None
        space = site.space
        if space == "generic":
            window = low >> 60
            if window != high >> 60 or window < 0:
                return None
            space = ("global", "shared", "local", "local")[min(window, 3)]
            if window:
                start = WINDOWS[space]
                base = base - np.int64(start)
                low, high = low - start, high - start
        if space in ("shared", "local"):
            memory = self.shared if space == "shared" else self.local
            first, end = (
                site.object_bounds
                if site.object_bounds and memory is self.shared
                else (0, memory.nbytes)
            )
            if low < first or high + nbytes > end:
                return None
            return memory, base + np.int64(offset) if offset else base, base
        allocation = self.allocations.get(array_number(low))
        if allocation is None or low < allocation.base or high + nbytes > allocation.end:
            return None
        if site.access != "load" and not allocation.writable:
            return None
        relative = base - np.int64(allocation.base - offset)
        if allocation.valid is not None and not valid(allocation, relative, nbytes, mask).all():
            return None
        return allocation, relative, base

    def _piecewise(
        self, site: Site, base: Addresses, mask: Mask | None
    ) -> tuple[MixedIndex, list[Part]]:
        """Resolve lanes in different arrays or spaces; report lanes in none."""
        shape = self.geometry.shape
        address = np.broadcast_to(base + np.int64(site.offset), shape)
        pending = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, shape).copy()
        parts: list[tuple[Mask, PlaceIndex]] = []
        events: list[Part] = []
        aligned = (address & np.int64(site.nbytes - 1)) == 0
        astray = np.zeros((), bool)
        if site.far and self.geometry.clusters.size > 1:
            found = distributed_shared.take(
                self.geometry, self.shared, site, address, pending, aligned
            )
            parts, events = found.parts, found.events
            for lanes, _ in parts if site.adds_bits else ():
                self._report(ADDRESS_SPACE, site, found.inside, lanes, self.shared, _ADDS_BITS)
            for nowhere, bad in found.outside:
                where, of = (address, None) if nowhere else (found.inside, self.shared)
                self._report(OUT_OF_BOUNDS, site, where, bad, of)
            if found.misaligned.any():
                self._report(MISALIGNED, site, found.inside, found.misaligned, self.shared)
        for home, start in self._places(site, address, pending):
            inside = pending & (address >= start) & (address <= start + home.nbytes - site.nbytes)
            if isinstance(home, Allocation) and home.valid is not None:
                inside[inside] = valid(home, address - start, site.nbytes, inside)
            good = inside & aligned
            if (
                site.object_bounds and home is self.shared
            ):  # accesses to another variable are reported, and executed
                first, last = (
                    site.object_bounds[0] + start,
                    site.object_bounds[1] + start - site.nbytes,
                )
                astray = good & ((address < first) | (address > last))
            if good.any():
                index, reported = place_index(home, address - np.int64(start), site), address
                if isinstance(home, InterleavedMemory):  # its events have its own addresses
                    reported = address - np.int64(start)
                parts.append((good, index))
                events.append((index.space, reported - np.int64(site.offset), good, home, None))
            bad = inside & ~aligned
            if bad.any():
                self._report(MISALIGNED, site, address - start, bad, home)
            pending &= ~inside
        pending |= astray
        if pending.any():
            self._report_outside(site, address, pending)
        return MixedIndex(parts, site.type, site.count), events

    def _places(self, site: Site, address: Addresses, lanes: Mask) -> list[_Target]:
        """Return the arrays and spaces that lanes access; writes to read-only ones are excluded."""
        found: list[_Target] = []
        for memory in (self.shared, self.local):
            if site.space in (memory.space, "generic"):
                found.append((memory, WINDOWS[memory.space] if site.space == "generic" else 0))
        if site.space not in ("shared", "local"):
            for number in unique(array_number(address[lanes])):
                allocation = self.allocations.get(int(number))
                if allocation is None:
                    continue
                if site.access != "load" and not allocation.writable:
                    inside = lanes & (address >= allocation.base) & (address < allocation.end)
                    if inside.any():
                        relative = address - allocation.base
                        self._report(READ_ONLY, site, relative, inside, allocation)
                        lanes &= ~inside
                    continue
                found.append((allocation, allocation.base))
        return found

    def _report_outside(self, site: Site, address: Addresses, lanes: Mask) -> None:
        first = int(address[lanes][0])
        window = first >> 60
        home: Home | None
        if site.space in ("shared", "local"):
            kind = OUT_OF_BOUNDS if -MIDDLE <= first < MIDDLE else ADDRESS_SPACE
            if site.space == "shared" and 0 < first >> RANK_BITS <= self.geometry.clusters.size:
                kind = ADDRESS_SPACE  # of another block: an H200 stops at an illegal instruction
            home, start = self.shared if site.space == "shared" else self.local, 0
        elif window in (1, 2, 3):
            kind = OUT_OF_BOUNDS if site.space == "generic" else ADDRESS_SPACE
            home, start = (self.shared, _SHARED) if window == 1 else (self.local, _LOCAL)
        else:
            number = array_number(first)
            kind, home = OUT_OF_BOUNDS, self.allocations.get(number)
            if home is None and self.is_unreached and self.is_unreached(number):
                raise UnreachedMemoryError
            start = home.base if home else 0
            if home:  # others may be nearer to another array
                rest = lanes & (array_number(address) != number)
                lanes = lanes & ~rest
                if rest.any():
                    self._report_outside(site, address, rest)
        self._report(kind, site, address - start, lanes, home)

    def bad_lane(
        self, site: Site, address: int, thread: int, column: int, aligned: bool = True,
        what: str = "",
    ) -> None:  # fmt: skip
        """Report the invalid address of one lane: misaligned, or not allocated.

        ``what``: the object at the address in words, if it is of the wrong kind.
        """
        shape = self.geometry.shape
        lanes = np.zeros(shape, bool)
        lanes.reshape(-1, shape[3])[thread, column] = True
        places = np.full(shape, address, np.int64)
        shared = site.space == "shared"
        array = None if shared else self.allocations.get(array_number(address))
        start = array.base if array else 0
        if what:
            self._report(ADDRESS_SPACE, site, places - start, lanes, array, what)
        elif not aligned:
            home = self.shared if shared else array
            self._report(MISALIGNED, site, places - start, lanes, home)
        elif array and site.access != "load" and array.base <= address < array.end:
            self._report(READ_ONLY, site, places - start, lanes, array)
        else:
            self._report_outside(site, places, lanes)

    def _report(
        self, kind: str, site: Site, relative: Addresses, lanes: Mask, home: Home | None,
        what: str = "",
    ) -> None:  # fmt: skip
        if not self.bad_access_callbacks:
            return
        g, first = self.geometry, int(np.argmax(lanes))
        thread, column = divmod(first, g.columns)
        place, count = g.place(thread, int(g.blocks[column])), int(np.count_nonzero(lanes))
        at = int(relative.flat[first])
        low, high = int(relative[lanes].min()), int(relative[lanes].max())
        if self.heap and home is self.heap.array:
            home, at = self.heap.nearest(at)
        bad = BadAccess(kind, site, at, home, *place, count, what, (low, high), lanes)
        for callback in self.bad_access_callbacks:
            callback(bad)
