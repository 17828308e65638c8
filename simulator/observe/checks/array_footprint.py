"""Bytes of its arrays that a launch reads and writes, for the order between launches.

Addresses are those of host memory, so that two launches are comparable if their arguments are views
of one array, or one array under two names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.arguments.pointers import existence, first_byte

from ...core.geometry import Flat, Geometry
from ...events import Observer
from ...memory.event import AccessEvent, CompactAccessEvent, LaneAddressList
from ...memory.site import Site
from ...memory.storage.spaces import Allocation
from ...races.accesses import lanes_of


@dataclass(frozen=True)
class ArrayFootprint:
    """Bytes of an array accessed in one way; the array itself is not referenced.

    Attributes:
        name: Name of the parameter.
        address: Address in host memory.
        itemsize: Bytes of an element.
        how: ``load``, ``store``, ``atomic`` (includes strong stores), or ``peek`` (a strong load).
        starts: Start of each run in host memory, int64, ascending.
        stops: One past the end of each run.
        exists: Whether the memory still belongs to that array.
    """

    name: str
    address: int
    itemsize: int
    how: str
    starts: Flat
    stops: Flat
    exists: Callable[[], bool]

    @classmethod
    def marked(cls, array: Any, name: str, how: str, marks: Flat, granule: int) -> ArrayFootprint:
        """Return the footprint of marked granules of an array, in C order."""
        address = first_byte(array)
        bounds = _runs(marks, granule, array, address)
        return cls(name, address, array.itemsize, how, *bounds, existence(array))

    @classmethod
    def whole(cls, array: Any, name: str, how: str) -> ArrayFootprint:
        """Return the footprint of a whole array."""
        if not (array.flags.c_contiguous or array.flags.f_contiguous) or not array.size:
            return cls.marked(array, name, how, np.ones(array.nbytes, bool), 1)
        address = first_byte(array)
        starts = np.array([address])
        return cls(name, address, array.itemsize, how, starts, starts + array.nbytes,
                   existence(array))  # fmt: skip


TOUCHES = ("load", "store", "atomic", "peek")
"""Kinds of touches; a strong load is a ``peek``, a strong store counts as ``atomic``."""
_LANES = 1 << 18
"""Addresses that are gathered before they are marked."""


class TouchRecorder(Observer):
    """Marks accessed granules of the first ``count`` arrays, ``granule`` bytes each."""

    def __init__(self, granule: int, count: int) -> None:
        self.granule, self.count = granule, count
        self.marks: dict[tuple[int, str], Flat] = {}
        self.whole: set[tuple[int, str]] = set()
        self._gathered: dict[tuple[int, int], list[AccessEvent | CompactAccessEvent]] = {}
        self._lanes = 0

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``; the accessing lane is irrelevant."""
        self.access(event)

    def access(self, event: AccessEvent | CompactAccessEvent) -> None:
        """See ``Observer``; address arrays are immutable."""
        home = event.home
        if event.repeated or not isinstance(home, Allocation) or not 0 <= home.number < self.count:
            return
        key = home.number, event.site.number
        if key not in self._gathered:
            self._gathered[key] = []
        self._gathered[key].append(event)
        if isinstance(event.address, LaneAddressList):
            self._lanes += event.address.address.size
        else:
            self._lanes += event.address.size if event.mask is None else self.geometry.lanes
        if self._lanes > _LANES:
            self._mark()

    def finish(self) -> None:
        """See ``Observer``; fully marked arrays are not tracked further."""
        self._mark()
        self.whole |= {key for key, marks in self.marks.items() if marks.all()}

    def _mark(self) -> None:
        for (number, _), events in self._gathered.items():
            site, home = events[0].site, events[0].home
            key = number, touch_kind(site)
            if key in self.whole:
                continue
            if key not in self.marks:
                self.marks[key] = np.zeros(-(-home.nbytes // self.granule), bool)
            size = site.size if isinstance(events[0].address, LaneAddressList) else site.nbytes
            first = np.concatenate([self._addresses(event) for event in events])
            first = (first - (home.base - site.offset)) // self.granule
            for further in range(-(-size // self.granule)):
                self.marks[key][first + further] = True
        self._gathered.clear()
        self._lanes = 0

    def _addresses(self, event: AccessEvent | CompactAccessEvent) -> Flat:
        address, mask = event.address, event.mask
        if isinstance(address, LaneAddressList):
            assert isinstance(event, AccessEvent)
            return lanes_of(self.geometry, event).address - event.site.offset
        if mask is not None:
            address, mask = np.broadcast_arrays(address, mask)
            return address[mask]
        return address.reshape(-1)

    def stored(self, number: int, nbytes: int) -> Flat:
        """Return which bytes of an array were written, ``(nbytes,)``, bool."""
        found = np.zeros(nbytes, bool)
        for how in ("store", "atomic"):
            if (number, how) in self.marks:
                found |= np.repeat(self.marks[number, how], self.granule)[:nbytes]
        return found

    def merge(self, other: TouchRecorder) -> None:
        """See ``Observer``."""
        for key, marks in other.marks.items():
            self.marks[key] = self.marks[key] | marks if key in self.marks else marks
        self.whole |= other.whole

    def touched(self, arrays: list[Any], names: list[str]) -> list[ArrayFootprint]:
        """Return the footprints of the launch's arrays."""
        return [
            ArrayFootprint.marked(arrays[number], names[number], how, marks, self.granule)
            for (number, how), marks in self.marks.items()
        ]


def touch_kind(site: Site) -> str:
    """Return how a site touches arrays: one of ``TOUCHES``."""
    if not site.strong or site.has_narrow_scope:
        return site.access
    return "peek" if site.access == "load" else "atomic"


def _runs(marks: Flat, granule: int, array: Any, address: int) -> tuple[Flat, Flat]:
    """Return the marked bytes of an array as runs of addresses."""
    if not array.flags.c_contiguous:
        axes = [np.arange(n) * step for n, step in zip(array.shape, array.strides, strict=True)]
        places = functools.reduce(np.add.outer, [*axes, np.arange(array.itemsize)]).reshape(-1)
        on = np.sort(places[np.repeat(marks, granule)[: array.nbytes]])
        gaps = np.flatnonzero(np.diff(on) > 1)
        return address + on[np.r_[0, gaps + 1]], address + on[np.r_[gaps, len(on) - 1]] + 1
    edges = np.flatnonzero(np.diff(np.r_[False, marks, False]))
    bounds = address + np.minimum(edges * granule, array.nbytes)
    return bounds[::2], bounds[1::2]
