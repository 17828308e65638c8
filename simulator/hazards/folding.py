"""Folding: findings that exist only because of another one are listed beneath it.

A race with an out-of-bounds access follows from that access. So do findings that vanish when
accesses at undefined addresses and decisions of undefined branches are suppressed
(``simulator/rerun/root_causes.py``). An uninitialised read follows from a write that overruns the
other end of the same array by as many bytes, because the shifted write would cover it. A race
follows from a member mask that leaves out lanes, if a wider mask removes it
(``simulator/rerun/left_out_lanes.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from kernels.ptx.module import Line
from kernels.ptx.names import variable_name

from ..memory.site import Site
from ..memory.storage.layout import Placed
from .hazard import Hazard
from .kinds import LEFT_OUT
from .race_cases import OVERRUN, REACHES, UPDATES
from .wording.naming import Spot


@dataclasses.dataclass
class Reach:
    """Bytes beyond the ends of an array that accesses touch, relative to its first byte.

    Attributes:
        low: The first byte.
        high: The end, exclusive.
        nbytes: Size of the array.
    """

    low: int
    high: int
    nbytes: int

    def widen(self, low: int, high: int) -> None:
        """Add out-of-bounds accesses."""
        self.low, self.high = min(self.low, low), max(self.high, high)

    def shifted(self, uninitialised: range) -> bool:
        """Whether the writes, if shifted, would cover the uninitialised bytes."""
        above, below = self.high - self.nbytes, -self.low
        if above > 0 >= below:
            return uninitialised == range(above)
        return below > 0 >= above and uninitialised == range(self.nbytes - below, self.nbytes)


class Known(NamedTuple):
    """Known causes of findings.

    Attributes:
        shifted: Shared arrays whose uninitialised bytes shifted writes would cover.
        independent: Findings that do not depend on undefined values; ``None``: not determined.
        synchronised: Findings if no member mask leaves out lanes; ``None``: not determined.
    """

    shifted: Collection[str]
    independent: Sequence[Hazard] | None = None
    synchronised: Sequence[Hazard] | None = None


class _Read(Protocol):
    """A source line that reads a variable."""

    @property
    def line(self) -> Line:
        """The source line."""

    @property
    def variable(self) -> str:
        """The variable's name."""


_AnyRead = TypeVar("_AnyRead", bound=_Read)


class Shifts:
    """Collects overruns of shared arrays, and their uninitialised bytes."""

    def __init__(self) -> None:
        self.reaches: dict[str, Reach] = {}
        self.stands: dict[tuple[Line, str], tuple[int, int]] = {}

    def overran(self, at: Spot, site: Site, relative: int, span: tuple[int, int]) -> None:
        """Record out-of-bounds writes: see ``BadAccess``."""
        if at.space == "shared" and at.nbytes:
            low, high = (end - relative + at.offset for end in span)
            reach = self.reaches.setdefault(at.variable, Reach(0, at.nbytes, at.nbytes))
            reach.widen(low, high + site.nbytes)

    def read(self, site: Site, placed: Placed | None) -> None:
        """Record a line that reads uninitialised bytes of a variable."""
        if placed is not None:
            name = variable_name(placed.variable.name)
            self.stands[site.line, name] = site.size, placed.address

    def merge(self, other: Shifts) -> None:
        """Merge the records of other blocks."""
        self.stands |= other.stands
        for name, reach in other.reaches.items():
            self.reaches.setdefault(name, reach).widen(reach.low, reach.high)

    def known(
        self, uninitialised: Mapping[_AnyRead, set[int]], independent: Sequence[Hazard] | None
    ) -> Known:
        """Return the causes for ``fold``; ``uninitialised``: locations as in ``RaceLog``."""
        found: dict[str, dict[int, set[int]]] = {}
        for key, places in uninitialised.items():
            size, start = self.stands.get((key.line, key.variable), (0, 0))
            for place in places if size and key.variable in self.reaches else ():
                block, element = place >> 32, place & 0xFFFFFFFF
                first = element * size - start
                blocks = found.setdefault(key.variable, {})
                blocks.setdefault(block, set()).update(range(first, first + size))
        shifted = [
            name for name, blocks in found.items()
            if (span := _stretch([*blocks.values()])) and self.reaches[name].shifted(span)
        ]  # fmt: skip
        return Known(shifted, independent)


def counted(hazard: Hazard) -> Hazard:
    """Return a finding whose text states its count."""
    often = f"{hazard.count:,} times" if hazard.count > 1 else "once"
    return dataclasses.replace(hazard, notes=(often, *hazard.notes))


