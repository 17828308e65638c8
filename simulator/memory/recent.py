"""What was worked out of an array, kept for the next access: unrolled loops share a base."""

from collections.abc import Callable
from typing import Generic, TypeVar

from ..geometry import Lanes

Found = TypeVar("Found")
_MOST = 8
"""Arrays whose results are kept; they are held as long."""


class Recent(Generic[Found]):
    """``make`` of an array, done once for each of the last few that came.

    A register's array is never changed in place: the same object has the same content.
    """

    def __init__(self, make: Callable[[Lanes], Found]) -> None:
        self._make = make
        self._kept: dict[int, tuple[Lanes, Found]] = {}

    def __call__(self, array: Lanes) -> Found:
        """What was made of it."""
        known = self._kept.get(id(array))
        if known is None:
            if len(self._kept) >= _MOST:
                del self._kept[next(iter(self._kept))]
            known = self._kept[id(array)] = array, self._make(array)
        return known[1]

    def forget(self) -> None:
        """Let go of them."""
        self._kept.clear()
