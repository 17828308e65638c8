"""Copies of tensors in bulk (TMA): boxes of an array, to and from shared memory.

A box lies densely in shared memory, what PTX counts first innermost; a swizzle exchanges 16-byte
units among rows, by the address (PTX ISA, "Swizzling modes"). Outside of the array zeros are
read, and nothing is written.
"""

import math

import numpy as np

from kernels.ptx.module import Address
from kernels.tensor_map import NBYTES, Tiling, unpacked

from ..geometry import Flat, Lanes, Mask, as_mask
from . import far
from .bulk import UNIT, BulkCopy, Side
from .layout import array_number
from .memories import Memories
from .site import Site
from .spaces import Home

_ALIGNED, _WORD = 128, 4
_ROWS = {32: 1, 64: 3, 128: 7}
"""Which bits of a 128-byte row's number exchange its 16-byte units."""


class TensorCopy(BulkCopy):
    """An instruction that copies boxes, bound to a launch; generated code calls it."""

    def __call__(self, mask: Mask | None, into: Lanes, source: Lanes, *at: Lanes) -> Lanes:
        """Each lane copies the box at some coordinates; gives how many bytes it has moved."""
        g = self.memories.geometry
        lanes = np.nonzero(g.full(as_mask(mask)))
        moved = np.zeros((g.threads, g.columns), np.int64)
        sides: list[tuple[Side, Side]] = []
        values = [g.full(value)[lanes].tolist() for value in (into, source, *at)]
        for thread, column, to, start, *where in zip(
            *(a.tolist() for a in lanes), *values, strict=True
        ):
            to, start = to + self.into.offset, start + self.source.offset
            count, *done = self._copy(thread, column, to, start, where)
            moved[thread, column] = count
            sides += done
        self._tell([reads for reads, _ in sides], None)
        writes = [side for _, side in sides]
        self._tell(writes, [self._read(side) for side in writes])
        self.memories.writes += bool(sides)
        return g.from_rows(moved)

    def _copy(
        self, thread: int, column: int, to: int, start: int, where: list[int]
    ) -> tuple[int, *tuple[tuple[Side, Side], ...]]:
        """One lane's box: how many bytes it has, and where they were read and written."""
        memories, fills = self.memories, self.into.space == "shared"
        map_, place = (start, to) if fills else (to, start)
        far_site, near_site = (self.source, self.into) if fills else (self.into, self.source)
        block = column
        if near_site.far:
            place, block = far.at(memories.geometry, place, column)
        tiling = unpacked(memories.param_bytes(map_, NBYTES))
        home = tiling and memories.allocations.get(array_number(tiling.address))
        if not tiling or not home or len(tiling.shape) != len(where):
            memories.bad_lane(far_site, map_, thread, column)
            return (0,)
        column_bytes = where[0] * tiling.size
        if column_bytes % UNIT:  # an H200 stops at an illegal instruction
            memories.bad_lane(far_site, home.base + column_bytes, thread, column, aligned=False)
            return (0,)
        if not fills and min(where) < 0:  # nor does it store there, though it loads
            memories.bad_lane(far_site, home.base + min(where) * tiling.size, thread, column)
            return (0,)
        if place % _ALIGNED:
            memories.bad_lane(near_site, place, thread, column, aligned=False)
            return (0,)
        away, near, inside = _box(tiling, where, place)
        end = memories.shared.nbytes
        if place < 0 or int(near.max()) + tiling.size > end:
            memories.bad_lane(near_site, max(end, place), thread, column)
            return (tiling.nbytes,)
        if not (fills or home.writable):
            memories.bad_lane(far_site, home.base, thread, column)
            return (tiling.nbytes,)
        bytes_ = np.arange(tiling.size)
        theirs = (away[inside] - home.base)[:, None] + bytes_
        words = np.ascontiguousarray(memories.shared.words[:, block])
        mine, ours = words.view(np.uint8), near[:, None] + bytes_
        if fills:
            mine[ours[~inside]] = 0
            mine[ours[inside]] = home.buffer[theirs]
            memories.shared.words[:, block] = words
        else:
            near = near[inside]
            home.buffer[theirs] = mine[ours[inside]]
        global_ = _words(away[inside], tiling.size)
        global_ = global_[global_ + _WORD <= home.end]
        one = _side(far_site, thread, column, home, global_, home.base, column)
        two = _side(near_site, thread, column, memories.shared, _words(near, tiling.size), 0, block)
        return (tiling.nbytes, (one, two) if fills else (two, one))


def _box(tiling: Tiling, where: list[int], place: int) -> tuple[Flat, Flat, Flat]:
    """Of each element of a box: its global address, its shared one, and if it is in the array."""
    counts = tiling.counts
    number = np.arange(math.prod(counts))
    near = place + number * tiling.size
    far, inside, stride = np.full(len(number), tiling.address), np.ones(len(number), bool), 1
    for first, count, step, extent in zip(where, counts, tiling.steps, tiling.shape, strict=True):
        at = first + number % count * step
        inside &= (at >= 0) & (at < extent)
        far += at * (stride * tiling.size)
        number, stride = number // count, stride * extent
    near ^= ((near >> 7) & _ROWS.get(tiling.swizzle, 0)) << 4
    return far, near, inside


def _words(places: Flat, size: int) -> Flat:
    """The words in which elements lie."""
    parts = np.arange(0, max(size, _WORD), _WORD)
    words: Flat = np.unique((places[:, None] + parts) // _WORD) * _WORD
    return words


def _side(
    site: Site, thread: int, column: int, home: Home, places: Flat, start: int, block: int
) -> Side:
    return Side(site, thread, column, home, places, np.ones(len(places), bool), start, block)


def bind(site: Site, memories: Memories) -> BulkCopy:
    """What generated code calls for an instruction that copies in bulk."""
    tensor = any(isinstance(o, Address) and o.at for o in site.instruction.operands)
    return (TensorCopy if tensor else BulkCopy)(site, memories)
