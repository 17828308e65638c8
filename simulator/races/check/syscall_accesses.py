"""Memory accesses of system functions.

``%s`` of ``printf`` reads a string, ``free`` ends its bytes.

A string is read up to its NUL like by loads. ``free`` conflicts with all later uses of the bytes,
like a store to each of them.
"""

from collections.abc import Iterable

import numpy as np

from ...compile.program import CompiledBlock
from ...core.geometry import Geometry
from ...events import Observer
from ...isa.memory.address_windows import WINDOWS
from ...memory.addressing import distributed_shared
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import FREES, Site
from ...memory.storage.spaces import Allocation
from .detector import RaceCheck

ACCESS = {"vprintf": "load", FREES: "store"}
"""What a call of each does."""


def called_sites(blocks: Iterable[CompiledBlock], first: int, granule: int) -> list[Site]:
    """Return sites for calls of such functions, numbered from ``first`` on.

    Each accesses ``granule`` bytes.
    """
    calls = [one for one in blocks if one.called in ACCESS and one.block.end is not None]
    return [
        Site(
            first + i, one.block.instructions[-1], one.block.function.name, ACCESS[one.called],
            "generic", f"b{8 * granule}", 1, one.number, one.called * (one.called == FREES),
        )
        for i, one in enumerate(calls)
    ]  # fmt: skip


class CallCheck(Observer):
    """Passes the accesses of such calls to the race checks.

    Args:
        sites: Result of ``called_sites``.
    """

    def __init__(self, sites: Iterable[Site], race: RaceCheck) -> None:
        self.sites, self.race = {site.block: site for site in sites}, race
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def string_read(
        self, block: CompiledBlock, lane: tuple[int, ...], address: int, nbytes: int,
        home: Allocation | None,
    ) -> None:  # fmt: skip
        """See ``Observer``."""
        g, site = self.geometry, self.sites[block.number]
        space, start, base, place = "global", address, 0, lane[3]
        if home is None:
            start, place = distributed_shared.at(g, address - WINDOWS["shared"], lane[3])
            space = "shared" if place == lane[3] else "cluster"
            if not 0 <= start < self.race.shared.nbytes:
                return
        else:
            base = home.base
        self._access(site, space, lane, (start, start + nbytes, base), place, home)

    def freed(
        self, block: CompiledBlock, lane: tuple[int, ...], home: Allocation, piece: range
    ) -> None:
        """See ``Observer``."""
        site, base = self.sites[block.number], home.base
        where = base + piece.start, base + piece.stop, base
        self._access(site, "global", lane, where, lane[3], home)

    def reallocated(self, home: Allocation, piece: range) -> None:
        """See ``Observer``."""
        self.race.forget(home, piece)

    def _access(
        self, site: Site, space: str, lane: tuple[int, ...], where: tuple[int, int, int],
        place: int, home: Allocation | None,
    ) -> None:  # fmt: skip
        """Dispatch an access of one lane to a range of bytes."""
        g, (start, end, base) = self.geometry, where
        first = (start - base) // site.size * site.size + base
        places = np.arange(first, end, site.size)
        thread, column, homes = (
            np.full(len(places), one) for one in (int(g.thread_ids[(*lane[:3], 0)]), lane[3], place)
        )
        spread = LaneAddressList(thread, column, places, homes)
        values = None if site.access == "load" else (places,)  # nobody leaves the same
        self.race.access(AccessEvent(site, space, spread, None, False, home, values))
