"""Events of a trace as tables of numbers for the page."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from simulator.compile.probes import Watched
from simulator.core.geometry import WARP
from simulator.isa.control.warp_sync import shuffled
from simulator.isa.decoded import roles
from simulator.observe.counters.banks import bank_passes, distinct_bytes, requests, sectors
from simulator.observe.trace.access_counts import SHARED
from simulator.observe.trace.trace import RELEASE, Batch, Trace, TraceEvent

from .pool import Pool, shrink

FIELDS = ("watched", "mask", "place", "offset", "box", "first", "many", "banks")
"""Columns of the event table.

``first`` and ``many`` select a range of the list of values; -1 stands for an omitted value.
``banks`` depends on the instruction:

- shared memory: wavefronts, conflicts and lanes of a group, for each warp and block;
- global memory: sectors and distinct bytes, for each warp and block;
- a shuffle: the source lane of each thread;
- a vote: the lanes that its mask names;
- a selection: the operand that it takes.

The values of a bulk copy have the form of ``bulk_copy_trace.pieces``."""
_PLACE_SHIFT = 40
"""Bits of an offset: the distance of two arrays in one address space."""

_HALF = ("f16",)


def pack_batch(
    trace: Trace,
    batch: Batch,
    blocks: list[int],
    pool: Pool,
    limit: int,
    kinds: Sequence[tuple[int, int, str]] = (),
    quiet: Collection[int] = (),
) -> Any:
    """Pack one batch into ``pool`` and return its table of events.

    ``taken`` is the number of packed events; ``sectors`` has those of each event by block, or
    ``None`` if it accesses no global memory. The page gets neither.

    Args:
        trace: The recording.
        batch: One of its batches.
        blocks: Linear numbers of the blocks to keep.
        pool: Numbers of the page, which grow.
        limit: Bytes of the pool from which no further event is packed.
        kinds: Shared variables as first byte, byte past the end, and ``f``, ``h``, ``i`` or ``u``.
        quiet: Numbers in ``Program.watched`` of instructions whose values are omitted.
    """
    columns = [batch.blocks.index(block) for block in blocks]
    packer = _Packer(trace, columns, pool, kinds, quiet)
    full, taken = batch.full, 0
    for event in batch.events:
        if pool.nbytes > limit:
            full = True
            break
        packer.add(event)
        taken += 1
    table = np.array(packer.rows, np.int32).reshape(-1, len(FIELDS)).T
    return {
        "blocks": blocks,
        "events": pool.add(np.ascontiguousarray(table)),
        "count": len(packer.rows),
        "recorded": len(batch.events),
        "values": pool.add(np.array(packer.values, np.int32)),
        "boxes": pool.add(np.array(packer.boxes, np.int32).reshape(-1, 6)),
        "full": full,
        "taken": taken,
        "sectors": packer.sectors,
    }


class _Packer:
    """Builder of the event table of one batch."""

    def __init__(
        self, trace: Trace, columns: list[int], pool: Pool, kinds: Sequence[tuple[int, int, str]],
        quiet: Collection[int],
    ) -> None:  # fmt: skip
        self.trace, self.columns, self.pool, self.kinds = trace, columns, pool, kinds
        self.quiet = quiet
        self.extent = trace.block[::-1]
        self.rows: list[tuple[int, ...]] = []
        self.values: list[int] = []
        self.boxes: list[tuple[int, ...]] = []
        self._boxes: dict[tuple[int, ...], int] = {}
        self.halves: set[int] = set()
        self.sectors: list[Any] = []

    def add(self, event: TraceEvent) -> None:
        """Add an event, unless none of the kept blocks takes part."""
        self.sectors.append(None)
        mask = self.crop(event.mask)
        if mask is not None and not mask.any():
            return
        low, high = self.box(mask)
        if mask is not None:
            mask = self.cut(mask, low, high)
            mask = None if mask.all() else self.pool.add(shrink(mask))
        key = (*low, *high)
        if key not in self._boxes:
            self._boxes[key] = len(self.boxes)
            self.boxes.append(key)
        place = offset = banks = -1
        first = len(self.values)
        every = self.trace.program.watched or []
        watched = None if event.watched == RELEASE else every[event.watched]
        if watched and watched.what == "copy":
            place, offset, *numbers = (
                self.pool.add(self.crop(array).astype(np.int32))
                for array in (event.place, event.offset, *event.values)
            )
            self.values += numbers
        elif watched:
            if event.offset is not None:
                place = self.reduced(event.place.astype(np.int32), low, high)
                bounded = np.clip(event.offset, -1, 2**31 - 1).astype(np.int32)
                offset = self.reduced(bounded, low, high)
                banks = self.banks(event, watched)
            values = event.values
            if watched.results and len(values) > len(watched.results):
                asked = values[len(watched.results) :]  # lanes that the instruction names
                values = values[: len(watched.results)]
                if roles(watched.instruction).row.shuffles:
                    lanes = self.lanes(watched, *asked)
                elif watched.step and watched.step.op.selects:
                    lanes = np.where(asked[0], 0, 1).astype(np.int8)
                else:
                    lanes = asked[0].view(np.uint32)
                banks = self.reduced(lanes, low, high)
            # The running sums of a warpgroup's product would fill the page; its stores have them.
            if event.watched in self.quiet or roles(watched.instruction).row.warpgroup:
                self.values += [-1] * len(values)
                values = ()
            for value in values:
                value, halves = self.typed(value, watched, event)
                self.values.append(self.reduced(value, low, high, halves))
        self.rows.append(
            (
                event.watched, -1 if mask is None else mask, place, offset,
                self._boxes[key], first, len(self.values) - first, banks,
            )
        )  # fmt: skip

    def crop(self, value: Any) -> Any:
        """Return a register's values of the kept blocks."""
        if value is None or value.ndim == 0 or value.shape[3] == 1:
            return value
        return value[..., self.columns]

    def box(self, mask: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the smallest box of active threads: first (z, y, x), and the one past the end."""
        low, high = [0, 0, 0], list(self.extent)
        if mask is not None and mask.ndim:
            for axis in range(3):
                if mask.shape[axis] > 1:
                    others = tuple(a for a in range(4) if a != axis)
                    on = np.flatnonzero(mask.any(axis=others))
                    low[axis], high[axis] = int(on[0]), int(on[-1]) + 1
        return tuple(low), tuple(high)

    def cut(self, value: Any, low: tuple[int, ...], high: tuple[int, ...]) -> Any:
        """Return a register's values inside a box of threads."""
        if value.ndim == 0:
            return value
        parts = [
            slice(a, b) if size > 1 else slice(None)
            for a, b, size in zip(low, high, value.shape[:3], strict=True)
        ]
        return value[tuple(parts)]

    def reduced(
        self, value: Any, low: tuple[int, ...], high: tuple[int, ...], halves: bool = False
    ) -> int:
        """Add a register's values to the pool; ``halves``: each word is two values of 16 bits."""
        return self.pool.add(shrink(self.cut(self.crop(value), low, high)), halves)

    def banks(self, event: TraceEvent, watched: Watched) -> int:
        """Add an access's figures of the counters to the pool, ``(2 or 3, warps, blocks)``."""
        shared, site = event.place == SHARED, watched.site
        if site is None or (event.place < SHARED).any():
            return -1
        there, address = event.place >= SHARED, event.offset
        if shared.any():
            there = shared
        else:
            address = address + (event.place.astype(np.int64) << _PLACE_SHIFT)
        parts = (address, there, True if event.mask is None else event.mask)
        full = [np.asarray(self.crop(np.asarray(part))) for part in parts]
        columns = max(part.shape[3] if part.ndim else 1 for part in full)
        shape = (*self.extent, columns)
        address, there, on = (np.broadcast_to(part, shape).reshape(-1, columns) for part in full)
        warps = -(-len(address) // WARP)
        lanes = requests(address, there & on)
        if shared.any():
            figures = np.stack(bank_passes(lanes, site.nbytes, site.access == "load"))
        else:
            lanes.sort()
            figures = np.stack((sectors(lanes), distinct_bytes(lanes, site.nbytes)))
        figures = figures.reshape(1, len(figures), warps, columns)
        if not shared.any():
            self.sectors[-1] = figures[0, 0].sum(axis=0)
        return self.pool.add(shrink(figures.astype(np.uint16)))

    def lanes(self, watched: Watched, b: Any, c: Any) -> Any:
        """Return the lane from which each thread receives a shuffled value."""
        z, y, x = self.extent
        lane = (np.arange(z * y * x) % WARP).astype(np.int32).reshape(z, y, x, 1)
        source, inside = shuffled(watched.instruction, lane, b, c)
        return np.where(inside, source, lane).astype(np.int8)

    def typed(self, value: Any, watched: Watched, event: TraceEvent) -> tuple[Any, bool]:
        """Return a value in the type of its memory: PTX often moves floats as untyped bits."""
        types = watched.instruction.types
        if types and types[-1] in _HALF and value.dtype == np.int16:
            return value.view(np.float16), False
        site = watched.site
        if site is None or event.place is None or event.place.ndim or value.dtype.kind not in "iu":
            return value, False
        if value.dtype.itemsize == 4 and watched.instruction.line in self.halves:
            return value.view(np.uint32), True  # an asynchronous copy writes the words that it read
        dtype = self.dtype(int(event.place), int(event.offset.min()), value.dtype)
        if dtype.kind == "f" and (dtype.itemsize, value.dtype.itemsize) == (2, 4):
            if roles(watched.instruction).row.asynchronous:
                self.halves.add(watched.instruction.line)
            return value.view(np.uint32), True
        return value.view(dtype) if dtype.itemsize == value.dtype.itemsize else value, False

    def dtype(self, place: int, offset: int, plain: Any) -> Any:
        """Return the element type of memory, from the argument or declaration; else ``plain``."""
        found = self.trace.maps.get(place)
        if found is not None and found.is_typed and found.dtype.kind in "fiu":
            return found.dtype
        for start, end, kind in self.kinds if place == SHARED else ():
            if start <= offset < end and kind == "h":
                return np.dtype(np.float16)
            if start <= offset < end and (kind != "f" or plain.itemsize >= 4):
                return np.dtype(f"{kind}{plain.itemsize}")
        return plain
