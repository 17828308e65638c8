"""Tables with the first or the least value of each key."""

import numpy as np

from ..core.geometry import Flat

_LAST = 1 << 62


class Firsts:
    """Table of keys in ascending order, with a value for each."""

    def __init__(self) -> None:
        # The last key is found for all above the others.
        self._keys, self._values = (np.full(1, _LAST, np.int64) for _ in range(2))

    def add(self, keys: Flat, values: Flat) -> None:
        """Add keys; existing keys keep their values."""
        keys, first = np.unique(keys, return_index=True)
        at = np.searchsorted(self._keys, keys)
        new = np.flatnonzero(self._keys[at] != keys)
        if new.size:
            self._keys = np.insert(self._keys, at[new], keys[new])
            self._values = np.insert(self._values, at[new], values[first[new]])

    def lower(self, keys: Flat, values: Flat) -> None:
        """Add keys; of two values of a key the smaller one stays."""
        self.add(keys, values)
        np.minimum.at(self._values, np.searchsorted(self._keys, keys), values)

    def of(self, keys: Flat) -> Flat:
        """Return the values of some keys; -1 for unknown ones."""
        at = np.searchsorted(self._keys, keys)
        return np.where(self._keys[at] == keys, self._values[at], -1)
