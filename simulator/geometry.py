"""Shapes of a batch: threads and blocks as array axes, lanes and warps as views of them.

A register is a NumPy scalar or an array that broadcasts to ``(Z, Y, X, B)``: the
block's threads by coordinate, then the batch's blocks, contiguous. A mask is a bool
array of the same kind; ``None`` is every lane.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

Shape = tuple[int, int, int, int]
WARP = 32


class Geometry:
    """The shape of one batch of blocks.

    Args:
        grid: Blocks in the launch, x first.
        block: Threads of a block, x first.
        blocks: Linear numbers of the blocks in this batch, ascending, int64.
    """

    def __init__(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], blocks: Any
    ) -> None:
        self.grid, self.block, self.blocks = grid, block, blocks
        self.columns = len(blocks)
        self.threads = block[0] * block[1] * block[2]
        self.shape: Shape = (block[2], block[1], block[0], self.columns)
        self.lanes = self.threads * self.columns
        self.everyone = self.threads * grid[0] * grid[1] * grid[2]
        self.warps = -(-self.threads // WARP)

    def full(self, value: Any) -> Any:
        """A value broadcast to ``(threads, blocks)``."""
        return np.broadcast_to(value, self.shape).reshape(self.threads, self.columns)

    def factored(self, value: Any) -> Any:
        """A value over ``(threads, blocks or 1)``: blocks only where it depends on them."""
        if value.ndim == 0:
            return np.broadcast_to(value, (self.threads, 1))
        shape = (*self.shape[:3], value.shape[3])
        return np.broadcast_to(value, shape).reshape(self.threads, value.shape[3])

    def by_warp(self, value: Any, fill: Any) -> Any:
        """``factored`` as ``(warps, 32, blocks or 1)``, a partial last warp filled up."""
        rows = self.factored(value)
        short = self.warps * WARP - self.threads
        if short:
            padding = np.full((short, rows.shape[1]), fill, rows.dtype)
            rows = np.concatenate([rows, padding])
        return rows.reshape(self.warps, WARP, rows.shape[1])

    def from_rows(self, rows: Any) -> Any:
        """``(threads or more, blocks or 1)`` back to a register's shape."""
        return rows[: self.threads].reshape(*self.shape[:3], rows.shape[1])

    @functools.cached_property
    def thread_ids(self) -> Any:
        """Linear thread numbers, shape ``(Z, Y, X, 1)``, int32."""
        return np.arange(self.threads, dtype=np.int32).reshape(*self.shape[:3], 1)

    @functools.cached_property
    def lane_ids(self) -> Any:
        """``%laneid``, shape ``(Z, Y, X, 1)``, int32."""
        return self.thread_ids % WARP

    @functools.cached_property
    def warp_ids(self) -> Any:
        """``%warpid``, shape ``(Z, Y, X, 1)``, int32."""
        return self.thread_ids // WARP

    @functools.cached_property
    def existing(self) -> Any:
        """Bits of the lanes that each warp has, uint32 ``(warps, 1)``."""
        return self.warp_bits(np.bool_(True))

    def warp_bits(self, mask: Any) -> Any:
        """A mask as one 32-bit word a warp, uint32 ``(warps, blocks or 1)``."""
        lanes = self.by_warp(mask, False)
        packed = np.packbits(lanes, axis=1, bitorder="little").astype(np.uint32)
        weights = np.array([1, 1 << 8, 1 << 16, 1 << 24], np.uint32)[:, None]
        return (packed * weights).sum(axis=1, dtype=np.uint32)

    def spread(self, per_warp: Any) -> Any:
        """A value a warp, ``(warps, blocks or 1)``, given to each of its threads."""
        return self.from_rows(np.repeat(per_warp, WARP, axis=0))

    def active(self, mask: Any) -> tuple[int, int]:
        """Number of threads and of warps in which a mask has any."""
        if mask is None:
            return self.lanes, self.warps * self.columns
        if mask.ndim == 0:
            return (self.lanes, self.warps * self.columns) if mask else (0, 0)
        rows = self.factored(mask)
        times = self.columns // rows.shape[1]
        threads = int(np.count_nonzero(rows)) * times
        if self.warps == 1:
            return threads, int(np.count_nonzero(rows.any(axis=0))) * times
        starts = np.arange(0, self.threads, WARP)
        any_lane = np.logical_or.reduceat(rows, starts, axis=0)
        return threads, int(np.count_nonzero(any_lane)) * times

    def thread_at(
        self, index: tuple[int, ...]
    ) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Thread and block coordinates, x first, of an index into the full shape."""
        z, y, x, column = (int(i) for i in index)
        return (x, y, z), self.block_at(column)

    def place(self, thread: int, block: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Coordinates, x first, of a thread of a block by their linear numbers."""
        (bx, by, _), (gx, gy, _) = self.block, self.grid
        return (
            (thread % bx, thread // bx % by, thread // (bx * by)),
            (block % gx, block // gx % gy, block // (gx * gy)),
        )

    def block_at(self, column: int) -> tuple[int, int, int]:
        """Block coordinates of a column of the batch."""
        number = int(self.blocks[column])
        gx, gy, _ = self.grid
        return number % gx, number // gx % gy, number // (gx * gy)


class WarpView:
    """What a warp-synchronous instruction sees: lanes of a warp, and which are active."""

    def __init__(self, geometry: Geometry, mask: Any) -> None:
        self.geometry = geometry
        self.mask = np.bool_(True) if mask is None else mask
        self.lane = geometry.lane_ids

    def active(self) -> Any:
        """The warp's active lanes, a uint32 for each thread."""
        return self.geometry.spread(self.geometry.warp_bits(self.mask))

    def ballot(self, predicate: Any) -> Any:
        """The lanes where the predicate holds, a uint32 for each thread."""
        return self.geometry.spread(self.geometry.warp_bits(predicate))

    def gather(self, value: Any, lane: Any) -> Any:
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

    def reduce(self, operation: Any, value: Any) -> Any:
        """A reduction over all 32 lanes, given to each thread."""
        g = self.geometry
        lanes = g.by_warp(value, value.dtype.type(0))
        if g.threads % WARP:  # absent lanes repeat the warp's first, or are neutral for sums
            absent = g.by_warp(np.bool_(True), False)
            first = (
                lanes[:, :1] if operation not in (np.add, np.bitwise_xor) else lanes.dtype.type(0)
            )
            lanes = np.where(absent, lanes, first)
        return g.spread(operation.reduce(lanes, axis=1, dtype=value.dtype))
