"""Stores of a launch to an array of unknown element type."""

from dataclasses import dataclass, field

import numpy as np

from ..core.geometry import Flat
from .site import Site


@dataclass
class Written:
    """Stores of a launch to an array.

    Attributes:
        mask: Written bytes.
        stride: Largest common distance of the addresses of one store instruction; 0: each has one
            address.
    """

    mask: Flat
    stride: int = 0
    _sites: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, site: Site, places: Flat) -> None:
        """Record a store at these first bytes."""
        self.mask[(places[:, None] + np.arange(site.nbytes)).reshape(-1)] = True
        first, stride = self._sites.get(site.number, (int(places[0]), 0))
        stride = int(np.gcd.reduce(np.append(places - first, stride)))
        self._sites[site.number] = first, stride
        self.stride = max(stride for _, stride in self._sites.values())
