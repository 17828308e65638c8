"""Between which bytes accesses touch any; loops and unrolled loads ask again of the same arrays."""

from ..geometry import Addresses
from ..moves import Moves
from .event import Event, Spread
from .extents import extent, moved
from .recent import Recent
from .site import Site


class Reaches:
    """Remembers how far the last arrays reach."""

    def __init__(self) -> None:
        self._extent = Recent(extent, moved)

    def start(self, moves: Moves) -> None:
        """A batch begins."""
        self._extent.start(moves)

    def of(self, event: Event) -> tuple[int, int]:
        """What an access touches."""
        address, mask = event.address, event.mask
        if isinstance(address, Spread):
            address, mask = address.address, None
            if not address.size:  # of a copy that goes astray as a whole
                return 0, 0
        low, high, _ = self._extent(address) if mask is None else extent(address, mask)
        return low + event.site.offset, high + event.site.offset + event.site.nbytes

    def of_all(self, sites: tuple[Site, ...], address: Addresses) -> tuple[int, int]:
        """What some sites' accesses from one base touch together, by lanes that are off too."""
        low, high, _ = self._extent(address)
        ends = [site.offset + site.nbytes for site in sites]
        return low + min([site.offset for site in sites]), high + max(ends)
