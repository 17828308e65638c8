"""Access bitmaps of an array, to detect conflicts between processes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.geometry import Flat
from ..races.shadow.ownership import span


class Marks:
    """Flags of each location of an array: read, written, or summed (and how)."""

    def __init__(self, size: int) -> None:
        self.read, self.written = np.zeros(size, bool), np.zeros(size, bool)
        self.summed = np.zeros(size, np.uint8)

    def bits(self) -> Bits:
        """Return the flags from the first to the last marked location."""
        spans = [span(table) for table in (self.read, self.written, self.summed)]
        used = [one for one in spans if one.stop]
        first = min((one.start for one in used), default=0) // 8
        part = slice(8 * first, max((one.stop for one in used), default=0))
        read, written = np.packbits(self.read[part]), np.packbits(self.written[part])
        if not spans[2].stop:
            return Bits(first, read, written, None)
        summed = np.zeros(8 * len(read), np.uint8)
        summed[: part.stop - part.start] = self.summed[part]
        return Bits(first, read, written, summed)


class Bits(NamedTuple):
    """Packed ``Marks`` of a part of an array, as exchanged and compared.

    Attributes:
        first: Start of the part, in units of eight locations.
        read, written: One bit for each location.
        summed: One byte for each location; empty if there are no sums.
    """

    first: int
    read: Flat
    written: Flat
    summed: Flat | None

    def _part(self, first: int, last: int) -> Bits:
        part = slice(first - self.first, last - self.first)
        summed = None if self.summed is None else self.summed[8 * part.start : 8 * part.stop]
        return Bits(first, self.read[part], self.written[part], summed)

    @property
    def _changed(self) -> Flat:
        return self.written if self.summed is None else self.written | np.packbits(self.summed > 0)

    def meets(self, other: Bits) -> bool:
        """Whether one modifies what the other accesses, except for sums of the same kind."""
        first = max(self.first, other.first)
        last = min(one.first + len(one.read) for one in (self, other))
        if first >= last:
            return False
        one, two = self._part(first, last), other._part(first, last)
        for a, b in ((one, two), (two, one)):
            if (a._changed & (b.read | b.written)).any():
                return True
        if one.summed is None or two.summed is None:
            return False
        return bool(((one.summed != two.summed) & (one.summed > 0) & (two.summed > 0)).any())

    def merged(self, other: Bits) -> Bits:
        """Return the union."""
        first = min(self.first, other.first)
        last = max(one.first + len(one.read) for one in (self, other))
        read, written = (np.zeros(last - first, np.uint8) for _ in range(2))
        sums = self.summed is not None or other.summed is not None
        summed = np.zeros(8 * (last - first), np.uint8) if sums else None
        for one in (self, other):
            part = slice(one.first - first, one.first - first + len(one.read))
            read[part] |= one.read
            written[part] |= one.written
            if summed is not None and one.summed is not None:
                eight = slice(8 * part.start, 8 * part.stop)
                np.maximum(summed[eight], one.summed, out=summed[eight])
        return Bits(first, read, written, summed)

    def where(self, size: int) -> Flat | slice:
        """Return the written locations; a slice if they are contiguous."""
        written = np.zeros(size, bool)
        bits = np.unpackbits(self.written)[: size - 8 * self.first]
        written[8 * self.first :][: len(bits)] = bits.view(bool)
        return places(written)


def places(written: Flat) -> Flat | slice:
    """Return the marked locations; a slice if they are contiguous."""
    part = span(written)
    return part if written[part].all() else written
