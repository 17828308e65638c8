"""``Trace``: what each instruction of a run read, wrote and computed, as it happened.

Recorded are accesses of memory, what is computed from loaded data, and barriers, in the
simulator's own shapes (``geometry.py``): an address that is the same along a row of threads
is one number a row. Counts of every element's reads and writes are of all blocks; single
steps are of some blocks only, which ``Trace.batches`` names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from kernels import Kernel
from kernels.arguments.convert import Arguments

from ...compile.probes import Watched
from ...compile.program import Program
from ...core.geometry import WARP, Addresses, Geometry, Lanes, Mask, as_mask
from ...events import Observer
from ...isa.memory.address_windows import RANK_BITS, WINDOWS
from ...memory import atomics
from ...memory.addressing import distributed_shared
from ...memory.bulk.bulk_copy import BulkTransfer
from ...memory.site import PHASE, Site
from ...memory.storage.layout import HEAP, array_address, array_number
from ...memory.storage.spaces import Allocation
from ...memory.storage.word_ops import unique
from .access_counts import LOCAL, NOWHERE, SHARED, ArrayMap, element_type, pointed_types
from .bulk_copy_trace import pieces

RELEASE = -1
"""Stands for an instruction's number where a barrier lets threads go."""

_SAMPLE = 16
_BYTES = 256 << 20
_EVENTS = 200_000


class TraceEvent(NamedTuple):
    """One execution of an instruction by some threads of the recorded blocks.

    Attributes:
        watched: Number in ``Program.watched``, or ``RELEASE``.
        mask: The threads, as a register's shape; ``None`` is all of them.
        place: Of an access: the global array's number, ``SHARED``, ``LOCAL`` or ``NOWHERE``;
            an array where threads differ.
        offset: Of an access: byte offset in that place; of threads that are off anything.
        values: What was loaded, stored or computed: see ``Watched.outputs``; of an atomic at the
            end what each lane left in memory. Of a copy in bulk all three are as
            ``bulk_copy_trace.pieces`` has them.
    """

    watched: int
    mask: Mask | None
    place: Any
    offset: Any
    values: tuple[Lanes, ...]


@dataclass
class Batch:
    """Blocks that ran together, and what happened in them.

    Attributes:
        blocks: Linear numbers of the recorded blocks; the last axis of the events' arrays.
        full: Whether recording ended before the run did.
    """

    blocks: list[int]
    events: list[TraceEvent] = field(default_factory=list)
    full: bool = False


