"""What happens, as it is noted down for ``releases``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..geometry import WARP, Flat
from ..memory.site import Site
from ..memory.words import distinct
from .seen import Seen

Place = int | tuple[int, int]
"""A barrier: its number in the block, or its block's column and its address."""


@dataclass(slots=True)
class Fence:
    """A fence of some threads; ``reach``, ``met``, ``warp``, ``known``: see ``Releases.fence``."""

    time: int
    threads: Flat
    reach: int
    met: Flat
    warp: Flat
    known: Sequence[Seen] | None


@dataclass(slots=True)
class Meeting:
    """A barrier let threads go.

    ``blocks``: those of which all threads came; ``number``: the barrier's; ``split``: they had gone
    on after they arrived.
    """

    time: int
    threads: Flat
    blocks: Flat
    number: int
    split: bool

    def parts(self, size: int) -> Iterator[tuple[int, Flat]]:
        """Of other blocks, of ``size`` threads: the numbers in it of those who met."""
        if self.split or len(self.threads) == len(self.blocks) * size:
            return
        block, lane = np.divmod(self.threads, size)
        for one in distinct(block).tolist():
            if one not in self.blocks:
                yield one, lane[block == one]


@dataclass(slots=True)
class Arrival:
    """Threads came to a barrier, for others who wait there.

    ``at``: the barrier's number, or of an ``mbarrier`` the place; ``ends``: with them its phase.
    """

    time: int
    threads: Flat
    at: Place
    ends: bool = False


@dataclass(slots=True)
class Waited:
    """Threads saw that a phase of an ``mbarrier`` is over."""

    time: int
    threads: Flat
    at: Place


@dataclass(slots=True)
class WarpMeeting:
    """Lanes of warps met: of which, by block and number, and ``lanes``, as bits."""

    time: int
    blocks: Flat
    warps: Flat
    lanes: Flat

    def groups(self) -> Iterator[tuple[int, Flat]]:
        """Those who met each other: their block, and their numbers in it."""
        columns = (self.blocks.tolist(), self.warps.tolist(), self.lanes)
        for block, warp, bits in zip(*columns, strict=True):
            yield block, warp * WARP + np.flatnonzero(bits >> np.arange(WARP) & 1)


@dataclass(slots=True)
class StrongAccess:
    """A strong access of many lanes, in their turns; see ``Releases.access``."""

    time: int
    threads: Flat
    site: Site
    places: Flat
    turns: Flat
    met: Flat
    warp: Flat
    known: Sequence[Seen] | None
    vain: list[bool] | None
    quiet: list[bool] | None


Noted = Fence | Meeting | Arrival | Waited | WarpMeeting | StrongAccess
"""Something that happened, in the order of time."""
