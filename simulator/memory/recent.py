"""What was worked out of an array, kept for the next access: unrolled loops share a base."""

from collections.abc import Callable
from typing import Generic, TypeVar

from ..geometry import Lanes
from ..moves import Moves

Found = TypeVar("Found")
_MOST = 8
"""Arrays whose results are kept; they are held as long."""
_Kept = dict[int, tuple[Lanes, Found]]


class Recent(Generic[Found]):
    """``make`` of an array, done once for each of the last few that came.

    A register's array is never changed in place: the same object has the same content. Of one that
    is another moved by a number (``Moves``) ``move`` tells it from what was made of that one, or
    raises ``OverflowError``.
    """

    def __init__(self, make: Callable[[Lanes], Found], move: Callable[[Found, int], Found]) -> None:
        self._make, self._move = make, move
        self._kept: _Kept[Found] = {}
        self._origins: _Kept[Found] = {}

    def start(self, moves: Moves) -> None:
        """A batch begins: let go of what there was."""
        self.moves = moves
        self._kept.clear()
        self._origins.clear()

    def __call__(self, array: Lanes) -> Found:
        """What was made of it."""
        known = self._kept.get(id(array))
        if known is None:
            known = self._keep(self._kept, array, self._found(array))
        return known[1]

    def _found(self, array: Lanes) -> Found:
        origin, by = self.moves.origin(array)
        if origin is None:
            return self._make(array)
        known = self._origins.get(id(origin))
        try:
            if known is not None:
                return self._move(known[1], by)
            found = self._make(array)
            self._keep(self._origins, origin, self._move(found, -by))
        except OverflowError:
            found = self._make(array)
        return found

    def _keep(self, kept: _Kept[Found], array: Lanes, found: Found) -> tuple[Lanes, Found]:
        if len(kept) >= _MOST:
            del kept[next(iter(kept))]
        kept[id(array)] = array, found
        return array, found
