"""Texts that are printed: ``%s`` reads them up to their NUL, as a load would."""

from collections.abc import Iterable

import numpy as np

from ..compile.program import CompiledBlock
from ..events import Observer
from ..geometry import Geometry
from ..isa.windows import WINDOWS
from ..memory import far
from ..memory.event import Event, Spread
from ..memory.site import Site
from ..memory.spaces import Allocation
from .detector import RaceCheck


def text_sites(blocks: Iterable[CompiledBlock], first: int, granule: int) -> list[Site]:
    """The reads of the calls of ``vprintf``, numbered from ``first`` on, ``granule`` bytes each."""
    prints = [one for one in blocks if one.called == "vprintf" and one.block.end is not None]
    return [
        Site(
            first + i, one.block.instructions[-1], one.block.function.name, "load", "generic",
            f"b{8 * granule}", 1, one.number,
        )
        for i, one in enumerate(prints)
    ]  # fmt: skip


class TextCheck(Observer):
    """Tells the race checks of what is printed of global and shared memory.

    Args:
        sites: ``text_sites``.
    """

    def __init__(self, sites: Iterable[Site], race: RaceCheck) -> None:
        self.sites, self.race = {site.block: site for site in sites}, race
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def text_read(
        self, block: CompiledBlock, lane: tuple[int, ...], address: int, nbytes: int,
        home: Allocation | None,
    ) -> None:  # fmt: skip
        """See ``Observer``."""
        g, site = self.geometry, self.sites[block.number]
        space, start, base, place = "global", address, 0, lane[3]
        if home is None:
            start, place = far.at(g, address - WINDOWS["shared"], lane[3])
            space = "shared" if place == lane[3] else "cluster"
            if not 0 <= start < self.race.shared_bytes:
                return
        else:
            base = home.base
        first = (start - base) // site.size * site.size + base
        places = np.arange(first, start + nbytes, site.size)
        thread, column, homes = (
            np.full(len(places), one) for one in (int(g.thread_ids[(*lane[:3], 0)]), lane[3], place)
        )
        spread = Spread(thread, column, places, homes)
        self.race.access(Event(site, space, spread, None, False, home, None))
