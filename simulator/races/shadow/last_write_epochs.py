"""Who wrote each location of shared memory last: for most reads that is all there is to ask.

Where each write was known to the thread that wrote there next, who knows of the last one knows of
all: what threads have seen, they hand on whole. So such a read races with no write, and need not
be held against each of them (the epochs of FastTrack, Flanagan and Freund, PLDI 2009). A read
that does not know of the last write, or of a location where writes met, has to ask the table.
"""

import numpy as np

from ...core.geometry import Flat, Mask
from ...memory.site import Site
from ..accesses import Accesses
from ..in_flight.reaching_writes import NOBODY, KnownEpoch


class LastWriteEpochs:
    """The last write of each location.

    Args:
        places: How many locations there are, of all blocks together.
    """

    def __init__(self, places: int) -> None:
        self._thread = np.full(places, NOBODY, np.int32)
        self._time = np.zeros(places, np.int64)
        self._unordered_writes = np.zeros(places, bool)  # some write was not known to a later one
        self._met = False

    def clear(self) -> None:
        """All blocks have met: every write so far is known to all."""
        if self._met:
            self._unordered_writes[:] = False
        self._met = False

    def access(
        self, site: Site, place: Flat, lanes: Accesses, now: int, known_epoch: KnownEpoch
    ) -> Mask:
        """Lanes access their own block's memory, a place each; which surely race with no write."""
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
        """Whether threads know of the last write; of none, too."""
        writer, time = self._thread[place], self._time[place]
        known: Mask = (writer == NOBODY) | (writer == thread)
        rest = np.flatnonzero(~known)
        if rest.size == len(thread):
            return np.asarray(time <= known_epoch(writer, thread, column))
        if rest.size:
            other, mine = writer[rest], thread[rest]
            known[rest] = time[rest] <= known_epoch(other, mine, column[rest])
        return known
