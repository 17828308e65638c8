"""Between which bytes accesses touch any; loops and unrolled loads ask again of the same arrays."""

from ...core.address_deltas import AddressDeltas
from ...core.geometry import Addresses, Mask
from ..event import AccessEvent, LaneAddressList
from ..site import Site
from .address_range import extent, moved
from .identity_memo import IdentityMemo


class AddressRangeCache:
    """Remembers how far the last arrays reach."""

    def __init__(self) -> None:
        self._extent = IdentityMemo(extent, moved)
        self._offsets: dict[tuple[int, int], tuple[int, int]] = {}
        self._masked: tuple[Addresses | None, Mask | None, tuple[int, int, int]]

    def start(self, moves: AddressDeltas) -> None:
        """A batch begins."""
        self._extent.start(moves)
        self._masked = None, None, (0, 0, 0)

    def of(self, event: AccessEvent) -> tuple[int, int]:
        """What an access touches."""
        address, mask = event.address, event.mask
        if isinstance(address, LaneAddressList):
            address, mask = address.address, None
            if not address.size:  # of a copy that goes astray as a whole
                return 0, 0
        if mask is None:
            low, high, _ = self._extent(address)
        else:
            if self._masked[0] is not address or self._masked[1] is not mask:
                self._masked = address, mask, extent(address, mask)
            low, high, _ = self._masked[2]
        return low + event.site.offset, high + event.site.offset + event.site.nbytes

    def of_all(self, sites: tuple[Site, ...], address: Addresses) -> tuple[int, int]:
        """What some sites' accesses from one base touch together, by lanes that are off too."""
        low, high, _ = self._extent(address)
        key = sites[0].number, len(sites)
        if key not in self._offsets:
            stops = [site.offset + site.nbytes for site in sites]
            self._offsets[key] = min([site.offset for site in sites]), max(stops)
        first, last = self._offsets[key]
        return low + first, high + last
