"""Tensor copies (TMA): boxes of an array, to and from shared memory.

A box is dense in shared memory, with PTX's first axis innermost; a swizzle permutes 16-byte units
by address (PTX ISA, "Swizzling modes"). Outside of the array, reads give zeros or NaN and writes
are dropped. In im2col mode, consecutive pixels within the corners are copied, each with the
filter's offset.
"""

import functools
import math
import operator
from dataclasses import dataclass

import numpy as np

from kernels.arguments.tensor_map import NBYTES, TYPES, Tiling, unpacked
from kernels.ptx.module import Address

from ...core.geometry import Flat, Lanes, Mask, as_mask
from ...isa import DTYPES
from .. import atomics
from ..addressing import distributed_shared as far
from ..memories import AddressSpaces
from ..site import Site
from ..storage.layout import array_number
from ..storage.spaces import Home
from ..storage.word_ops import unique
from .bulk_copy import UNIT, BulkCopy, BulkEndpoint, BulkTransfer

_ALIGNED, _WORD = 128, 4
_PATTERN = 1024
"""Bytes after which swizzles repeat."""
_ROWS = {32: 1, 64: 3, 128: 7}
"""Which bits of a 128-byte row's number exchange its 16-byte units."""
_NAN = b"\xf7\x7f"
"""What is read outside of an array, if not zero, for each two bytes of any type: an H200's NaN."""
_INTEGERS = ("u32", "s32", "u64", "s64")
_REDUCED = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    "min": (*_INTEGERS, "f16", "bf16"), "max": (*_INTEGERS, "f16", "bf16"),
    "inc": ("u32",), "dec": ("u32",),
    "and": _INTEGERS[:3], "or": _INTEGERS[:3], "xor": _INTEGERS[:3],
}  # fmt: skip
"""Types that each reduction takes; at others an H200 stops at an illegal instruction."""
_AXES = tuple(f"{n}d" for n in range(1, 6))
_NO_MAP = "what is no tensor map of an array of this launch"


