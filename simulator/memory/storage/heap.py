"""Device heap for ``malloc`` and ``free``: pieces of one array with gaps in between.

An address is reused only after all others, so that freed memory stays out of bounds.
"""

from collections.abc import Callable

import numpy as np

from .layout import HEAP
from .page_cache import untouched
from .spaces import POISON, Allocation

HEAP_BYTES = 8 << 20
"""Of the heap, ``cudaLimitMallocHeapSize`` by default; what it needs itself is not known."""
_ALIGNED = 16
"""So is each piece; as much at least is left free behind it."""


def heap_array(limit: int = HEAP_BYTES) -> Allocation:
    """Return the empty heap, with as many bytes again for gaps.

    Unused pages cost nothing, as a kernel that may call ``malloc`` seldom allocates much.
    """
    made = Allocation(HEAP, np.zeros(0, np.uint8), "heap", True, 2 * limit)
    made.change()
    made.missing, made.valid = (untouched(made.nbytes).view(bool) for _ in range(2))
    return made


class Heap:
    """Heap of a launch; ``changed`` is called when a piece is allocated or freed."""

    def __init__(self, array: Allocation) -> None:
        self.array, self.end = array, _ALIGNED
        self.free_bytes = len(array.buffer) // 2
        self.pieces: dict[int, int] = {}
        self.freed: dict[int, int] = {}
        self.changed: Callable[[], None] = lambda: None

    def allocate(self, size: int) -> int:
        """Allocate uninitialised memory; returns its address, or 0 if it does not fit."""
        taken = _rounded(size)
        if taken > self.free_bytes:
            return 0
        start = self.end
        if start + taken + _ALIGNED <= len(self.array.buffer):
            self.end += taken + _ALIGNED
            self.array.buffer[start : start + size] = POISON  # it holds anything
        else:
            again = (at for at, old in self.freed.items() if _rounded(old) == taken)
            if not (start := next(again, 0)):
                return 0
            del self.freed[start]
        self._mark(start, size, True)
        self.free_bytes -= taken
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
        self.free_bytes += _rounded(size)
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
