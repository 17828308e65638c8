"""Cache by array identity, for unrolled loops that share a base address."""

import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar

from ...core.address_deltas import AddressDeltas
from ...core.geometry import Lanes

Found = TypeVar("Found")
_MAX_ENTRIES = 8
"""Arrays whose results are kept; they are held as long."""
_SMALL, _CONTENTS = 512, 64
"""Lanes of an array that is known by its content as well, and how many such are: a loop that makes
its addresses anew goes to and fro between a few stages."""
_Entries = dict[int, tuple[Lanes, Found]]


class IdentityMemo(Generic[Found]):
    """Caches ``make(array)`` for the last few arrays.

    A register's array is never modified in place, so that identity implies equality. For an array
    that is another one plus a constant (``AddressDeltas``), ``move`` derives the result, or raises
    ``OverflowError``.
    """

    def __init__(self, make: Callable[[Lanes], Found], move: Callable[[Found, int], Found]) -> None:
        self._make, self._move = make, move
        self._entries: _Entries[Found] = {}
        self._contents: dict[tuple[object, ...], Found] = {}
        self._origins: _Entries[Found] = {}

    def start(self, moves: AddressDeltas) -> None:
        """Begin a batch: drop all entries."""
        self.moves = moves
        self._entries.clear()
        self._contents.clear()
        self._origins.clear()

    def __call__(self, array: Lanes) -> Found:
        """Return ``make(array)``."""
        known = self._entries.get(id(array))
        if known is None:
            known = self._keep(self._entries, array, self._found(array))
        return known[1]

    def _found(self, array: Lanes) -> Found:
        origin, by = self.moves.origin(array)
        known = None if origin is None else self._origins.get(id(origin))
        if known is not None:
            try:
                return self._move(known[1], by)
            except OverflowError:
                return self._make(array)
        content: tuple[object, ...] | None = None
        if 1 < array.size <= _SMALL:
            content = array.dtype.char, array.shape, array.tobytes()
            if content in self._contents:
                return self._contents[content]
        found = self._make(array)
        if content:
            if len(self._contents) >= _CONTENTS:
                self._contents.clear()
            self._contents[content] = found
        if origin is not None:
            with contextlib.suppress(OverflowError):
                self._keep(self._origins, origin, self._move(found, -by))
        return found

    def _keep(self, entries: _Entries[Found], array: Lanes, found: Found) -> tuple[Lanes, Found]:
        if len(entries) >= _MAX_ENTRIES:
            del entries[next(iter(entries))]
        entries[id(array)] = array, found
        return array, found
