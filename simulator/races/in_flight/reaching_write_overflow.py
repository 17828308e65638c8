"""Reaching writes beyond the layers of ``LastWrites``.

All lanes of a block may add to one word, or race for it. Each of these writes is stored here with
some later writes that are ordered after it, until all threads know of one of those.
"""

import numpy as np

from ...core.geometry import Flat, Mask, Rows

KEY, THREAD, SITE, TIME, FENCER, FENCED, COVERS = range(7)
"""Rows of a record of a write: location and column, thread, site, time; the first thread ordered
after it that fenced, and when; then threads and times of writes ordered after it."""
SLOTS = 4
"""Later writes that are kept of each."""


class ReachingWriteOverflow:
    """Writes to some locations.

    Attributes:
        rows: ``(field, writes)``, int64, sorted by location.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: Rows = np.zeros((COVERS + 2 * SLOTS, 0), np.int64)

    def add(self, at: tuple[Flat, Flat], rows: Rows) -> None:
        """Add writes at places and columns; ``rows``: fields as in ``rows``, without the place."""
        rows[KEY] = at[0] * self.columns + at[1]
        rows = np.concatenate([self.rows, rows], axis=1)
        self.rows = rows[:, np.argsort(rows[KEY], kind="stable")]

    def meet(self, at: tuple[Flat, Flat]) -> tuple[Flat, Flat]:
        """Return the elements of ``at``, each with every write there."""
        keys = at[0] * self.columns + at[1]
        low, high = (np.searchsorted(self.rows[KEY], keys, side) for side in ("left", "right"))
        many = high - low
        element = np.repeat(np.arange(len(keys)), many)
        return element, np.arange(len(element)) + np.repeat(low - np.cumsum(many) + many, many)

    def cover(self, entry: Flat, knew: Mask, thread: Flat, now: int, everybody: Flat) -> None:
        """Record later writes over some.

        ``everybody``: epochs that all threads of a column know of.
        """
        covers = self.rows[COVERS:, entry]
        knew = knew & ~((covers[::2] == thread) & (covers[1::2] == now)).any(axis=0)
        for slot in range(COVERS, len(self.rows), 2):
            free = knew & (self.rows[slot + 1, entry] == 0)
            self.rows[slot, entry[free]] = thread[free]
            knew = knew & ~(free & (self.rows[slot, entry] == thread))
            self.rows[slot + 1, entry[free]] = now
        times = self.rows[COVERS + 1 :: 2]
        known = (times > 0) & (times <= everybody[self.rows[KEY] % self.columns])
        self.rows = self.rows[:, ~known.any(axis=0)]
