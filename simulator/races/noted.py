"""What happens, as it is noted down for ``releases``."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..geometry import Flat
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
    """Whole warps met: which, by block and number."""

    time: int
    blocks: Flat
    warps: Flat


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
