"""Shapes of a batch: threads and blocks as array axes, lanes and warps as views of them.

A register is a NumPy scalar or an array that broadcasts to ``(Z, Y, X, B)``: the
block's threads by coordinate, then the batch's blocks, contiguous. The names of array
types below say which shape an array has; scalars have the name of the array they stand for.
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
    """A mask with "every lane" spelt out."""
    return EVERY_LANE if mask is None else mask


def blocks_of(lanes: Mask) -> Mask:
    """The blocks with any of the lanes, ``(blocks,)``."""
    return cast(Mask, np.logical_or.reduce(lanes, axis=(0, 1, 2)))


class Geometry:
    """The shape of one batch of blocks.

    Args:
        grid: Blocks in the launch, x first.
        block: Threads of a block, x first.
        blocks: Linear numbers of the blocks in this batch, ascending, int64.
        cluster: Blocks of a cluster, x first; the batch has whole ones.
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
        """Which blocks make a cluster."""
        return Clusters(self.grid, self.cluster, self.blocks)

    def full(self, value: Lanes) -> Rows:
        """A value broadcast to ``(threads, blocks)``."""
        if value.shape != self.shape:  # it takes ten times as long as what comes then
            value = np.broadcast_to(value, self.shape)
        return value.reshape(self.threads, self.columns)

    def factored(self, value: Lanes, columns: int = 0) -> Rows:
        """A value over ``(threads, blocks)``: one block where all are alike, or ``columns``."""
        columns = columns or (value.shape[3] if value.ndim else 1)
        if value.shape[:3] != self.shape[:3] or value.shape[3] != columns:
            value = np.broadcast_to(value, (*self.shape[:3], columns))
        return value.reshape(self.threads, columns)

    def by_warp(self, value: Lanes, fill: Any) -> Rows:
        """``factored`` as ``(warps, 32, blocks or 1)``, a partial last warp filled up."""
        rows = self.factored(value)
        short = self.warps * WARP - self.threads
        if short:
            rows = np.concatenate([rows, np.full((short, rows.shape[1]), fill, rows.dtype)])
        return rows.reshape(self.warps, WARP, rows.shape[1])

    def from_rows(self, rows: Rows) -> Lanes:
        """``(threads or more, blocks or 1)`` back to a register's shape."""
        return rows[: self.threads].reshape(*self.shape[:3], rows.shape[1])

    @functools.cached_property
    def thread_ids(self) -> Lanes:
        """Linear thread numbers, shape ``(Z, Y, X, 1)``, int32."""
        return np.arange(self.threads, dtype=np.int32).reshape(*self.shape[:3], 1)

    @functools.cached_property
    def lane_numbers(self) -> Flat:
        """Numbers in the launch of all threads, block after block, int64."""
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
        """All lanes, ``(threads, blocks)``, which are not to be changed."""
        lanes = np.ones((self.threads, self.columns), bool)
        lanes.flags.writeable = False
        return lanes

    @functools.cached_property
    def existing(self) -> Rows:
        """Bits of the lanes that each warp has, uint32 ``(warps, 1)``."""
        return self.warp_bits(EVERY_LANE)

    def warp_bits(self, mask: Mask) -> Rows:
        """A mask as one 32-bit word a warp, uint32 ``(warps, blocks or 1)``."""
        lanes = self.by_warp(mask, False)
        packed = np.packbits(lanes, axis=1, bitorder="little").astype(np.uint32)
        weights = np.array([1, 1 << 8, 1 << 16, 1 << 24], np.uint32)[:, None]
        return cast(Rows, (packed * weights).sum(axis=1, dtype=np.uint32))

    def active_bits(self, mask: Mask) -> Rows:
        """``warp_bits`` of the lanes that execute something, remembered for the next question."""
        if self._active[0] is not mask:
            self._active = mask, self.warp_bits(mask)
        return self._active[1]

    def whole_warps(self, mask: Mask) -> bool:
        """Whether a mask has of every warp all 32 lanes, or none."""
        if mask.ndim == 0:
            return self.threads % WARP == 0
        bits = self.active_bits(mask)
        return bool(((bits == 0) | (bits == WHOLE_WARP)).all())

    def any_of_warp(self, lanes: Mask) -> Rows:
        """The warps with any of the lanes, bools ``(warps, blocks)``."""
        return np.broadcast_to(self.warp_bits(lanes) != 0, (self.warps, self.columns))

    def spread(self, per_warp: Rows) -> Lanes:
        """A value a warp, ``(warps, blocks or 1)``, given to each of its threads."""
        return self.from_rows(np.repeat(per_warp, WARP, axis=0))

    def active(self, mask: Mask | None) -> tuple[int, int]:
        """Number of threads and of warps in which a mask has any."""
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
        """Numbers in the launch of the threads of a mask."""
        thread, column = np.nonzero(self.full(as_mask(lanes)))
        return self.blocks[column] * self.threads + thread

    def whole_blocks(self, lanes: Mask | None) -> Flat:
        """Numbers of the blocks of which all threads are in a mask."""
        return self.blocks if lanes is None else self.blocks[self.full(lanes).all(axis=0)]

    def place(self, thread: int, block: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Coordinates, x first, of a thread of a block by their linear numbers."""
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
    """What a warp-synchronous instruction sees: lanes of a warp, and which are active.

    Attributes:
        asking: Lanes among the active ones that want the result.
        blank: Nobody looks at matrices' products, which are zeros then.
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
        """The warp's active lanes, a uint32 for each thread."""
        return self.geometry.spread(self.geometry.active_bits(self.mask))

    def ballot(self, predicate: Mask) -> Lanes:
        """The lanes where the predicate holds, a uint32 for each thread."""
        return self.geometry.spread(self.geometry.warp_bits(predicate))

    def gather(self, value: Lanes, lane: Lanes) -> Lanes:
        """Each thread's ``value`` of the given lane of its own warp."""
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
        """Results that each lane has of all lanes of its warp: all have to be there."""
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
        """A reduction over all 32 lanes, given to each thread."""
        g = self.geometry
        lanes = g.by_warp(value, value.dtype.type(0))
        if g.threads % WARP:  # absent lanes repeat the warp's first, or are neutral for sums
            absent = g.by_warp(EVERY_LANE, False)
            sums = operation in (np.add, np.bitwise_xor)
            first = lanes.dtype.type(0) if sums else lanes[:, :1]
            lanes = np.where(absent, lanes, first)
        return g.spread(operation.reduce(lanes, axis=1, dtype=value.dtype))
