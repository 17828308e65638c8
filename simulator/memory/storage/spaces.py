"""Memories, and the index of an access.

Global arrays are flat. Shared and local memory are ``(32-bit word, column)`` with one column for
each block or thread: an address that is equal in all columns fetches whole rows (0.1 ns a lane; a
general gather takes 0.6 to 0.9 ns).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernels.arguments.texture import Surface, Texture
from kernels.errors import LaunchError

from ...core.geometry import Addresses, Flat, Lanes, Mask
from ...isa import DTYPES
from .layout import MAX_ARRAY, array_address
from .page_cache import aligned, copied
from .word_ops import join, put, split

POISON = 0xFF
"""Every byte of what a load gets from outside any array."""


@dataclass
class HeapPieces:
    """Pieces of a device heap: sizes by their places, in use and freed.

    Attributes:
        end: Behind the last piece; ``free_bytes``: what may still be allocated.
    """

    end: int
    free_bytes: int
    pieces: dict[int, int] = field(default_factory=dict)
    freed: dict[int, int] = field(default_factory=dict)


class Allocation:
    """One global array: an argument, a module variable, or the parameter buffer.

    Attributes:
        base: Generic address of its first byte.
        nbytes: Size in bytes.
        space: State space of the array, whichever way an access addresses it.
        buffer: Its bytes, padded to a multiple of 32.
        missing: Uninitialised bytes; ``None``: there are none.
        lent_flags: Whether ``missing`` is the host's: copied by the first write.
        valid: Allocated bytes, if not all are.
        pictures: Its textures and surfaces.
        unfilled: Whether it is constant memory that neither PTX nor host sets.
        heap: Pieces, if it is the device heap.
        changed: Whether it has been written; before that its bytes are read-only.
    """

    missing: Flat | None = None
    lent_flags = False
    valid: Flat | None = None
    heap: HeapPieces | None = None
    unfilled = False
    changed = False

    def __init__(
        self, number: int, content: Flat, name: str, writable: bool, nbytes: int | None = None,
        space: str = "global", own: bool = False,
    ) -> None:  # fmt: skip
        """``own``: the content becomes the buffer; else it is copied, by the first write."""
        self.number, self.name, self.writable, self.space = number, name, writable, space
        self.base = array_address(number)
        self.nbytes = len(content) if nbytes is None else nbytes
        self.end = self.base + self.nbytes
        if self.nbytes > MAX_ARRAY:
            raise LaunchError(f"{name or 'an array'}: more than {MAX_ARRAY:,} bytes")
        size = -(-max(self.nbytes, 1) // 32) * 32
        lent = not own and len(content) == size and aligned(content)
        self.move(content if own or lent else copied(content, size))
        self._lent = lent
        self.pictures: list[Texture | Surface] = []

    def content(self) -> Flat:
        """Return the array's bytes without padding."""
        return self.buffer[: self.nbytes]

    def move(self, buffer: Flat) -> None:
        """Move the bytes to another buffer."""
        self._lent, self.buffer = False, buffer.view()
        self.buffer.flags.writeable = self.changed
        self._views: dict[tuple[str, int], NDArray[np.generic]] = {}

    def change(self) -> None:
        """Prepare the array for a write; earlier views do not see written values."""
        if not self.changed:
            self.changed = True
            self.move(copied(self.buffer, len(self.buffer)) if self._lent else self.buffer)

    def define(self, places: Flat) -> None:
        """Mark bytes, by their positions, as written."""
        self.own_flags()[places] = False

    def own_flags(self) -> Flat:
        """Return ``missing`` for writing: what was the host's is copied first."""
        assert self.missing is not None
        if self.lent_flags:
            self.missing, self.lent_flags = self.missing.copy(), False
        return self.missing

    def view(self, ptx_type: str, count: int) -> NDArray[np.generic]:
        """Return the buffer as elements, or as vectors of ``count`` elements."""
        key = (ptx_type, count)
        if key not in self._views:
            elements = self.buffer.view(DTYPES[ptx_type])
            self._views[key] = elements if count == 1 else elements.reshape(-1, count)
        return self._views[key]


