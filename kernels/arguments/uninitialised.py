"""Arrays as ``cudaMalloc`` leaves them: nothing has written their elements yet."""

from typing import Any

import numpy as np

_ANYTHING = 0xFF
"""What every byte of unset memory holds here: NaN, -1, or the largest number."""


class Unset(np.ndarray[Any, Any]):
    """A NumPy array that knows which of its bytes nothing has written.

    Assigning to elements or fields sets them; so does a kernel that writes them. Results of
    arithmetic, and copies by NumPy's own functions, are arrays like any other; its views know it
    too, however they are made.
    """

    _memory: Any = None
    """Where the memory begins that may be unset, and a byte for each of its bytes: 0 if set."""

    def __array_finalize__(self, made_from: Any) -> None:
        known = getattr(made_from, "_memory", None)
        self._memory = known if known and 0 <= _begin(self) - known[0] < known[1].nbytes else None

    @property
    def missing(self) -> Any:
        """An array like it with 1 in the bytes that are unset; ``None``: all are set."""
        if self._memory is None:
            return None
        begin, flags = self._memory
        return np.ndarray(self.shape, self.dtype, flags, _begin(self) - begin, self.strides)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        missing = self.missing
        if missing is not None:
            missing[key] = np.zeros((), missing[key].dtype)

    def copy(self, order: Any = "C") -> Any:
        """A copy, of which the same elements are unset."""
        made, missing = super().copy(order), self.missing
        if missing is not None:
            made._memory = _begin(made), missing.copy(order)
        return made

    def of_its_memory(self, array: Any) -> Any:
        """Another array of the same memory, which knows of unset bytes as this one does."""
        return Unset.over(array, *self._memory) if self._memory else array

    @staticmethod
    def over(array: Any, begin: int, flags: Any) -> Any:
        """An array of memory that begins at an address, with a byte for each: 0 if it is set."""
        made = array.view(Unset)
        made._memory = begin, flags
        return made


def _begin(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def unset(shape: int | tuple[int, ...], dtype: Any = np.float32) -> Any:
    """An array as ``cudaMalloc`` leaves it: reading what nothing wrote is a hazard."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    array = np.full(count * kind.itemsize, _ANYTHING, np.uint8).view(kind).reshape(shape)
    made = array.view(Unset)
    made._memory = _begin(made), np.ones(count * kind.itemsize, np.uint8)
    return made


def missing_of(array: Any) -> Any:
    """Which bytes of an array are unset, in C order, not to be changed; ``None`` if all are set."""
    missing = getattr(array, "missing", None)
    if missing is None:
        return None
    flat = np.ascontiguousarray(missing).reshape(-1).view(np.bool_)
    if flat.any():
        return flat
    array._memory = None  # so that nobody looks again
    return None


def still_unset(array: Any, missing: Any) -> None:
    """After a launch: which bytes of an array are unset still (``None``: it was no such array)."""
    if missing is not None and isinstance(array, Unset) and array.missing is not None:
        array.missing[...] = missing.view(array.dtype).reshape(array.shape)
