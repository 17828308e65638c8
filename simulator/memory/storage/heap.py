"""Device heap for ``malloc`` and ``free``: pieces of one array with gaps in between.

An address is reused only after all others, so that freed memory stays out of bounds.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from ...core.geometry import Flat
from .layout import HEAP
from .page_cache import untouched
from .spaces import POISON, Allocation, HeapPieces

HEAP_BYTES = 8 << 20
"""Of the heap, ``cudaLimitMallocHeapSize`` by default; what it needs itself is not known."""
_ALIGNED = 16
"""So is each piece; as much at least is left free behind it."""


@dataclass(frozen=True)
class HeapContent:
    """A heap as a launch leaves it for the next one.

    Attributes:
        limit: Bytes that may be allocated in all.
        content: Its bytes as far as they are used; ``missing`` and ``valid``: their flags.
        pieces: Where pieces are.
    """

    limit: int
    content: Flat
    missing: Flat
    valid: Flat
    pieces: HeapPieces

    @classmethod
    def of(cls, array: Allocation) -> "HeapContent | None":
        """Copy a heap; ``None``: nothing is allocated in it."""
        heap, missing, valid = array.heap, array.missing, array.valid
        if heap is None or not heap.pieces or missing is None or valid is None:
            return None
        content, missing, valid = (
            part[: heap.end].copy() for part in (array.buffer, missing, valid)
        )
        return cls(array.nbytes // 2, content, missing, valid, deepcopy(heap))


def heap_array(limit: int = HEAP_BYTES, before: HeapContent | None = None) -> Allocation:
    """Return a heap, empty or as an earlier launch left it, with as many bytes again for gaps.

    Unused pages cost nothing, as a kernel that may call ``malloc`` seldom allocates much.
    """
    limit = before.limit if before else limit
    made = Allocation(HEAP, np.zeros(0, np.uint8), "heap", True, 2 * limit)
    made.change()
    made.missing, made.valid = (untouched(made.nbytes).view(bool) for _ in range(2))
    made.heap = HeapPieces(_ALIGNED, len(made.buffer) // 2)
    if before:
        made.heap, used = deepcopy(before.pieces), len(before.content)
        made.buffer[:used] = before.content
        made.missing[:used], made.valid[:used] = before.missing, before.valid
    return made


class Heap:
    """Heap of a launch; ``changed`` is called when a piece is allocated or freed."""

    def __init__(self, array: Allocation) -> None:
        self.state = array.heap or HeapPieces(_ALIGNED, len(array.buffer) // 2)
        self.array, self.pieces, self.freed = array, self.state.pieces, self.state.freed
        self.changed: Callable[[], None] = lambda: None

    @property
    def end(self) -> int:
        """Place behind the last piece."""
        return self.state.end

    def allocate(self, size: int) -> int:
        """Allocate uninitialised memory; returns its address, or 0 if it does not fit."""
        taken = _rounded(size)
        if taken > self.state.free_bytes:
            return 0
        start = self.state.end
        if start + taken + _ALIGNED <= len(self.array.buffer):
            self.state.end += taken + _ALIGNED
            self.array.buffer[start : start + size] = POISON  # it holds anything
        else:
            again = (at for at, old in self.freed.items() if _rounded(old) == taken)
            if not (start := next(again, 0)):
                return 0
            del self.freed[start]
        self._mark(start, size, True)
        self.state.free_bytes -= taken
        self.pieces[start] = size
        return self.array.base + start

    def piece(self, address: int) -> range:
        """Return the bytes that ``free`` of an address would release."""
        start = address - self.array.base
        return range(start, start + self.pieces.get(start, 0))

    def free(self, address: int) -> bool:
        """Free an address; return whether that is valid."""
        start = address - self.array.base
        size = self.pieces.pop(start, None)
        if size is None:
            return address == 0
        self._mark(start, size, False)
        self.state.free_bytes += _rounded(size)
        self.freed[start] = size
        return True

    def _mark(self, start: int, size: int, valid: bool) -> None:
        assert self.array.valid is not None
        assert self.array.missing is not None
        self.array.valid[start : start + size] = valid
        self.array.missing[start : start + size] = True
        self.changed()

    def nearest(self, relative: int) -> tuple[Allocation, int]:
        """Return the piece before an unallocated place, and the distance, for a report."""
        known = self.pieces | self.freed
        start = max((at for at in known if at <= relative), default=min(known, default=0))
        name = "heap" if start in self.pieces else "freed memory"
        size = self.pieces.get(start, 0)
        return Allocation(HEAP, np.zeros(0, np.uint8), name, True, size), relative - start


def _rounded(size: int) -> int:
    return max(1, -(-size // _ALIGNED)) * _ALIGNED
