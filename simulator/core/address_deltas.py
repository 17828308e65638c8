"""Arrays that equal another array plus a constant, such as pointers that a loop advances.

Properties of an array (extent, pattern across blocks) carry over to such an array.
"""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

_Lanes = NDArray[np.int64]
_MAX_ENTRIES = 64
_HALF = 1 << 63


class AddressDeltas:
    """Origins of the results of 64-bit additions of one batch, without keeping arrays alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[_Lanes], weakref.ref[_Lanes], int]] = {}

    def __reduce__(self) -> tuple[type[AddressDeltas], tuple[()]]:
        return AddressDeltas, ()  # another process has other arrays

    def add(self, one: _Lanes, other: _Lanes) -> _Lanes:
        """Return ``one + other`` with wrap-around; int64 arrays or numbers."""
        found: _Lanes = np.add(one, other)
        if not other.ndim:
            if one.ndim:
                self._note(found, one, int(other))
        elif not one.ndim:
            self._note(found, other, int(one))
        return found

    def origin(self, array: _Lanes) -> tuple[_Lanes | None, int]:
        """Return a live array and the constant added to it; ``None``: unknown."""
        known = self._known.get(id(array))
        if known is None or known[0]() is not array:
            return None, 0
        return known[1](), known[2]

    def _note(self, found: _Lanes, base: _Lanes, by: int) -> None:
        origin, so_far = self.origin(base)
        if origin is None:
            origin, so_far = base, 0
        if len(self._known) >= _MAX_ENTRIES:
            del self._known[next(iter(self._known))]
        by = (so_far + by + _HALF) % (2 * _HALF) - _HALF  # as it wraps
        self._known[id(found)] = weakref.ref(found), weakref.ref(origin), by
