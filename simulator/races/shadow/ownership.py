"""Cheap filters of global arrays, which save most of them full shadow memory.

Arrays with one kind of use cannot race. For arrays that are read and written, a dense table has one
owner for each location. Locations that one thread accesses, that are only read, or that only
atomics access cannot race; the others are contested and need shadow memory.
"""

from __future__ import annotations

import numpy as np

from ...core.geometry import Addresses, Flat, Geometry, Lanes, Mask
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import Site
from ..accesses import EscalateCheck, dense
from .conflicts import WRITTEN, strong_size, use
from .write_once import WriteOnceBitmap

_READERS, _CONTESTED, _STRONG = -1, -2, -10


class OwnershipTable:
    """Owners of one array's locations, of which there are ``size``.

    Attributes:
        has_contention: Whether any location is ``contested``.
    """

    def __init__(self, size: int, everyone: int) -> None:
        self.owner: Flat = np.zeros(size, np.int32 if everyone < 1 << 31 else np.int64)
        self.written = np.zeros(size, bool)
        self.has_contention = False
        self._last: dict[int, tuple[Addresses, Mask | None]] = {}

    def reset_cache(self) -> None:
        """Forget repeated accesses, as other threads follow."""
        self._last.clear()

    def begin(self, places: range) -> None:
        """Reset locations of reallocated memory; contested ones stay contested."""
        here = slice(places.start, places.stop)
        gone = self.owner[here] != _CONTESTED
        self.owner[here][gone] = self.written[here][gone] = 0
        self.reset_cache()

    def is_repeat(self, event: AccessEvent) -> bool:
        """Whether an instruction repeats its last access, so that nothing changes."""
        if event.repeated or isinstance(event.address, LaneAddressList):
            return event.repeated
        last = self._last.get(event.site.number)
        self._last[event.site.number] = (event.address, event.mask)
        return last is not None and _same(last[0], event.address) and _same(last[1], event.mask)

    def access(self, site: Site, place: Flat, thread: Flat) -> None:
        """Record accesses, one location a lane."""
        owner = self.owner
        mine = thread.astype(owner.dtype) + owner.dtype.type(1)
        at = dense(place)
        state = owner[at]
        if size := strong_size(site):
            code = _STRONG - size
            bad = (state != 0) & (state != code) & (state != mine)
            used = state > 0
            owner[place[state == 0]] = code
            self._contest(place[bad])
            if site.access != "load":
                self.written[place[used]] = True
            return
        if isinstance(at, slice) and not state[0] and not np.bitwise_or.reduce(state):
            owner[at] = mine  # one lane a location, and nobody has been there
            if site.access != "load":
                self.written[at] = True
            return
        other = state != mine
        if other.any():
            free = state == 0
            if free.all():
                owner[at] = mine
            else:
                owner[place[free]] = mine[free]
            other = owner[at] != mine  # of lanes at the same place one owns it
        if site.access == "load":
            if other.any():
                self._also_read(place[other])
            return
        self.written[at] = True
        if other.any():
            self._contest(place[other])

    def _also_read(self, place: Flat) -> None:
        """Record reads of locations that other threads own."""
        state = self.owner[place]
        shared = (state == _READERS) | ((state > 0) & ~self.written[place])
        self.owner[place[shared]] = _READERS
        self._contest(place[~shared])

    def merge(self, other: OwnershipTable) -> None:
        """Merge the owners that other threads' accesses gave."""
        part = span(other.owner)
        owner, given = self.owner[part], other.owner[part]
        written, also = self.written[part], other.written[part]
        at = np.flatnonzero((owner != 0) & (given != 0)) if owner.any() else slice(0)
        mine, theirs = owner[at], given[at]
        read = [(o == _READERS) | ((o > 0) & ~w[at]) for o, w in ((mine, written), (theirs, also))]
        both = np.where(read[0] & read[1], _READERS, _CONTESTED)
        np.bitwise_or(owner, given, out=owner)  # elsewhere one of them is zero
        owner[at] = np.where((mine == theirs) & (mine < 0), mine, both)
        written |= also
        self.has_contention |= other.has_contention or bool(np.any(owner[at] == _CONTESTED))

    def __getstate__(self) -> tuple[object, ...]:
        part = span(self.owner)
        return len(self.owner), part, self.owner[part], self.written[part], self.has_contention

    def __setstate__(self, state: tuple[int, slice, Flat, Flat, bool]) -> None:
        size, part, owner, written, self.has_contention = state
        self.owner, self.written, self._last = np.zeros(size, owner.dtype), np.zeros(size, bool), {}
        self.owner[part], self.written[part] = owner, written

    def _contest(self, place: Flat) -> None:
        self.has_contention |= len(place) > 0
        self.owner[place] = _CONTESTED

    @property
    def contested(self) -> Flat:
        """Return a Boolean mask of the locations that need shadow memory."""
        return np.equal(self.owner, _CONTESTED)


def span(table: Flat) -> slice:
    """Return the slice from the first to the last non-zero place of a table, in whole words."""
    words = table.view(np.uint64) != 0
    per = 8 // table.itemsize
    first, last = int(words.argmax()), int(words[::-1].argmax())
    return slice(first * per, (len(words) - last) * per) if words[first] else slice(0, 0)


def _same(one: Lanes | None, other: Lanes | None) -> bool:
    if one is other:
        return True
    if one is None or other is None:
        return False
    return bool(one.shape == other.shape and np.array_equal(one, other))


class ArrayAccessFilter:
    """Filter: arrays that are only read, written once per element, or accessed only strongly."""

    def __init__(self, granule: int) -> None:
        self.granule = granule
        self._touches: dict[int, WriteOnceBitmap] = {}
        self._uses: dict[int, str] = {}

    def check(self, event: AccessEvent, g: Geometry) -> None:
        """Check an access to global memory.

        Raises:
            EscalateCheck: The access may race.
        """
        number, how = event.home.number, use(event.site)
        self._use(number, how)
        if how == WRITTEN:
            touches = self._touches.get(number)
            if touches is None:
                touches = self._touches[number] = WriteOnceBitmap(event.home, self.granule)
            if not touches.write(event, g):
                raise EscalateCheck(number)

    def reads(self, number: int) -> bool:
        """Whether a further weak read of an array changes nothing."""
        return self._uses.get(number) == "read"

    def _use(self, number: int, how: str) -> None:
        if self._uses.setdefault(number, how) != how:
            raise EscalateCheck(number)

    def merge(self, other: ArrayAccessFilter) -> None:
        """Merge the uses by other threads.

        Raises:
            EscalateCheck: The combined uses may race.
        """
        for number, how in other._uses.items():
            self._use(number, how)
        for number, touches in other._touches.items():
            mine = self._touches.setdefault(number, touches)
            if mine is not touches and not mine.merge(touches):
                raise EscalateCheck(number)
