"""FastTrack write epochs of shared memory (Flanagan and Freund, PLDI 2009).

Invariant: every write to a location happened before the next one. A read that happens after the
last write therefore happens after all of them and needs no further check. Reads that do not, and
reads of locations with unordered writes, fall back to shadow memory.
"""

import numpy as np

from ...core.geometry import Flat, Mask
from ...memory.site import Site
from ..accesses import Accesses
from ..order.vector_clock import KnownEpoch

NOBODY = -1
"""Thread of a location that has no write."""


class LastWriteEpochs:
    """Last write of each location.

    Args:
        places: Number of locations, of all blocks together.
    """

    def __init__(self, places: int) -> None:
        self._thread = np.full(places, NOBODY, np.int32)
        self._time = np.zeros(places, np.int64)
        self._unordered_writes = np.zeros(places, bool)  # some write was not known to a later one
        self._met = False

    def clear(self) -> None:
        """Handle a full barrier: every write so far happens before everything later."""
        if self._met:
            self._unordered_writes[:] = False
        self._met = False

    def access(
        self, site: Site, place: Flat, lanes: Accesses, now: int, known_epoch: KnownEpoch
    ) -> Mask:
        """Record accesses to the lanes' own blocks.

        Return those that certainly race with no write.
        """
        thread = lanes.thread
        known = self._knows(place, thread, lanes.column, known_epoch)
        if site.access != "load":
            self._thread[place], self._time[place] = thread, now
            known &= self._thread[place] == thread  # of several that write, one
            if not known.all():
                self._unordered_writes[place[~known]] = self._met = True
        if self._met:
            known &= ~self._unordered_writes[place]
        return known

    def _knows(self, place: Flat, thread: Flat, column: Flat, known_epoch: KnownEpoch) -> Mask:
        """Whether the last write happens before the threads' accesses; true without a write."""
        writer, time = self._thread[place], self._time[place]
        known: Mask = (writer == NOBODY) | (writer == thread)
        rest = np.flatnonzero(~known)
        if rest.size == len(thread):
            return np.asarray(time <= known_epoch(writer, thread, column))
        if rest.size:
            other, mine = writer[rest], thread[rest]
            known[rest] = time[rest] <= known_epoch(other, mine, column[rest])
        return known
