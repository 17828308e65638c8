"""What happens, as it is noted down for ``releases``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..geometry import WARP, Flat
from ..memory.site import Site
from .seen import Seen


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

    ``blocks``: those of which all threads came; ``split``: they had gone on after they arrived.
    """

    time: int
    threads: Flat
    blocks: Flat
    split: bool


@dataclass(slots=True)
class WarpMeeting:
    """Lanes of warps met: of which, by block and number, and ``lanes``, as bits."""

    time: int
    blocks: Flat
    warps: Flat
    lanes: Flat

    def groups(self) -> Iterator[tuple[int, int, list[int]]]:
        """Those who met each other: their block, their warp, and their numbers in the block."""
        columns = (self.blocks.tolist(), self.warps.tolist(), self.lanes.tolist())
        for block, warp, bits in zip(*columns, strict=True):
            first = warp * WARP
            yield block, warp, [first + lane for lane in range(WARP) if bits >> lane & 1]


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


Noted = Fence | Meeting | WarpMeeting | StrongAccess
"""Something that happened, in the order of time."""
