"""Memory accesses as they happen: address to index, checks, and the event for observers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..geometry import Geometry
from ..isa import DTYPES
from ..isa.windows import MIDDLE, WINDOWS
from . import atomics
from .layout import Layout, array_number
from .site import Site
from .spaces import Allocation, ColumnIndex, ColumnMemory, GlobalIndex, Home, MixedIndex

_SHARED, _LOCAL = WINDOWS["shared"], WINDOWS["local"]

Part = tuple[str, Any, Any, Any]
"""Of an access: space, address, mask, and the memory; more than one where lanes differ."""


class Event(NamedTuple):
    """One execution of a memory instruction (one space of it), told before it happens.

    Of an atomic it is told after it happened.

    Attributes:
        site: The instruction.
        space: ``global``, ``shared`` or ``local``.
        address: Byte address within the space, without ``site.offset``; broadcasts to the
            geometry's shape.
        mask: The lanes that access; ``None`` is all of them.
        repeated: Address and mask are the very objects of this site's last event.
        home: The ``Allocation`` or ``ColumnMemory`` accessed.
        values: What a store writes, one array an element; an atomic's operands; else ``None``.
        old: What an atomic found, in the geometry's shape.
    """

    site: Site
    space: str
    address: Any
    mask: Any
    repeated: bool
    home: Any
    values: Any
    old: Any = None


class BadAccess(NamedTuple):
    """Lanes of one access that must not access what they do.

    Attributes:
        kind: ``out-of-bounds``, ``misaligned``, ``address-space`` or ``read-only``.
        relative: Bytes from the start of ``home`` to the address of the first such lane.
        home: What it falls in or next to; ``None`` where there is nothing.
        thread, block: That lane's.
        lanes: How many such lanes there are.
    """

    kind: str
    site: Site
    relative: int
    home: Home | None
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    lanes: int


class Memories:
    """All memory of a launch, and the batch that is running on it.

    Attributes:
        allocations: Global arrays by number.
        told: Called with each access; ``told_bad``: with each bad one.
        writes: Counts what may have changed global or shared memory; ``local_writes``: stores
            to local memory.
        exact: Whether to look if an atomic changes anything; ``watched``: and a store.
        local_start: What bytes of every thread's local memory hold at the start, by address;
            zero if left out.
    """

    def __init__(
        self,
        layout: Layout,
        allocations: dict[int, Allocation],
        shared_bytes: int,
        told: Sequence[Callable[[Event], None]],
        told_bad: Sequence[Callable[[BadAccess], None]],
    ) -> None:
        self.layout, self.allocations, self.shared_bytes = layout, allocations, shared_bytes
        self.told, self.told_bad = told, told_bad
        self.local_start: Mapping[int, int] = {}
        self.writes = self.local_writes = 0
        self.exact = self.watched = False
        self.geometry: Geometry
        self.shared: ColumnMemory
        self.local: ColumnMemory

    def start(self, geometry: Geometry) -> None:
        """Fresh shared and local memory for a batch."""
        self.geometry = geometry
        self.shared = ColumnMemory("shared", self.shared_bytes, (1, 1, 1, geometry.columns))
        self.local = ColumnMemory("local", self.layout.local_bytes, geometry.shape)
        for address, value in self.local_start.items():
            self.local.words[address // 4] |= np.uint32(value << address % 4 * 8).view(np.int32)

    def stored(self, index: Any, values: tuple[Any, ...], mask: Any) -> None:
        """A store is about to happen; while memory is watched, one that changes nothing is none."""
        if index.space == "local":
            self.local_writes += 1
            return
        if self.watched:
            on = np.bool_(True) if mask is None else mask
            if not any(((v != b) & on).any() for v, b in zip(values, index.load(), strict=True)):
                return
        self.writes += 1

    # -- address to index -------------------------------------------------------

    def resolve(self, site: Site, base: Any, mask: Any) -> tuple[Any, list[Part]]:
        """The index of an access, and its events."""
        low, high, bits = _extent(base, None)
        found = self._whole(site, base, mask, low, high, bits)
        if found is None and mask is not None:
            low, high, bits = _extent(base, mask)
            if low > high:  # no lane at all
                return MixedIndex([], site.type, site.count), []
            found = self._whole(site, base, mask, low, high, bits)
        if found is None:
            return self._piecewise(site, base, mask)
        index, space, address = found
        return index, [(space, address, mask, _home(index))]

    def _whole(
        self, site: Site, base: Any, mask: Any, low: int, high: int, bits: int
    ) -> tuple[Any, str, Any] | None:
        """The usual case: every lane in one array or one space, aligned."""
        offset, width = site.offset, site.width
        if (bits | low + offset) & (width - 1):
            return None
        space = site.space
        if space == "generic":
            window = (low + offset) >> 60
            if window != (high + offset) >> 60 or window < 0:
                return None
            space = ("global", "shared", "local", "local")[min(window, 3)]
            if window:
                start = _SHARED if space == "shared" else _LOCAL
                base = base - np.int64(start)
                low, high = low - start, high - start
        if space in ("shared", "local"):
            memory = self.shared if space == "shared" else self.local
            if low + offset < 0 or high + offset + width > memory.nbytes:
                return None
            address = base + np.int64(offset) if offset else base
            return ColumnIndex(memory, address, site.type, site.count), space, base
        allocation = self.allocations.get(array_number(low + offset))
        if allocation is None or low + offset < allocation.base:
            return None
        if high + offset + width > allocation.end:
            return None
        if site.kind != "load" and not allocation.writable:
            return None
        relative = base - np.int64(allocation.base - offset)
        return GlobalIndex(allocation, relative, site.type, site.count), "global", base

    def _piecewise(self, site: Site, base: Any, mask: Any) -> tuple[MixedIndex, list[Part]]:
        """Lanes in different arrays or spaces, and those that are nowhere: hazards."""
        shape = self.geometry.shape
        address = np.broadcast_to(base + np.int64(site.offset), shape)
        left = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, shape).copy()
        parts: list[tuple[Any, Any]] = []
        events: list[Part] = []
        aligned = (address & np.int64(site.width - 1)) == 0
        for home, start, end, make in self._places(site, address, left):
            inside = left & (address >= start) & (address <= end - site.width)
            good = inside & aligned
            if good.any():
                index, space, local = make(address)
                parts.append((good, index))
                events.append((space, local - np.int64(site.offset), good, _home(index)))
            bad = inside & ~aligned
            if bad.any():
                self._report("misaligned", site, address - start, bad, home)
            left &= ~inside
        if left.any():
            self._report_outside(site, address, left)
        return MixedIndex(parts, site.type, site.count), events

    def _places(self, site: Site, address: Any, lanes: Any) -> list[tuple[Home, int, int, Any]]:
        """(memory, start, end, index maker) of each array or space that some lane falls in."""
        found: list[tuple[Home, int, int, Any]] = []

        def column(memory: ColumnMemory, start: int) -> Any:
            def make(a: Any) -> Any:
                local = a - np.int64(start)
                return ColumnIndex(memory, local, site.type, site.count), memory.space, local

            return make

        def flat(allocation: Allocation) -> Any:
            def make(a: Any) -> Any:
                index = GlobalIndex(
                    allocation, a - np.int64(allocation.base), site.type, site.count
                )
                return index, "global", a

            return make

        if site.space in ("shared", "generic"):
            start = _SHARED if site.space == "generic" else 0
            end = start + self.shared.nbytes
            found.append((self.shared, start, end, column(self.shared, start)))
        if site.space in ("local", "generic"):
            start = _LOCAL if site.space == "generic" else 0
            end = start + self.local.nbytes
            found.append((self.local, start, end, column(self.local, start)))
        if site.space not in ("shared", "local"):
            for number in np.unique(array_number(address[lanes])):
                allocation = self.allocations.get(int(number))
                if allocation is None:
                    continue
                if site.kind != "load" and not allocation.writable:
                    inside = lanes & (address >= allocation.base) & (address < allocation.end)
                    if inside.any():
                        relative = address - allocation.base
                        self._report("read-only", site, relative, inside, allocation)
                        lanes &= ~inside
                    continue
                found.append((allocation, allocation.base, allocation.end, flat(allocation)))
        return found

    def _report_outside(self, site: Site, address: Any, lanes: Any) -> None:
        first = int(address[lanes][0])
        window = first >> 60
        home: Home | None
        if site.space in ("shared", "local"):
            kind = "out-of-bounds" if -MIDDLE <= first < MIDDLE else "address-space"
            home, start = self.shared if site.space == "shared" else self.local, 0
        elif window in (1, 2, 3):
            kind = "out-of-bounds" if site.space == "generic" else "address-space"
            home, start = (self.shared, _SHARED) if window == 1 else (self.local, _LOCAL)
        else:
            number = array_number(first)
            kind, home = "out-of-bounds", self.allocations.get(number)
            start = home.base if home else 0
            if home:  # others may be nearer to another array
                rest = lanes & (array_number(address) != number)
                lanes = lanes & ~rest
                if rest.any():
                    self._report_outside(site, address, rest)
        self._report(kind, site, address - start, lanes, home)

    def _report(self, kind: str, site: Site, relative: Any, lanes: Any, home: Home | None) -> None:
        if not self.told_bad:
            return
        first = np.unravel_index(int(np.argmax(lanes)), lanes.shape)
        thread, block = self.geometry.thread_at(tuple(int(i) for i in first))
        count = int(np.count_nonzero(lanes))
        bad = BadAccess(kind, site, int(relative[first]), home, thread, block, count)
        for tell in self.told_bad:
            tell(bad)


def _home(index: Any) -> Home:
    return index.allocation if isinstance(index, GlobalIndex) else index.memory


def _extent(base: Any, mask: Any) -> tuple[int, int, int]:
    """Lowest and highest address of the lanes, and the bits in which any two may differ."""
    if mask is None:
        if base.ndim == 0:
            value = int(base)
            return value, value, value
        flat = base.reshape(-1)
        return (
            int(np.minimum.reduce(flat)),
            int(np.maximum.reduce(flat)),
            int(np.bitwise_or.reduce(flat)),
        )
    shape = np.broadcast_shapes(base.shape, mask.shape)
    chosen = np.broadcast_to(base, shape)[np.broadcast_to(mask, shape)]
    if not chosen.size:
        return 1, 0, 0
    return int(chosen.min()), int(chosen.max()), int(np.bitwise_or.reduce(chosen))


class Access:
    """A site bound to a launch; generated code calls ``load``, ``store`` or ``atomic``."""

    __slots__ = ("base", "events", "index", "mask", "memories", "site", "whole")

    def __init__(self, site: Site, memories: Memories) -> None:
        self.site, self.memories = site, memories
        self.forget()

    def forget(self) -> None:
        """Between batches: the memories are new."""
        self.base: Any = None
        self.mask: Any = None
        self.index: Any = None
        self.events: list[Part] = []
        self.whole = False

    def _look(self, base: Any, mask: Any, values: Any = None) -> None:
        self._tell(self._resolve(base, mask), values)

    def _resolve(self, base: Any, mask: Any) -> bool:
        """Find out where the lanes access; whether it is where they did last time."""
        # Registers are never changed in place: the same object is the same address.
        repeated = base is self.base and mask is self.mask
        if not repeated:
            self.index, self.events = self.memories.resolve(self.site, base, mask)
            self.base, self.mask = base, mask
            self.whole = len(self.events) == 1
        return repeated and self.whole

    def _tell(self, repeated: bool, values: Any, old: Any = None) -> None:
        for space, address, lanes, home in self.events:
            event = Event(self.site, space, address, lanes, repeated, home, values, old)
            for tell in self.memories.told:
                tell(event)

    def load(self, base: Any, mask: Any) -> tuple[Any, ...]:
        """The loaded elements; lanes that are off get anything."""
        self._look(base, mask)
        values: tuple[Any, ...] = self.index.load()
        return values

    def store(self, base: Any, mask: Any, *values: Any) -> None:
        """Write; lanes that are off write nothing."""
        self._look(base, mask, values)
        self.memories.stored(self.index, values, mask)
        self.index.store(values, mask)

    def atomic(self, base: Any, mask: Any, *values: Any) -> Any:
        """Read-modify-write; gives the old values."""
        repeated = self._resolve(base, mask)
        site, index = self.site, self.index
        geometry = self.memories.geometry
        old = np.zeros(geometry.shape, DTYPES[site.type])
        parts = index.parts if isinstance(index, MixedIndex) else [(mask, index)]
        for part, place in parts:
            lanes = part if mask is None or part is mask else part & mask
            chosen = np.broadcast_to(np.bool_(True) if lanes is None else lanes, geometry.shape)
            # In C order of (block, thread): blocks one after the other, threads ascending.
            order = np.flatnonzero(chosen.reshape(geometry.threads, -1).T)
            if not order.size:
                continue
            thread, column = order % geometry.threads, order // geometry.threads
            flat = thread * geometry.columns + column

            def pick(value: Any, flat: Any = flat) -> Any:
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