class GlobalIndex:
    """Index of an access in one array; ``relative`` is consumed."""

    space = "global"

    def __init__(
        self, allocation: Allocation, relative: Addresses, ptx_type: str, count: int
    ) -> None:
        self.allocation, self.count, self._type = allocation, count, ptx_type
        shift = (DTYPES[ptx_type].itemsize * count).bit_length() - 1
        # In place where it can be: a fresh array of 65k lanes costs as much as the shift.
        out = relative if relative.ndim else None
        self.index = np.right_shift(relative, shift, out=out) if shift else relative

    @property
    def view(self) -> NDArray[np.generic]:
        """Return the array's current elements."""
        return self.allocation.view(self._type, self.count)

    def load(self) -> tuple[Lanes, ...]:
        """Return the elements, one array each."""
        view = self.view
        if self.count == 1:
            return (view.take(self.index, mode="clip"),)
        rows = view.take(self.index, axis=0, mode="clip")
        # Copied, for speed; [()] keeps one number a scalar (ascontiguousarray makes it 1-D).
        return tuple(rows[..., i].copy()[()] for i in range(self.count))

    def store(self, values: Sequence[Lanes], mask: Mask | None) -> None:
        """Write each element; of several lanes at one place the last one wins."""
        if mask is None:
            shape = np.broadcast_shapes(self.index.shape, *(v.shape for v in values))
            where: Lanes = np.broadcast_to(self.index, shape)
            pick: Callable[[Lanes], Lanes] = lambda v: v  # noqa: E731
        else:
            shape = np.broadcast_shapes(self.index.shape, mask.shape, *(v.shape for v in values))
            chosen = np.broadcast_to(mask, shape)
            where = np.broadcast_to(self.index, shape)[chosen]
            if not where.size:  # no lane writes: the array's uninitialised bytes stay so
                return
            pick = lambda v: np.broadcast_to(v, shape)[chosen]  # noqa: E731
        self.allocation.change()
        view = self.view
        if self.count == 1:
            view[where] = pick(values[0])
        else:
            for i, value in enumerate(values):
                view[where, i] = pick(value)

    def positions(self, shape: tuple[int, ...], chosen: Mask) -> Flat:
        """Return the element numbers of the chosen lanes, 1-D."""
        return np.broadcast_to(self.index, shape)[chosen]

    def read(self, places: Flat) -> Flat:
        """Return elements by number."""
        return self.view[places]

    def write(self, places: Flat, values: Flat) -> None:
        """Set elements by number."""
        if not places.size:
            return
        self.allocation.change()
        self.view[places] = values


