"""When something happened first, by key."""

import numpy as np

from ..geometry import Flat

_LAST = 1 << 62


class Firsts:
    """A table of keys in ascending order, with what was said of each the first time.

    ``count``: of columns that are said.
    """

    def __init__(self, count: int) -> None:
        self._rows = np.full((1 + count, 1), _LAST, np.int64)  # the last one is found for all above

    def add(self, keys: Flat, *columns: Flat) -> None:
        """Something happens; of keys that are known already nothing more is kept."""
        keys, first = np.unique(keys, return_index=True)
        at = np.searchsorted(self._rows[0], keys)
        new = np.flatnonzero(self._rows[0, at] != keys)
        if new.size:
            rows = np.stack([keys[new], *(column[first[new]] for column in columns)])
            self._rows = np.insert(self._rows, at[new], rows, axis=1)

    def of(self, keys: Flat) -> Flat:
        """The columns of some keys, a row each; -1: nothing is known."""
        found = self._rows[:, np.searchsorted(self._rows[0], keys)]
        return np.where(found[0] == keys, found[1:], -1)
