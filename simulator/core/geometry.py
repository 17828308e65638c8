"""Geometry of a batch: threads and blocks as array axes, lanes and warps as views.

A register is a NumPy scalar or an array that broadcasts to ``(Z, Y, X, B)``: the block's threads by
coordinate, then the batch's blocks, contiguous. The names of the array types below state the shape;
scalars have the name of the array that they represent.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kernels.ptx.module import Instruction

from .address_deltas import AddressDeltas
from .clusters import Clusters, coordinates

Shape = tuple[int, int, int, int]
WARP, GROUP = 32, 128  # threads of a warp, of a warpgroup

Lanes = NDArray[Any]
"""A value for each lane, a register's: broadcasts to ``(Z, Y, X, B)``."""
Mask = NDArray[np.bool_]
"""Which lanes: broadcasts to ``(Z, Y, X, B)``. ``None`` in place of a mask: every lane."""
Addresses = NDArray[np.int64]
"""A byte address for each lane: broadcasts to ``(Z, Y, X, B)``."""
Rows = NDArray[Any]
"""A row a thread or a warp: ``(threads or warps, blocks or 1)``; ``by_warp``: lanes between."""
Flat = NDArray[Any]
"""One-dimensional: an element for each access, pair, thread or location picked out."""

EVERY_LANE = cast(Mask, np.bool_(True))
NO_LANE = cast(Mask, np.bool_(False))
WHOLE_WARP = cast(Lanes, np.uint32(0xFFFFFFFF))  # a member mask that names all lanes


def as_mask(mask: Mask | None) -> Mask:
    """Return a mask with ``None`` replaced by all lanes."""
    return EVERY_LANE if mask is None else mask


def blocks_of(lanes: Mask) -> Mask:
    """Return which blocks have any of the lanes, ``(blocks,)``."""
    return cast(Mask, np.logical_or.reduce(lanes, axis=(0, 1, 2)))


