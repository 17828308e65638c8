"""Where a launch stores to an array of which no type is known."""

from dataclasses import dataclass, field

import numpy as np

from ..core.geometry import Flat
from .site import Site


@dataclass
class Written:
    """Where a launch stores to an array.

    Attributes:
        mask: Its bytes that are written.
        stride: The most bytes by which all addresses of one store instruction lie apart; 0 if each
            has one address.
    """

    mask: Flat
    stride: int = 0
    _sites: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, site: Site, places: Flat) -> None:
        """A store to these bytes, each the first one of an access."""
        self.mask[(places[:, None] + np.arange(site.nbytes)).reshape(-1)] = True
        first, stride = self._sites.get(site.number, (int(places[0]), 0))
        stride = int(np.gcd.reduce(np.append(places - first, stride)))
        self._sites[site.number] = first, stride
        self.stride = max(stride for _, stride in self._sites.values())