class Trace(Observer):
    """Records a run: ``simulator.launch(..., trace=True)``, then ``run.trace``.

    Args:
        blocks: Which blocks to record step by step: their linear numbers, or how many
            (spread over the grid, the first and the last among them).
        max_bytes: Memory for recorded values; recording of steps ends there.

    Attributes:
        given: What the launch was given besides kernel, grid and block, arrays as they were
            before it: what ``predict`` takes.
    """

    given: Mapping[str, object] = MappingProxyType({})

    def __init__(self, blocks: Collection[int] | int = _SAMPLE, max_bytes: int = _BYTES) -> None:
        self.wanted, self.max_bytes = blocks, max_bytes
        self.kernel: Kernel
        self.program: Program
        self.geometry: Geometry

    def begin(
        self,
        kernel: Kernel,
        program: Program,
        shape: tuple[tuple[int, int, int], tuple[int, int, int]],
        allocations: dict[int, Allocation],
        arguments: Arguments,
    ) -> None:
        """Begin a launch, perhaps over again, with an empty record."""
        self.kernel, self.program = kernel, program
        self.grid, self.block = shape
        self.blocks = self.grid[0] * self.grid[1] * self.grid[2]
        self.batches: list[Batch] = []
        self.maps: dict[int, ArrayMap] = {}
        self.allocations = allocations
        self._watched = program.watched or []
        self._bytes = self._events = 0
        self._moved: list[tuple[Site, BulkTransfer]] = []
        if isinstance(self.wanted, int):
            spread = np.linspace(0, self.blocks - 1, min(self.wanted, self.blocks))
            self.sampled = {int(n) for n in spread.round()}
        else:
            self.sampled = set(self.wanted)
        element_types = pointed_types(kernel, arguments)
        for number, allocation in allocations.items():
            if number == HEAP:
                continue
            given = arguments.arrays[number] if number < len(arguments.arrays) else None
            if given is None:
                known = element_type(kernel, program, number)
            else:
                known = element_types.get(number, given.dtype)
            if known is not None and allocation.nbytes % known.itemsize:
                known = None
            dtype = np.dtype(np.uint8) if known is None else known
            count = allocation.nbytes // max(1, dtype.itemsize)
            shape_ = (count,) if given is None or number in element_types else given.shape
            self.maps[number] = ArrayMap(
                number, allocation.name, dtype, shape_, allocation.content().copy(),
                np.zeros(count, np.int64), np.zeros(count, np.int64),
                np.full(count, -1, np.int64), given is not None, known is not None,
            )  # fmt: skip

    def start(self, geometry: Geometry) -> None:
        """Begin a batch of blocks."""
        self.geometry = geometry
        numbers = geometry.blocks.tolist()
        self._columns = [i for i, n in enumerate(numbers) if n in self.sampled]
        self._whole = len(self._columns) == len(numbers)
        self.batch = Batch([numbers[i] for i in self._columns])
        if self._columns:
            self.batches.append(self.batch)
        self._threads = geometry.thread_ids + geometry.blocks * np.int64(geometry.threads)

    def merge(self, other: Trace) -> None:
        """See ``Observer``; each has recorded as many bytes as it may."""
        self.batches += other.batches
        for number, found in self.maps.items():
            theirs = other.maps[number]
            found.reads += theirs.reads
            found.writes += theirs.writes
            found.owner = np.where(theirs.owner < 0, found.owner, theirs.owner)

    def end(self) -> None:
        """See ``Observer``."""
        for number, found in self.maps.items():
            found.after = self.allocations[number].content().copy()
        del self.allocations, self.geometry

    # -- recording --------------------------------------------------------------

    def traced(self, number: int, mask: Mask | None, base: Addresses, *values: Lanes) -> None:
        """See ``Observer``."""
        if mask is not None and not mask.any():
            return
        if mask is not None and mask.ndim == 0:
            mask = None
        place = offset = None
        watched = self._watched[number]
        if watched.what == "copy":
            if self._columns and self._moved:
                place, offset, values = pieces(self._moved, self.geometry.columns)
                self._keep(TraceEvent(number, mask, place, offset, values))
            self._moved = []
            return
        if watched.site is not None:
            if watched.site.lanes < WARP:
                mask = as_mask(mask) & (self.geometry.lane_ids < watched.site.lanes)
            place, offset = self._locate(watched, base, mask)
            site = watched.site
            some = mask
            if site.access == "load" and len(values) > site.count:  # a copy that may read less
                some = as_mask(mask) & (values[-1] > 0)
            self._count(watched, place, offset, some)
            if site.access == "atomic" and site.operation != PHASE and self._columns:
                parts = values[: site.count], values[site.count :]
                values += tuple(atomics.stored_values(site, *parts, bool((place >= 0).all())))
        if self._columns:
            self._keep(TraceEvent(number, mask, place, offset, values))

    def bulk_copied(self, site: Site, moved: Sequence[BulkTransfer]) -> None:
        """See ``Observer``."""
        self._moved = [(site, piece) for piece in moved]
        for one in moved:
            for access, places in (("load", one.source), ("store", one.into)):
                number = int(array_number(places[0])) if len(places) else NOWHERE
                if number in self.maps and int(places[0]) >> 60 == 0:
                    block = int(self.geometry.blocks[one.column])
                    who = one.thread + block * self.geometry.threads
                    self.maps[number].copied(places, one.size, who, access)

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``."""
        if self._columns:
            self._keep(TraceEvent(RELEASE, lanes, None, None, ()))

    def _keep(self, event: TraceEvent) -> None:
        if self.batch.full:
            return
        mask = self._crop(event.mask)
        if mask is not None and not mask.any():
            return
        values = tuple(self._crop(value) for value in event.values)
        recorded = TraceEvent(
            event.watched, mask, self._crop(event.place), self._crop(event.offset), values
        )
        self.batch.events.append(recorded)
        self._events += 1
        self._bytes += sum(v.nbytes for v in (mask, recorded.offset, *values) if v is not None)
        if self._bytes > self.max_bytes or self._events > _EVENTS:
            self.batch.full = True

    def _crop(self, value: Any) -> Any:
        """Return the recorded blocks' part of a register."""
        if self._whole or value is None or value.ndim == 0 or value.shape[3] == 1:
            return value
        return value[..., self._columns]

    def _locate(
        self, watched: Watched, base: Addresses, mask: Mask | None
    ) -> tuple[Lanes, Addresses]:
        """Place and byte offset of an access."""
        site = watched.site
        assert site is not None
        address = base + np.int64(site.offset)
        if site.space in ("shared", "local"):
            near = np.int64(SHARED if site.space == "shared" else LOCAL)
            return cast(Lanes, near), address
        address = distributed_shared.plain(
            self.geometry, address
        )  # of a cluster's other blocks nothing is drawn
        if mask is None or address.ndim == 0:
            known = address
        else:
            known = np.broadcast_to(address, np.broadcast_shapes(address.shape, mask.shape))
            known = known[np.broadcast_to(mask, known.shape)]
        places = _places(known.min()), _places(known.max())
        if places[0] == places[1]:
            return places[0], address - _start(places[0])
        place = _places(address)
        return place, address - _start(place)

    def _count(self, watched: Watched, place: Lanes, offset: Addresses, mask: Mask | None) -> None:
        """Add an access to the counts of the elements it touches."""
        if place.ndim:
            for number in unique(place).tolist():
                here = place == number
                lanes = here if mask is None else here & mask
                if lanes.any():
                    self._count(watched, cast(Lanes, np.int64(number)), offset, lanes)
            return
        found = self.maps.get(int(place))
        if found is None or not found.reads.size:
            return
        shapes = [offset.shape] + ([mask.shape] if mask is not None else [])
        shape = np.broadcast_shapes((1, 1, 1, 1), *shapes)
        where = np.broadcast_to(offset, shape)
        weight = self.geometry.lanes // where.size
        chosen = where.reshape(-1) if mask is None else where[np.broadcast_to(mask, shape)]
        site = watched.site
        assert site is not None
        if site.access != "load":
            full = np.broadcast_to(where, self.geometry.shape)
            on = np.broadcast_to(np.bool_(True) if mask is None else mask, full.shape)
            threads, written = self._threads[on], full[on]
        for byte in range(0, site.nbytes, min(found.size, site.nbytes)):
            found.count((chosen + byte) // found.size, weight, site.access)
            if site.access != "load":
                found.own((written + byte) // found.size, threads)


def _places(address: Addresses) -> Lanes:
    """Return the place of generic addresses."""
    window, array = address >> np.int64(60), array_number(address)
    near = (window == 1) & (address - WINDOWS["shared"] >> RANK_BITS <= 0)
    other = np.where(near, SHARED, np.where((window == 2) | (window == 3), LOCAL, NOWHERE))
    return np.where((window == 0) & (array >= 0), array, other)[()]


def _start(place: Any) -> Addresses:
    """Return the generic address at which a place begins."""
    space = np.where(place == SHARED, WINDOWS["shared"], WINDOWS["local"])
    array = array_address(place)
    return np.where(place >= 0, array, np.where(place == NOWHERE, 0, space))[()]
