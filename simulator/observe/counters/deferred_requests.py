"""Deferred requests, evaluated together with others of their instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...core.compact_lanes import in_warps
from ...core.geometry import WARP, Addresses, Flat, Geometry, Mask, Rows, as_mask
from ...memory.site import Site
from .banks import inactive_address, near
from .costs import Requests, Sorted, by_word

_SHIFT = WARP.bit_length() - 1
_TOGETHER = 1 << 20
"""Lanes that are judged at once."""
_FEW = 1 << 15
"""An access of at most so many lanes is put by: judged by itself it would cost a hundred
microseconds of calls, and 3 ns a lane."""


class LaneSample(NamedTuple):
    """Active lanes of an access; places: 32 times the request's number plus the lane.

    ``offset``: bytes from the addresses to the access.
    """

    site: Site
    space: str
    address: Flat
    places: Flat
    requests: int
    offset: int = 0


class _Chosen(NamedTuple):
    """Active lanes of a mask: the mask, their indices, and places."""

    geometry: Geometry
    mask: Mask | None
    shape: tuple[int, ...]
    numbers: Flat
    places: Flat


class DeferredRequests:
    """Deferred requests for each slot of a table of totals; ``judge`` evaluates ``requests``.

    ``sparse``: whether only the figures of ``Sorted`` are needed.
    """

    def __init__(
        self, totals: Rows, judge: Callable[[Site, str, Rows], Flat], sparse: bool
    ) -> None:
        self.totals, self.judge, self.sparse = totals, judge, sparse
        self._waiting: dict[tuple[int, int], list[LaneSample]] = {}
        self._newest: dict[int, LaneSample] = {}
        self._lanes = 0
        self._chosen: _Chosen | None = None

    def few(
        self, g: Geometry, site: Site, space: str, address: Addresses, mask: Mask | None
    ) -> LaneSample | None:
        """Return the active lanes of an access; ``None`` if they are many."""
        rows, on = g.factored(address), g.factored(as_mask(mask))
        if rows.shape != on.shape:
            rows, on = np.broadcast_arrays(rows, on)
        last = self._chosen
        if last is None or last[0] is not g or last[1] is not mask or last[2] != on.shape:
            if on.size > _FEW and np.count_nonzero(on) * 4 > on.size:
                return None
            column, thread = np.divmod(np.flatnonzero(on.T), g.threads)
            numbers, places = thread * on.shape[1] + column, in_warps(g, thread, column)
            last = self._chosen = _Chosen(g, mask, on.shape, numbers, places)
        places = last.places
        warps = int(places[-1]) // WARP + 1 if len(places) else 0
        return LaneSample(site, space, rows.reshape(-1).take(last.numbers), places, warps)

    def add(self, slot: int, some: LaneSample) -> None:
        """Defer an access."""
        self._newest[slot] = some
        if not len(some.address):  # every lane's predicate is off
            return
        self._waiting.setdefault((slot, some.offset), []).append(some)
        self._lanes += some.requests * WARP
        if self._lanes > _TOGETHER:
            self.settle()

    def again(self, slot: int) -> bool:
        """Repeat the slot's last access; return whether that was deferred."""
        if slot not in self._newest:
            return False
        self.add(slot, self._newest[slot])
        return True

    def other(self, slot: int) -> None:
        """Note that the slot's last access was not deferred."""
        self._newest.pop(slot, None)

    def settle(self) -> None:
        """Evaluate everything, one slot at a time."""
        known: dict[object, Sorted | None] = {}
        requests: dict[object, Requests] = {}
        for (slot, offset), several in self._waiting.items():
            site, space = several[0].site, several[0].space
            if self.sparse and space in ("global", "local") and site.access != "atomic":
                key = tuple([(id(some.address), id(some.places)) for some in several])
                if key not in known:  # several accesses from one base differ by their offset
                    known[key] = _scattered(several, requests)
                found = known[key]
                if found and abs(offset) < Sorted.REACH:
                    figures = found.cost(site.nbytes, offset)
                    local = space == "local"
                    self.totals[slot] += by_word(figures, site.nbytes) if local else figures
                    continue
            lanes, places, count = _together(several, offset)
            rows = np.full((count, WARP), inactive_address(lanes), lanes.dtype)
            rows.reshape(-1)[places] = lanes
            self.totals[slot] += self.judge(site, space, rows)
        self._waiting.clear()
        self._lanes = 0


def _together(several: list[LaneSample], offset: int) -> tuple[Flat, Flat, int]:
    """Return addresses (as ``near``), places among all requests, and the number of requests."""
    address = np.concatenate([some.address for some in several])
    lanes = near(address + np.int64(offset) if offset else address, None)
    first = np.cumsum([0, *(some.requests for some in several)]) * WARP
    places = [some.places + at for some, at in zip(several, first, strict=False)]
    return lanes, np.concatenate(places), int(first[-1]) // WARP


def _scattered(several: list[LaneSample], requests: dict[object, Requests]) -> Sorted | None:
    """Return the sorted lanes of several samples, if their addresses are close enough.

    ``requests``: cache by the identity of the places, which many accesses share.
    """
    lanes = near(np.concatenate([some.address for some in several]), None)
    if lanes.dtype != np.uint32:
        return None
    key = tuple([id(some.places) for some in several])
    found = requests.get(key)
    if found is None:
        begins, count = list[Flat](), 0
        for places in (some.places for some in several):
            warps = places >> _SHIFT
            starts = np.flatnonzero(warps[1:] != warps[:-1])
            begins += [np.array([count]), starts + (count + 1)]
            count += len(places)
        found = requests[key] = Requests(np.concatenate(begins), count)
    return found.sorted(lanes)
