"""Bulk copies: one lane moves many elements, each with an event."""

from dataclasses import dataclass, field

import numpy as np

from ...core.geometry import Flat, Lanes, Mask, as_mask
from ...isa import DTYPES
from .. import atomics
from ..addressing import distributed_shared
from ..event import AccessEvent, LaneAddressList
from ..memories import AddressSpaces
from ..site import Site
from ..storage.layout import array_number
from ..storage.spaces import POISON, Allocation, Home

UNIT = 16
"""Addresses and sizes are multiples of so many bytes (PTX ISA, "cp.async.bulk")."""


@dataclass
class BulkEndpoint:
    """Source or destination of one lane's bulk copy.

    Attributes:
        block: Column of the block whose shared memory it is.
        places: Start of each element in bytes.
        inside: Which elements exist.
        start: Start of the memory.
    """

    site: Site
    thread: int
    column: int
    home: Home
    places: Flat
    inside: Flat
    start: int
    block: int


@dataclass
class BulkTransfer:
    """Source and destination of one lane's bulk copy.

    Attributes:
        thread, column: The lane.
        block: Column of the shared memory on its other side, or the lane's own.
        source, into: Start of each piece of ``size`` bytes, in the sites' spaces.
        filled: Starts of pieces outside of the array, which receive a constant.
    """

    thread: int
    column: int
    block: int
    source: Flat
    into: Flat
    size: int
    filled: Flat = field(default_factory=lambda: np.zeros(0, np.int64))


class BulkCopy:
    """A bulk-copy instruction bound to a launch; generated code calls it."""

    def __init__(self, into: Site, memories: AddressSpaces) -> None:
        assert into.bulk
        self.into, self.source, self.memories = into, into.bulk, memories
        self.dtype = DTYPES[into.type]

    def __call__(self, mask: Mask | None, into: Lanes, source: Lanes, *size: Lanes) -> object:
        """Copy ``size`` bytes for each lane, immediately."""
        g = self.memories.geometry
        lanes = np.nonzero(g.full(as_mask(mask)))
        given = (g.full(value)[lanes].tolist() for value in (into, source, *size))
        sides: list[tuple[BulkEndpoint, BulkEndpoint]] = []
        for thread, column, to, start, count in zip(
            *(a.tolist() for a in lanes), *given, strict=True
        ):
            to, start = to + self.into.offset, start + self.source.offset
            wrong = [(self.into, to)] * (to % UNIT > 0)
            wrong += [(self.source, start)] * (start % UNIT > 0 or count % UNIT > 0)
            if wrong:
                self.memories.bad_lane(*wrong[0], thread, column, aligned=False)
                continue
            steps = np.arange(0, count, self.dtype.itemsize)
            reads = self._side(self.source, start + steps, thread, column)
            writes = self._side(self.into, to + steps, thread, column)
            if reads and writes:
                sides.append((reads, writes))
        self._move(sides)
        return None

    def _side(self, site: Site, places: Flat, thread: int, column: int) -> BulkEndpoint | None:
        """Return the existing elements of one side; report the others."""
        memories = self.memories
        if not len(places):
            return None
        home: Home | None = memories.shared
        start, end, block = 0, memories.shared.nbytes, column
        if site.far:
            at, block = distributed_shared.at(memories.geometry, int(places[0]), column)
            places = places - int(places[0]) + at
        if site.space != "shared":
            home = found = memories.allocations.get(array_number(int(places[0])))
            start, end = (found.base, found.end) if found else (0, 0)
        inside = (places >= start) & (places + self.dtype.itemsize <= end)
        if not inside.all():
            first = int(places[~inside][0])
            memories.bad_lane(site, first, thread, column)
        if home is None:
            return None
        if isinstance(home, Allocation) and site.access != "load" and not home.writable:
            memories.bad_lane(site, int(places[0]), thread, column)
            inside = np.zeros_like(inside)
        return BulkEndpoint(site, thread, column, home, places, inside, start, block)

    def _move(self, sides: list[tuple[BulkEndpoint, BulkEndpoint]]) -> None:
        """Read all elements, then write them."""
        found = [self._read(reads) for reads, _ in sides]
        self._notify([reads for reads, _ in sides], None)
        self._notify([writes for _, writes in sides], found)
        for (_, writes), values in zip(sides, found, strict=True):
            self._write(writes, values[writes.inside])
        if self.memories.bulk_copy_callbacks and sides:
            self._moved([_pieces(reads, writes, self.dtype.itemsize) for reads, writes in sides])
        self.memories.writes += bool(sides)

    def _moved(self, moved: list[BulkTransfer]) -> None:
        """Dispatch source and destination of the transfers."""
        for callback in self.memories.bulk_copy_callbacks:
            callback(self.into, moved)

    def _elements(self, side: BulkEndpoint) -> tuple[Flat, Flat]:
        """Return the memory as elements (shared memory: a copy), and the accessed ones."""
        at = (side.places[side.inside] - side.start) // self.dtype.itemsize
        if isinstance(side.home, Allocation):
            return side.home.view(side.site.type, 1), at
        words: Flat = np.ascontiguousarray(side.home.words[:, side.block])
        elements: Flat = words.view(self.dtype)
        return elements, at

    def _read(self, side: BulkEndpoint) -> Flat:
        elements, at = self._elements(side)
        values: Flat = np.full(len(side.places) * self.dtype.itemsize, POISON, np.uint8).view(
            self.dtype
        )
        values[side.inside] = elements[at]
        return values

    def _write(self, side: BulkEndpoint, values: Flat) -> None:
        if isinstance(side.home, Allocation):
            side.home.change()
        elements, at = self._elements(side)
        if side.site.operation:

            def write(places: Flat, changed: Flat) -> None:
                elements[places] = changed

            how = side.site.operation, side.site.type
            # As in global memory, but that sums of f32 keep subnormals: seen on an H200.
            flushes = side.site.type != "f32"
            atomics.apply(*how, at, (values,), elements.__getitem__, write, is_global=flushes)
        else:
            elements[at] = values
        if not isinstance(side.home, Allocation):
            side.home.words[:, side.block] = elements.view(np.int32)

    def _notify(self, sides: list[BulkEndpoint], values: list[Flat] | None) -> None:
        """Dispatch the accesses of all lanes, by memory."""
        for home in {id(side.home): side.home for side in sides}.values():
            those = [i for i, side in enumerate(sides) if side.home is home]
            site = sides[those[0]].site
            counts = [int(sides[i].inside.sum()) for i in those]
            where = LaneAddressList(
                np.repeat([sides[i].thread for i in those], counts),
                np.repeat([sides[i].column for i in those], counts),
                np.concatenate([sides[i].places[sides[i].inside] for i in those]) - site.offset,
                np.repeat([sides[i].block for i in those], counts),
            )
            away = any(sides[i].block != sides[i].column for i in those)
            copied = values and (np.concatenate([values[i][sides[i].inside] for i in those]),)
            event = AccessEvent(
                site, "cluster" if away else site.space, where, None, False, home, copied or None
            )
            for callback in self.memories.access_callbacks:
                callback(event)


def _pieces(reads: BulkEndpoint, writes: BulkEndpoint, size: int) -> BulkTransfer:
    there = reads.inside & writes.inside
    other = writes if writes.site.space == "shared" else reads
    return BulkTransfer(
        reads.thread, reads.column, other.block, reads.places[there], writes.places[there], size
    )
