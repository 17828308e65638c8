"""Cached extents of accesses; loops and unrolled loads reuse address arrays."""

from ...core.address_deltas import AddressDeltas
from ...core.geometry import Addresses, Mask
from ..event import AccessEvent, LaneAddressList
from ..site import Site
from .address_range import extent, moved
from .identity_memo import IdentityMemo


class AddressRangeCache:
    """Extents of recent address arrays."""

    def __init__(self) -> None:
        self._extent = IdentityMemo(extent, moved)
        self._offsets: dict[tuple[int, int], tuple[int, int]] = {}
        self._masked: tuple[Addresses | None, Mask | None, tuple[int, int, int]]

    def start(self, moves: AddressDeltas) -> None:
        """Begin a batch."""
        self._extent.start(moves)
        self._masked = None, None, (0, 0, 0)

    def of(self, event: AccessEvent) -> tuple[int, int]:
        """Return the extent of an access."""
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
        """Return the common extent of sites with one base address, inactive lanes included."""
        low, high, _ = self._extent(address)
        key = sites[0].number, len(sites)
        if key not in self._offsets:
            stops = [site.offset + site.nbytes for site in sites]
            self._offsets[key] = min([site.offset for site in sites]), max(stops)
        first, last = self._offsets[key]
        return low + first, high + last