def _stretch(blocks: Sequence[set[int]]) -> range | None:
    """Return a contiguous range of bytes that is the same in every block, if it is one."""
    one, *others = blocks
    whole = len(one) == max(one) + 1 - min(one)
    return range(min(one), max(one) + 1) if whole and all(one == b for b in others) else None


def fold(hazards: Iterable[Hazard], known: Known) -> list[Hazard]:
    """Fold hazards that follow from another one beneath it."""
    hazards = list(hazards)
    masks = [hazard for hazard in hazards if hazard.case == LEFT_OUT]
    causes: list[Hazard] = []
    rest: list[Hazard] = []
    for hazard in hazards:
        free = known.independent is None or _stays(hazard, known.independent)
        (causes if free and hazard.row.causes else rest).append(hazard)
    beneath: dict[int, list[Hazard]] = {}
    stay: list[Hazard] = []
    for hazard in [*causes, *rest]:
        cause = _mask(hazard, masks, known) or _cause(hazard, causes, known)
        if cause is None or cause is hazard:
            stay.append(hazard)
        else:
            beneath.setdefault(id(cause), []).append(hazard)
    return _with(stay, beneath)


def fold_causes(hazards: Sequence[Hazard]) -> list[Hazard]:
    """Fold hazards of one cause into one, for a report.

    One cause is an update in several steps, or a barrier that is missing between warps and
    therefore between lanes of a warp too.
    """
    updates = sorted((hazard for hazard in hazards if hazard.case in UPDATES), key=_telling)
    beneath: dict[int, list[Hazard]] = {}
    stay: list[Hazard] = []
    for hazard in hazards:
        first = _same_steps(hazard, updates) or _same_barrier(hazard, hazards)
        if first is None or first is hazard:
            stay.append(hazard)
        else:
            beneath.setdefault(id(first), []).append(hazard)
    return _with(stay, beneath)


def _with(stay: Sequence[Hazard], beneath: Mapping[int, Sequence[Hazard]]) -> list[Hazard]:
    """Attach hazards to those beneath which they belong."""
    return [
        dataclasses.replace(hazard, follows=(*hazard.follows, *beneath.get(id(hazard), ())))
        for hazard in stay
    ]


def _cause(hazard: Hazard, causes: Sequence[Hazard], known: Known) -> Hazard | None:
    """Return the hazard from which another one follows, if known."""
    overruns = [c for c in causes if c.row.by_address and c.space == "shared"]
    if hazard.case == OVERRUN:
        return next((cause for cause in overruns if cause.places & hazard.places), None)
    uninitialised = hazard.row.causes and not hazard.row.by_address and hazard.space == "shared"
    if uninitialised and hazard.variable in known.shifted:
        same = (c for c in overruns if c.variable == hazard.variable)
        return next((c for c in same if c.involved[0].role == "write"), None)
    if known.independent is None or _stays(hazard, known.independent):
        return None
    return next(iter(causes), None)


def _mask(hazard: Hazard, masks: Sequence[Hazard], known: Known) -> Hazard | None:
    """Return the member mask from which a race follows, if it does."""
    follows = known.synchronised is not None and not _stays(hazard, known.synchronised)
    return masks[0] if masks and hazard.row.is_race and follows else None


def _same_steps(hazard: Hazard, updates: Sequence[Hazard]) -> Hazard | None:
    """Return the most informative hazard of the same multi-step update."""
    if hazard.case not in UPDATES:
        return None
    where = hazard.space, hazard.variable
    return next(h for h in updates if (h.space, h.variable) == where and h.places >= hazard.places)


def _same_barrier(hazard: Hazard, others: Sequence[Hazard]) -> Hazard | None:
    """Return a race between warps whose barrier also orders a race between lanes of a warp."""
    return next((other for other in others if other.is_wider(hazard)), None)


def _telling(hazard: Hazard) -> tuple[bool, int, bool, int]:
    """Sort key: errors, number of lines, reads, distance of the threads."""
    reach = list(REACHES).index(hazard.reach)
    return hazard.severity != "error", -len(hazard.places), not hazard.row.reads, -reach


def _stays(hazard: Hazard, independent: Sequence[Hazard]) -> bool:
    """Whether a finding exists, at least in part, among those without a cause."""
    return any(
        (other.space, other.reach) == (hazard.space, hazard.reach)
        and (other.kind == hazard.kind or (other.row.is_race and hazard.row.is_race))
        and other.places & hazard.places
        and (not other.row.is_race or other.variables & hazard.variables)
        for other in independent
    )
