"""Arrays as ``cudaMalloc`` leaves them: nothing has written their elements yet."""

from typing import Any

import numpy as np

_ANYTHING = 0xFF
"""What every byte of unset memory holds here: NaN, -1, or the largest number."""


class Unset(np.ndarray[Any, Any]):
    """A NumPy array that knows which of its bytes nothing has written.

    Assigning to elements or fields sets them; so does a kernel that writes them. Results of
    arithmetic are arrays like any other.

    Attributes:
        missing: An array like it with ones in the bytes that are unset; ``None``: it is an
            array like any other.
    """

    missing: Any = None

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if self.missing is not None:
            self.missing[key] = np.zeros((), self.missing[key].dtype)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if self.missing is not None and isinstance(found, Unset):
            found.missing = self.missing[key]
        return found

    def copy(self, order: Any = "C") -> Any:
        """A copy, of which the same elements are unset."""
        made = super().copy(order)
        if self.missing is not None:
            made.missing = self.missing.copy()
        return made


def unset(shape: int | tuple[int, ...], dtype: Any = np.float32) -> Any:
    """An array as ``cudaMalloc`` leaves it: reading what nothing wrote is a hazard."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    raw, missing = np.full((2, count * kind.itemsize), _ANYTHING, np.uint8)
    array = raw.view(kind).reshape(shape).view(Unset)
    array.missing = missing.view(kind).reshape(shape)
    return array


def missing_of(array: Any) -> Any:
    """Which bytes of an array are unset, in C order; ``None`` if all are set."""
    missing = getattr(array, "missing", None)
    if missing is None:
        return None
    flat = np.ascontiguousarray(missing).reshape(-1).view(np.uint8) != 0
    return flat if flat.any() else None


def still_unset(array: Any, missing: Any) -> None:
    """After a launch: which bytes of an array are unset still (``None``: it was no such array)."""
    if missing is not None and isinstance(array, Unset):
        raw = np.where(missing, np.uint8(_ANYTHING), np.uint8(0))
        array.missing[...] = raw.view(array.dtype).reshape(array.shape)