class InterleavedMemory:
    """Shared memory (a column a block) or local memory (a column a thread).

    Args:
        nbytes: Size of a column.
        columns: Shape of the columns: ``(1, 1, 1, B)`` or ``(Z, Y, X, B)``.
    """

    def __init__(self, space: str, nbytes: int, columns: tuple[int, int, int, int]) -> None:
        self.space, self.nbytes, self.shape = space, nbytes, columns
        self.count = int(np.prod(columns))
        # Two rows past the end: a clipped 16-byte access of an idle lane stays inside.
        self.words = np.zeros((-(-nbytes // 4) + 4, self.count), np.int32)
        self.flat = self.words.reshape(-1)
        self.numbers = np.arange(self.count, dtype=np.int64).reshape(columns)


class ColumnIndex:
    """Index of one access's lanes into an ``InterleavedMemory``.

    Attributes:
        columns: Columns of the lanes, if not their own.
    """

    def __init__(
        self, memory: InterleavedMemory, address: Addresses, ptx_type: str, count: int,
        columns: Lanes | None = None,
    ) -> None:  # fmt: skip
        self.memory, self.count = memory, count
        self.numbers = memory.numbers if columns is None else columns
        self.space = memory.space
        self.dtype = DTYPES[ptx_type]
        self.size = self.dtype.itemsize
        self.address = address = address if address.ndim else address.reshape(1, 1, 1, 1)
        same = memory.space == "shared" and 1 in (address.shape[3], memory.count)
        self.rows: Flat | None = None
        if (same or address.size == 1) and columns is None and self.size >= 4:
            rows = (address >> 2).reshape(-1)
            per = self.size // 4 * count
            self.rows = rows if per == 1 else (rows + np.arange(per)[:, None]).reshape(-1)
            self.lead = address.shape[:3]

    def load(self) -> tuple[Lanes, ...]:
        """Return the elements, one array each."""
        memory = self.memory
        if self.rows is None:
            return tuple(self._gather(i) for i in range(self.count))
        store = memory.words if self.size == 8 else memory.words.view(self.dtype)
        got = store.take(self.rows, axis=0, mode="clip")
        shape = memory.shape if memory.space == "local" else (*self.lead, memory.shape[3])
        if self.size == 8:
            pairs = got.reshape(self.count, 2, -1)
            return tuple(
                join(pairs[i, 0], pairs[i, 1], self.dtype).reshape(shape) for i in range(self.count)
            )
        if self.count == 1:
            return (got.reshape(shape),)
        return tuple(part.reshape(shape) for part in got.reshape(self.count, -1))

    def _word(self, element: int) -> Lanes:
        """Flat position of the element's (first) word, for every lane."""
        top = self.memory.words.shape[0] - 4
        word = np.clip((self.address + element * self.size) >> 2, 0, top)
        where: Lanes = word * self.memory.count + self.numbers
        return where

    def _narrow(self, element: int) -> tuple[Flat, Lanes]:
        """Return memory as sub-word elements, and the position of each lane's."""
        per = 4 // self.size
        inside = ((self.address + element * self.size) & 3) >> (self.size - 1)
        return self.memory.flat.view(self.dtype), self._word(element) * per + inside

    def _gather(self, element: int) -> Lanes:
        if self.size < 4:
            view, where = self._narrow(element)
            got: Lanes = view.take(where)
            return got
        where, flat = self._word(element), self.memory.flat
        if self.size == 4:
            got = flat.view(self.dtype).take(where)
            return got
        return join(flat.take(where), flat.take(where + self.memory.count), self.dtype)

    def store(self, values: Sequence[Lanes], mask: Mask | None) -> None:
        """Write each element; of lanes at the same place the last one wins."""
        memory = self.memory
        if self.rows is not None and mask is None and memory.space == "shared":
            lead, rows = self.lead, self.rows
            if self.size * self.count > 4 or any(v.shape[:3] != lead for v in values if v.ndim):
                lead = np.broadcast_shapes(lead, *(v.shape[:3] for v in values if v.ndim))
                rows = np.broadcast_to(self.address >> 2, (*lead, 1)).reshape(-1)
            for i, value in enumerate(values):
                whole = (*lead, memory.shape[3])
                full = value if value.shape == whole else np.broadcast_to(value, whole)
                for part, words in enumerate(split(full.reshape(len(rows), -1))):
                    memory.words[rows + (i * self.size // 4 + part)] = words
            return
        for i, value in enumerate(values):
            self._scatter(i, value, mask)

    def _scatter(self, element: int, value: Lanes, mask: Mask | None) -> None:
        if self.size < 4:
            view, where = self._narrow(element)
            put(view, where, value, mask)
            return
        where = self._word(element)
        if self.size == 4:
            put(self.memory.flat, where, value.view(np.int32), mask)
            return
        low, high = split(np.asarray(value))
        put(self.memory.flat, where, low, mask)
        put(self.memory.flat, where + self.memory.count, high, mask)

    def positions(self, shape: tuple[int, ...], chosen: Mask) -> Flat:
        """1-D element numbers of the chosen lanes; of a vector, of its first element."""
        if self.size < 4:
            return np.broadcast_to(self._narrow(0)[1], shape)[chosen]
        return np.broadcast_to(self._word(0), shape)[chosen]

    def _beyond(self, element: int) -> int:
        """Return the distance of a vector's element from the first one."""
        per = 4 // min(self.size, 4)
        words, inside = divmod(element, per)
        return int(words * max(self.size // 4, 1) * per * self.memory.count + inside)

    def read(self, places: Flat) -> Flat:
        """Return elements by number; of a vector, a row of them."""
        parts = [self._read(places + self._beyond(i)) for i in range(self.count)]
        return parts[0] if self.count == 1 else np.stack(parts, -1)

    def _read(self, places: Flat) -> Flat:
        flat = self.memory.flat
        if self.size == 8:
            return join(flat[places], flat[places + self.memory.count], self.dtype)
        values: Flat = flat.view(self.dtype)[places]
        return values

    def write(self, places: Flat, values: Flat) -> None:
        """Set elements by number."""
        if self.count == 1:
            self._write(places, values)
        else:
            for i in range(self.count):
                self._write(places + self._beyond(i), values[:, i])

    def _write(self, places: Flat, values: Flat) -> None:
        flat = self.memory.flat
        if self.size == 8:
            flat[places], flat[places + self.memory.count] = split(values)
        else:
            flat.view(self.dtype)[places] = values


Home = Allocation | InterleavedMemory
"""What an address may lie in."""
PlaceIndex = GlobalIndex | ColumnIndex
"""Where all lanes of an access, or of a part of it, fall."""
