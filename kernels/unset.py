"""Arrays as ``cudaMalloc`` leaves them: nothing has written their elements yet."""

from typing import Any

import numpy as np

_ANYTHING = 0xFF
"""What every byte of unset memory holds here: NaN, -1, or the largest number."""


class Unset(np.ndarray[Any, Any]):
    """A NumPy array that knows which of its elements nothing has written.

    Assigning to elements sets them; so does a kernel that writes them. Views and results of
    arithmetic are arrays like any other.

    Attributes:
        missing: Which elements are unset; ``None``: it is an array like any other.
    """

    missing: Any = None

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if self.missing is not None:
            self.missing[key] = False

    def copy(self, order: Any = "C") -> Any:
        """A copy, of which the same elements are unset."""
        made = super().copy(order)
        if self.missing is not None:
            made.missing = self.missing.copy()
        return made


def unset(shape: int | tuple[int, ...], dtype: Any = np.float32) -> Any:
    """An array as ``cudaMalloc`` leaves it: reading what nothing wrote is a hazard.

    Args:
        shape: Its shape.
        dtype: The type of its elements.
    """
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    raw = np.full(count * kind.itemsize, _ANYTHING, np.uint8)
    array = raw.view(kind).reshape(shape).view(Unset)
    array.missing = np.ones(array.shape, bool)
    return array


def missing_of(array: Any) -> Any:
    """Which elements of an array are unset, in C order; ``None`` if all are set."""
    missing = getattr(array, "missing", None)
    return None if missing is None or not missing.any() else missing.reshape(-1)


def still_unset(array: Any, missing: Any) -> None:
    """After a launch: which bytes of an array are unset still (``None``: it was no such array)."""
    if missing is not None and isinstance(array, Unset):
        array.missing = missing.reshape(-1, array.itemsize).any(axis=1).reshape(array.shape)
