"""Uninitialised arrays, as ``cudaMalloc`` returns them."""

from typing import Any

import numpy as np

from .pointers import first_byte

_ANYTHING = 0xFF
"""What every byte of uninitialised memory holds here: NaN, -1, or the largest number."""


class Unset(np.ndarray[Any, Any]):
    """NumPy array that tracks which of its bytes are uninitialised.

    Assignments to elements or fields initialise them, and so does a kernel that writes them.
    Results of arithmetic, and copies by NumPy functions, are ordinary arrays. Views share the
    tracking, however they are made.
    """

    _memory: Any = None
    """Address of the tracked memory, and a flag for each of its bytes (0: initialised)."""
    _unset_at = 0
    """Index of a byte that was uninitialised at the last look, and often still is."""

    def __array_finalize__(self, made_from: Any) -> None:
        known = getattr(made_from, "_memory", None)
        self._memory = (
            known if known and 0 <= first_byte(self) - known[0] < known[1].nbytes else None
        )

    @property
    def missing(self) -> Any:
        """Array of the same shape with ones in uninitialised bytes; ``None`` if there are none."""
        if self._memory is None:
            return None
        begin, flags = self._memory
        return np.ndarray(self.shape, self.dtype, flags, first_byte(self) - begin, self.strides)

    @property
    def tracked(self) -> tuple[int, Any] | None:
        """Address of the tracked memory, and a flag for each of its bytes (0: initialised)."""
        found: tuple[int, Any] | None = self._memory
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        missing = self.missing
        if missing is not None:
            missing[key] = np.zeros((), missing[key].dtype)

    def copy(self, order: Any = "C") -> Any:
        """Return a copy with the same uninitialised elements."""
        made, missing = super().copy(order), self.missing
        if missing is not None:
            made._memory = first_byte(made), missing.copy(order)
        return made

    def of_its_memory(self, array: Any) -> Any:
        """Return another array over the same memory and tracking."""
        return Unset.over(array, *self._memory) if self._memory else array

    @staticmethod
    def over(array: Any, begin: int, flags: Any) -> Any:
        """Return an array over memory at an address, with flags for each byte (0: initialised)."""
        made = array.view(Unset)
        made._memory = begin, flags
        return made


def unset(shape: int | tuple[int, ...], dtype: Any = np.float32) -> Any:
    """Return an uninitialised array; reading an element before it is written is a hazard."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    array = np.full(count * kind.itemsize, _ANYTHING, np.uint8).view(kind).reshape(shape)
    made = array.view(Unset)
    made._memory = first_byte(made), np.ones(count * kind.itemsize, np.uint8)
    return made


def missing_of(array: Any) -> Any:
    """Return flags of an array's uninitialised bytes, in C order; ``None`` if there are none.

    They may be the array's own: not to be changed.
    """
    missing = getattr(array, "missing", None)
    if missing is None:
        return None
    flat = np.ascontiguousarray(missing).reshape(-1).view(np.bool_)
    if not flat.size or not flat[array._unset_at]:
        array._unset_at = int(flat.argmax()) if flat.size else 0
        if not flat.any():
            array._memory = None  # so that no later call looks again
            return None
    return flat


def still_unset(array: Any, missing: Any) -> None:
    """Update, after a launch, which bytes of an array are uninitialised.

    ``missing``: ``None`` for ordinary arrays.
    """
    if missing is not None and isinstance(array, Unset) and array.missing is not None:
        array.missing[...] = missing.view(array.dtype).reshape(array.shape)
