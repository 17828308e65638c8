"""Write-once filter: is each location of an array written at most once, by any thread?"""

from __future__ import annotations

import numpy as np

from ...core.geometry import Flat, Geometry, Mask, Rows
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.storage.spaces import Allocation
from ..accesses import by_block, dense

_WIDE = 256
"""So many bytes are counted as fast as one location is sorted."""
_SCATTERED = 16
"""Places that reach over so many times their number are looked at as runs, if they are some."""


class WriteOnceBitmap:
    """Bitmap of the locations of one array that were written so far.

    A transposing kernel writes scattered locations, which cost 60 ns a lane in a table with one
    element for each location. They come in runs of neighbours; if all have one length and are
    aligned to it, one element for each run suffices, at 4 ns a lane.

    Args:
        home: The array.
        granule: Bytes of a location.
    """

    def __init__(self, home: Allocation, granule: int) -> None:
        self.base, self.shift = home.base, granule.bit_length() - 1
        self.size = len(home.buffer) >> self.shift
        self._unit, self._table = 0, np.zeros(0, bool)  # locations an element of the table

    def __getstate__(self) -> tuple[dict[str, object], int, Flat]:
        return vars(self) | {"_table": None}, len(self._table), np.packbits(self._table)

    def __setstate__(self, state: tuple[dict[str, object], int, Flat]) -> None:
        vars(self).update(state[0])
        self._table = np.unpackbits(state[2], count=state[1]).view(bool)

    def write(self, event: AccessEvent, g: Geometry) -> bool:
        """Record an access; return whether each lane is the first at its location."""
        if event.repeated:
            return False
        parts = max(1, event.site.nbytes >> self.shift)
        runs = self._runs(event, g, parts)
        if runs is not None:
            return self._write_runs(*runs)
        self._begin(1)
        address, _ = by_block(g, event.site, event.address, event.mask)
        places = (address - self.base) >> self.shift
        return all(_fresh(self._table, places + n if n else places) for n in range(parts))

    def merge(self, other: WriteOnceBitmap) -> bool:
        """Merge other writes; return whether no location was written twice."""
        if self._unit != other._unit:
            self._begin(1)
            other._begin(1)
        if (self._table & other._table).any():
            return False
        self._table |= other._table
        return True

    def _begin(self, unit: int) -> None:
        """Adapt the unit of the bitmap to an access with runs of another length or alignment."""
        if not self._unit:
            self._unit, self._table = unit, np.zeros(-(-self.size // unit), bool)
        elif self._unit not in (1, unit):
            self._table = np.repeat(self._table, self._unit)[: self.size]
            self._unit = 1

    def _runs(self, event: AccessEvent, g: Geometry, parts: int) -> tuple[Flat, int] | None:
        """Return the starts of a batch's runs, ascending, and their common length.

        ``None`` if the locations are dense, or do not form such runs.
        """
        address = event.address
        if isinstance(address, LaneAddressList) or event.mask is not None or address.ndim == 0:
            return None
        rows = g.factored(address)
        if rows.shape != (g.threads, g.columns):
            return None
        first, own = rows[0], rows[:, 0] - rows[0, 0]
        reach = int(first.max()) - int(first.min()) + int(own.max()) - int(own.min())
        if reach >> self.shift < _SCATTERED * g.lanes or not _sum(rows, own):
            return None
        first = (first + np.int64(event.site.offset - self.base)) >> self.shift
        own = ((own >> self.shift)[:, None] + np.arange(parts)).reshape(-1)
        for one, other in ((own, first), (first, own)):
            width = _run(one)
            if width > 1:
                begins = np.sort(one)[::width]
                return np.sort((begins[:, None] + other).reshape(-1)), width
        return None

    def _write_runs(self, begins: Flat, width: int) -> bool:
        if not (begins[1:] - begins[:-1] >= width).all():
            return False
        self._begin(1 if (begins % width).any() else width)
        if self._unit == width:
            at = begins // width
        else:
            at = (begins[:, None] + np.arange(width)).reshape(-1)
        fresh = not self._table[at].any()
        self._table[at] = True
        return fresh


def _sum(rows: Rows, own: Flat) -> bool:
    """Whether blocks, one column each, differ only in their start."""
    return bool((rows[:, 1:] - rows[:1, 1:] == own[:, None]).all())


def _run(places: Flat) -> int:
    """Return the common length of runs of consecutive places; 1 if there is none."""
    ordered = np.sort(places)
    breaks = np.flatnonzero(ordered[1:] != ordered[:-1] + 1)
    width = int(breaks[0]) + 1 if breaks.size else len(ordered)
    if len(ordered) % width:
        return 1
    runs = ordered.reshape(-1, width)
    return width if (runs == runs[:, :1] + np.arange(width)).all() else 1


def _fresh(touched: Mask, places: Flat) -> bool:
    """Mark locations; return whether they are distinct and none was marked before."""
    at = dense(places)
    if isinstance(at, slice):
        fresh = not touched[at].any()
        touched[at] = True
        return fresh
    if not len(places):
        return True
    near = touched[int(places.min()) : int(places.max()) + 1]
    if len(near) > _WIDE * len(places):
        places = np.sort(places)
        fresh = bool((places[1:] != places[:-1]).all()) and not touched[places].any()
        touched[places] = True
        return fresh
    # Counted, they need not be sorted: of 65k it takes 0.2 ms in place of 2.5.
    before = np.count_nonzero(near)
    touched[places] = True
    return bool(np.count_nonzero(near) - before == len(places))
