"""Index of an access: the lanes' places in one or several memories."""

from collections.abc import Sequence

import numpy as np

from ...core.geometry import Addresses, Lanes, Mask
from ...isa import DTYPES
from ..site import Site
from ..storage.spaces import POISON, Allocation, ColumnIndex, GlobalIndex, Home, PlaceIndex


class MixedIndex:
    """Index of an access with lanes in several memories, or in none."""

    space = "mixed"

    def __init__(self, parts: list[tuple[Mask, PlaceIndex]], ptx_type: str, count: int) -> None:
        self.parts, self.dtype, self.count = parts, DTYPES[ptx_type], count

    def load(self) -> tuple[Lanes, ...]:
        """Return the elements; poison for lanes without a place."""
        poison = np.frombuffer(bytes([POISON]) * self.dtype.itemsize, self.dtype)[0]
        results: list[Lanes] = [poison] * self.count
        for mask, index in self.parts:
            values = index.load()
            results = [np.where(mask, v, r) for v, r in zip(values, results, strict=True)]
        return tuple(results)

    def store(self, values: Sequence[Lanes], mask: Mask | None) -> None:
        """Write each part under its own mask."""
        for part, index in self.parts:
            index.store(values, part if mask is None else part & mask)


Index = PlaceIndex | MixedIndex
"""Where the lanes of an access fall."""


def place_index(
    home: Home, relative: Addresses, site: Site, columns: Lanes | None = None
) -> PlaceIndex:
    """Return the index of lanes by their offset in a memory; ``columns``: of compact lanes."""
    if isinstance(home, Allocation):
        return GlobalIndex(home, relative, site.type, site.count)
    return ColumnIndex(home, relative, site.type, site.count, columns)