class Geometry:
    """Shape of one batch of blocks.

    Args:
        grid: Grid extents in blocks, x first.
        block: Block extents in threads, x first.
        blocks: Linear numbers of the batch's blocks, ascending, int64.
        cluster: Cluster extents in blocks, x first; the batch has whole clusters.
    """

    def __init__(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], blocks: Flat,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> None:  # fmt: skip
        self.grid, self.block, self.blocks, self.cluster = grid, block, blocks, cluster
        self.columns, self.threads = len(blocks), block[0] * block[1] * block[2]
        self.shape: Shape = (block[2], block[1], block[0], self.columns)
        self.lanes, self.everyone = self.threads * self.columns, self.threads * math.prod(grid)
        self.warps = -(-self.threads // WARP)
        self._active: tuple[Mask | None, Rows] = None, np.zeros((0, 0))
        self.moves = AddressDeltas()
        self.by_block: Any = None  # what ``races.accesses.by_block`` was last asked, and gave

    @functools.cached_property
    def clusters(self) -> Clusters:
        """Clusters of the batch."""
        return Clusters(self.grid, self.cluster, self.blocks)

    def full(self, value: Lanes) -> Rows:
        """Return a value broadcast to ``(threads, blocks)``."""
        if value.shape != self.shape:  # it takes ten times as long as what comes then
            value = np.broadcast_to(value, self.shape)
        return value.reshape(self.threads, self.columns)

    def factored(self, value: Lanes, columns: int = 0) -> Rows:
        """Return a value as ``(threads, blocks)``, with fewer columns if blocks agree.

        It has one column if all blocks agree, or ``columns``.
        """
        columns = columns or (value.shape[3] if value.ndim else 1)
        if value.shape[:3] != self.shape[:3] or value.shape[3] != columns:
            value = np.broadcast_to(value, (*self.shape[:3], columns))
        return value.reshape(self.threads, columns)

    def by_warp(self, value: Lanes, fill: Any) -> Rows:
        """Return ``factored`` as ``(warps, 32, blocks or 1)``, with a partial last warp padded."""
        rows = self.factored(value)
        short = self.warps * WARP - self.threads
        if short:
            rows = np.concatenate([rows, np.full((short, rows.shape[1]), fill, rows.dtype)])
        return rows.reshape(self.warps, WARP, rows.shape[1])

    def from_rows(self, rows: Rows) -> Lanes:
        """Return ``(threads or more, blocks or 1)`` in a register's shape."""
        return rows[: self.threads].reshape(*self.shape[:3], rows.shape[1])

    @functools.cached_property
    def thread_ids(self) -> Lanes:
        """Linear thread numbers, shape ``(Z, Y, X, 1)``, int32."""
        return np.arange(self.threads, dtype=np.int32).reshape(*self.shape[:3], 1)

    @functools.cached_property
    def lane_numbers(self) -> Flat:
        """Global thread numbers, block by block, int64."""
        return (self.blocks[:, None] * self.threads + np.arange(self.threads)).reshape(-1)

    @functools.cached_property
    def lane_ids(self) -> Lanes:
        """``%laneid``, shape ``(Z, Y, X, 1)``, int32."""
        return self.thread_ids % WARP

    @functools.cached_property
    def warp_ids(self) -> Lanes:
        """``%warpid``, shape ``(Z, Y, X, 1)``, int32."""
        return self.thread_ids // WARP

    @functools.cached_property
    def everyone_on(self) -> Rows:
        """Mask of all lanes, ``(threads, blocks)``, read-only."""
        lanes = np.ones((self.threads, self.columns), bool)
        lanes.flags.writeable = False
        return lanes

    @functools.cached_property
    def existing(self) -> Rows:
        """Bits of the existing lanes of each warp, uint32 ``(warps, 1)``."""
        return self.warp_bits(EVERY_LANE)

    def warp_bits(self, mask: Mask) -> Rows:
        """Return a mask as one 32-bit word for each warp, uint32 ``(warps, blocks or 1)``."""
        lanes = self.by_warp(mask, False)
        packed = np.packbits(lanes, axis=1, bitorder="little").astype(np.uint32)
        weights = np.array([1, 1 << 8, 1 << 16, 1 << 24], np.uint32)[:, None]
        return cast(Rows, (packed * weights).sum(axis=1, dtype=np.uint32))

    def active_bits(self, mask: Mask) -> Rows:
        """Return ``warp_bits`` of the active lanes; the last result is cached."""
        if self._active[0] is not mask:
            self._active = mask, self.warp_bits(mask)
        return self._active[1]

    def whole_warps(self, mask: Mask) -> bool:
        """Whether a mask consists of complete warps."""
        if mask.ndim == 0:
            return self.threads % WARP == 0
        bits = self.active_bits(mask)
        return bool(((bits == 0) | (bits == WHOLE_WARP)).all())

    def any_of_warp(self, lanes: Mask) -> Rows:
        """Return which warps have any of the lanes, Boolean ``(warps, blocks)``."""
        return np.broadcast_to(self.warp_bits(lanes) != 0, (self.warps, self.columns))

    def spread(self, per_warp: Rows) -> Lanes:
        """Broadcast a value of each warp, ``(warps, blocks or 1)``, to its threads."""
        return self.from_rows(np.repeat(per_warp, WARP, axis=0))

    def active(self, mask: Mask | None) -> tuple[int, int]:
        """Return the number of threads in a mask, and of warps with any of them."""
        if mask is None or mask.ndim == 0:
            return (self.lanes, self.warps * self.columns) if mask is None or mask else (0, 0)
        rows = self.factored(mask)
        times = self.columns // rows.shape[1]
        threads = int(np.count_nonzero(rows)) * times
        if self.warps == 1:
            return threads, int(np.count_nonzero(rows.any(axis=0))) * times
        any_lane = np.logical_or.reduceat(rows, np.arange(0, self.threads, WARP), axis=0)
        return threads, int(np.count_nonzero(any_lane)) * times

    def numbers(self, lanes: Mask | None) -> Flat:
        """Return the global numbers of the threads in a mask."""
        thread, column = np.nonzero(self.full(as_mask(lanes)))
        return self.blocks[column] * self.threads + thread

    def whole_blocks(self, lanes: Mask | None) -> Flat:
        """Return the numbers of the blocks that are completely in a mask."""
        return self.blocks if lanes is None else self.blocks[self.full(lanes).all(axis=0)]

    def place(self, thread: int, block: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return the coordinates of thread and block from their linear numbers, x first."""
        return coordinates(thread, self.block), coordinates(block, self.grid)


@dataclass(frozen=True)
class InactiveLaneRead:
    """Lanes that read a register of an inactive lane of their warp, whose value is undefined.

    Attributes:
        instruction: The reading instruction.
        lanes: Mask of the reading lanes.
        value: Each lane's own value.
        found: The value that each lane reads.
        source: Source lane of each read.
        members: Member mask that each lane names.
    """

    instruction: Instruction
    lanes: Mask
    value: Lanes
    found: Lanes
    source: Lanes
    members: Lanes

    def reads(self, g: Geometry) -> Lanes:
        """Encode thread, source lane and membership of each read in one integer."""
        named: Lanes = (self.members >> self.source.astype(np.uint32)) & np.uint32(1)
        return (g.thread_ids * WARP + self.source) * 2 + named


UndefinedValueSource = Callable[[Geometry, InactiveLaneRead], Lanes]
"""Gives what lanes get where nothing is defined."""


class WarpView:
    """View of a warp for a warp-synchronous instruction: lane values and active lanes.

    Attributes:
        asking: Active lanes whose result is used.
        blank: Whether matrix products are not needed and return zeros.
    """

    def __init__(
        self, geometry: Geometry, mask: Mask | None, instead: UndefinedValueSource = lambda g,
        u: u.found,
        blank: bool = False,
    ) -> None:  # fmt: skip
        self.geometry, self.instead, self.skip_products = geometry, instead, blank
        self.mask = EVERY_LANE if mask is None else mask
        self.asking, self.lane = EVERY_LANE, geometry.lane_ids

    def active(self) -> Lanes:
        """Return the warp's active lanes, a uint32 for each thread."""
        return self.geometry.spread(self.geometry.active_bits(self.mask))

    def ballot(self, predicate: Mask) -> Lanes:
        """Return the lanes with a true predicate, a uint32 for each thread."""
        return self.geometry.spread(self.geometry.warp_bits(predicate))

    def gather(self, value: Lanes, lane: Lanes) -> Lanes:
        """Return each thread's ``value`` from the given lane of its warp."""
        g = self.geometry
        if value.ndim == 0:
            return value
        rows = g.by_warp(value, value.dtype.type(0)).reshape(g.warps * WARP, -1)
        index = g.factored(g.warp_ids * WARP + lane)
        if index.shape[1] == 1:
            return g.from_rows(rows.take(index[:, 0], axis=0))
        rows = np.broadcast_to(rows, (rows.shape[0], index.shape[1]))
        return g.from_rows(np.take_along_axis(rows, index.astype(np.intp), axis=0))

    def read(
        self, ins: Instruction, value: Lanes, source: Lanes, wanted: Mask = EVERY_LANE,
        members: Lanes = WHOLE_WARP,
    ) -> Lanes:  # fmt: skip
        """``gather`` for an instruction that may read inactive lanes.

        Args:
            ins: The instruction.
            value: The register that is read.
            source: Source lane of each read.
            wanted: Mask of the reading lanes; others receive their own value.
            members: Member mask.
        """
        found = self.gather(value, np.where(wanted, source, self.lane))
        g, source = self.geometry, source & (WARP - 1)
        everybody = members.ndim == 0 and members == WHOLE_WARP
        if everybody and g.whole_warps(self.mask):
            return found
        mask = self.mask if self.mask.ndim else np.broadcast_to(self.mask, (*g.shape[:3], 1))
        there = self.gather(mask, source)
        if not everybody:
            there = there & ((members >> source.astype(np.uint32)) & np.uint32(1) == 1)
        missing = self.mask & self.asking & wanted & ~there
        if not missing.any():
            return found
        return self.instead(g, InactiveLaneRead(ins, missing, value, found, source, members))

    def together(self, ins: Instruction, results: tuple[Lanes, ...]) -> tuple[Lanes, ...]:
        """Return results that depend on all lanes of a warp; all must be active."""
        g = self.geometry
        if g.whole_warps(self.mask):
            return results
        absent = g.spread(~g.active_bits(self.mask))
        first = np.bitwise_count((absent & (~absent + np.uint32(1))) - np.uint32(1))
        lanes, source = self.mask & (absent != 0), first.astype(np.int32)
        reads = (
            InactiveLaneRead(ins, lanes, found, found, source, WHOLE_WARP) for found in results
        )
        return tuple(self.instead(g, read) for read in reads) if lanes.any() else results

    def reduce(self, operation: np.ufunc, value: Lanes) -> Lanes:
        """Return a reduction over all 32 lanes, for each thread."""
        g = self.geometry
        lanes = g.by_warp(value, value.dtype.type(0))
        if g.threads % WARP:  # absent lanes repeat the warp's first, or are neutral for sums
            absent = g.by_warp(EVERY_LANE, False)
            sums = operation in (np.add, np.bitwise_xor)
            first = lanes.dtype.type(0) if sums else lanes[:, :1]
            lanes = np.where(absent, lanes, first)
        return g.spread(operation.reduce(lanes, axis=1, dtype=value.dtype))