class TensorCopy(BulkCopy):
    """A tensor-copy instruction bound to a launch; generated code calls it."""

    def __call__(self, mask: Mask | None, into: Lanes, source: Lanes, *at: Lanes) -> Lanes:
        """Copy each lane's box; return the number of bytes moved."""
        g = self.memories.geometry
        lanes = np.nonzero(g.full(as_mask(mask)))
        moved = np.zeros((g.threads, g.columns), np.int64)
        sides: list[tuple[BulkEndpoint, BulkEndpoint]] = []
        self.pieces: list[BulkTransfer] = []
        values = [g.full(value)[lanes].tolist() for value in (into, source, *at)]
        for thread, column, to, start, *where in zip(
            *(a.tolist() for a in lanes), *values, strict=True
        ):
            to, start = to + self.into.offset, start + self.source.offset
            count, *done = self._copy(thread, column, to, start, where)
            moved[thread, column] = count
            sides += done
        self._notify([reads for reads, _ in sides], None)
        writes = [side for _, side in sides]
        self._notify(writes, [self._read(side) for side in writes])
        self.memories.writes += bool(sides)
        if self.memories.bulk_copy_callbacks and sides:
            self._moved(self.pieces)
        return g.from_rows(moved)

    def _copy(
        self, thread: int, column: int, to: int, start: int, where: list[int]
    ) -> tuple[int, *tuple[tuple[BulkEndpoint, BulkEndpoint], ...]]:
        """Copy one lane's box; return its bytes and endpoints."""
        memories, fills = self.memories, self.into.space == "shared"
        map_, place = (start, to) if fills else (to, start)
        far_site, near_site = (self.source, self.into) if fills else (self.into, self.source)
        block = column
        if near_site.far:
            place, block = far.at(memories.geometry, place, column)
        tiling = unpacked(memories.param_bytes(map_, NBYTES))
        home = tiling and memories.allocations.get(array_number(tiling.address))
        if not tiling or not home:
            there = len(memories.param_bytes(map_, NBYTES)) == NBYTES
            memories.bad_lane(far_site, map_, thread, column, what=_NO_MAP if there else "")
            return (0,)
        if wrong := self._misfit(tiling):
            memories.bad_lane(far_site, map_, thread, column, what=f"{home.name}, {wrong}")
            return (0,)
        axes = len(tiling.shape)
        where, offsets = where[:axes], where[axes:]
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
        end = memories.shared.nbytes
        rows, turn = _rows(tiling, place % _PATTERN), place - place % _PATTERN
        plain = not self.into.operation and (fills or home.writable)
        if rows and plain and _is_whole(tiling, where) and rows.fits(turn, end):
            first = tiling.address + sum(map(operator.mul, where, tiling.strides))
            here, there = (rows.near + turn) // _WORD, (rows.away + (first - home.base)) // _WORD
            if fills:
                memories.shared.words[here, block] = home.buffer.view(np.int32)[there]
            else:
                home.change()
                home.buffer.view(np.int32)[there] = memories.shared.words[here, block]
            self._brought(thread, column, block, rows.away + first, rows.near + turn, _WORD)
            one = _side(far_site, thread, column, home, rows.sources + first, home.base, column)
            two = _side(near_site, thread, column, memories.shared, rows.places + turn, 0, block)
            return (tiling.nbytes, (one, two) if fills else (two, one))
        near, coordinates = _near(tiling, place), _coordinates(tiling, where, offsets)
        away, inside = _away(tiling, coordinates)
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
            mine[ours[~inside]] = (
                np.frombuffer(_NAN * (tiling.size // 2), np.uint8) if tiling.nan else 0
            )
            mine[ours[inside]] = home.buffer[theirs]
            memories.shared.words[:, block] = words
        else:
            near = near[inside]
            sent = mine[ours[inside]]
            home.change()
            home.buffer[theirs] = self._reduced(tiling, home.buffer[theirs], sent)
        whole = near[inside] if fills else near
        self._brought(thread, column, block, away[inside], whole, tiling.size)
        if fills:
            self.pieces[-1].filled = near[~inside]
        global_ = _words(away[inside], tiling.size)
        global_ = global_[global_ + _WORD <= home.end]
        one = _side(far_site, thread, column, home, global_, home.base, column)
        two = _side(near_site, thread, column, memories.shared, _words(near, tiling.size), 0, block)
        return (tiling.nbytes, (one, two) if fills else (two, one))

    def _brought(
        self, thread: int, column: int, block: int, away: Flat, near: Flat, size: int
    ) -> None:
        """Record transferred pieces between an array and shared memory."""
        pair = (away, near) if self.into.space == "shared" else (near, away)
        self.pieces.append(BulkTransfer(thread, column, block, *pair, size))

    def _misfit(self, tiling: Tiling) -> str:
        """Return how a map contradicts the instruction; ``""``: it does not."""
        words = self.into.instruction.modifiers
        axes = next(int(word[0]) for word in words if word in _AXES)
        if len(tiling.shape) != axes:
            has = f"{len(tiling.shape)} ax{'i' if len(tiling.shape) == 1 else 'e'}s"
            return f"whose tensor map has {has}: this copy takes {axes} (.{axes}d)"
        images = any(word.startswith("im2col") for word in words)
        if images != bool(tiling.corners):
            modes = ("boxes (.tile)", "images (.im2col)")
            return f"whose tensor map is of {modes[not images]}: this copy is of {modes[images]}"
        how = self.into.operation
        if tiling.type not in _REDUCED.get(how, tuple(TYPES)):
            return f"whose tensor map is of {tiling.type}: .{how} takes {', '.join(_REDUCED[how])}"
        return ""

    def _reduced(self, tiling: Tiling, old: Flat, sent: Flat) -> Flat:
        """Return memory after a reduction, as rows of bytes."""
        if not self.into.operation:
            return sent
        dtype = DTYPES[tiling.type]
        found: list[Flat] = [np.ascontiguousarray(old).view(dtype).reshape(-1)]

        def write(places: Flat, changed: Flat) -> None:
            found[0] = changed

        atomics.apply(
            self.into.operation, tiling.type, np.arange(len(sent)),
            (np.ascontiguousarray(sent).view(dtype).reshape(-1),), found[0].__getitem__, write,
            is_global=tiling.type != "f32",
        )  # fmt: skip
        return found[0].view(np.uint8).reshape(-1, tiling.size)


@dataclass(frozen=True)
class _Rows:
    """Words of a box.

    Attributes:
        near: Their offsets in shared memory.
        away: Their offsets in the array, relative to the box.
        places, sources: The same, each ascending.
    """

    near: Flat
    away: Flat
    places: Flat
    sources: Flat

    def fits(self, start: int, end: int) -> bool:
        """Whether all words are inside shared memory."""
        return start + int(self.places[0]) >= 0 and start + int(self.places[-1]) + _WORD <= end


@functools.lru_cache(maxsize=256)
def _rows(tiling: Tiling, place: int) -> _Rows | None:
    """Return the words of a box with rows of whole units, the common case."""
    size = tiling.size
    units = tiling.counts[0] * size % UNIT == 0 and all(n % UNIT == 0 for n in tiling.strides[1:])
    if tiling.corners or tiling.steps[0] != 1 or not units:
        return None
    away, _ = _away(tiling, _coordinates(tiling, [0] * len(tiling.shape), []))
    parts = np.arange(0, max(size, _WORD), _WORD)
    words = [
        (some[:: max(1, _WORD // size), None] + parts).reshape(-1)
        for some in (_near(tiling, place), away - tiling.address)
    ]
    return _Rows(*words, *map(unique, words))


def _is_whole(tiling: Tiling, where: list[int]) -> bool:
    """Whether a box lies completely in its array."""
    axes = zip(where, tiling.counts, tiling.steps, tiling.shape, strict=True)
    return all(0 <= first <= extent - 1 - (n - 1) * step for first, n, step, extent in axes)


def _near(tiling: Tiling, place: int) -> Flat:
    """Return the shared address of each element of a box."""
    near = place + np.arange(math.prod(tiling.counts)) * tiling.size
    found: Flat = near ^ (((near >> 7) & _ROWS.get(tiling.swizzle, 0)) << 4)
    return found


def _coordinates(tiling: Tiling, where: list[int], offsets: list[int]) -> list[Flat]:
    """Return the array coordinates of a box's elements, along each axis."""
    number, found = np.arange(math.prod(tiling.counts)), []
    if not tiling.corners:
        for first, count, step in zip(where, tiling.counts, tiling.steps, strict=True):
            found.append(first + number % count * step)
            number = number // count
        return found
    found.append(where[0] + number % tiling.counts[0] * tiling.steps[0])
    turn = number // tiling.counts[0]  # how many pixels on, then rows of pixels, ...
    for axis, (low, high) in enumerate(zip(*tiling.corners, strict=True), 1):
        step = tiling.steps[axis]
        count = max(1, -(-(tiling.shape[axis] + high - low) // step))
        turn = turn + (where[axis] - low) // step
        offset = offsets[axis - 1] if offsets else 0
        found.append(low + turn % count * step + offset)
        turn = turn // count
    return [*found, where[-1] + turn]


def _away(tiling: Tiling, coordinates: list[Flat]) -> tuple[Flat, Flat]:
    """Return the global address of each element of a box, and whether it is in the array."""
    far = np.full(len(coordinates[0]), tiling.address)
    inside = np.ones(len(far), bool)
    for at, extent, stride in zip(coordinates, tiling.shape, tiling.strides, strict=True):
        inside &= (at >= 0) & (at < extent)
        far += at * stride
    return far, inside


def _words(places: Flat, size: int) -> Flat:
    """Return the words that contain some elements."""
    parts = np.arange(0, max(size, _WORD), _WORD)
    return unique((places[:, None] + parts).reshape(-1) // _WORD) * _WORD


def _side(
    site: Site, thread: int, column: int, home: Home, places: Flat, start: int, block: int
) -> BulkEndpoint:
    return BulkEndpoint(
        site, thread, column, home, places, np.ones(len(places), bool), start, block
    )


def bind(site: Site, memories: AddressSpaces) -> BulkCopy:
    """Return the callback of generated code for a bulk-copy instruction."""
    tensor = any(isinstance(o, Address) and o.at for o in site.instruction.operands)
    return (TensorCopy if tensor else BulkCopy)(site, memories)
