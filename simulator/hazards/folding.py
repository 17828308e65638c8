"""One cause, one report: findings that exist only because of another one go beneath it.

A race of which one access is out of bounds of its own array follows from that access. So does
what is gone once accesses at undefined addresses, and what undefined branches decide, are left
out (``simulator/rerun/root_causes.py``). A read of what nothing wrote follows from a write that
overruns the same array by as many bytes at its other end: shifted by them, it covers the array.
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
from .races.race_cases import OVERRUN, REACHES, UPDATES
from .wording.naming import Spot


@dataclasses.dataclass
class Reach:
    """The bytes that accesses touch beyond an array's ends, from its first byte.

    Attributes:
        low: The first byte; ``high``: the end; ``nbytes``: the array's size.
    """

    low: int
    high: int
    nbytes: int

    def widen(self, low: int, high: int) -> None:
        """More accesses are out of bounds."""
        self.low, self.high = min(self.low, low), max(self.high, high)

    def shifted(self, unset: range) -> bool:
        """Whether writes that reach so far would cover the unset bytes if they were shifted."""
        above, below = self.high - self.nbytes, -self.low
        if above > 0 >= below:
            return unset == range(above)
        return below > 0 >= above and unset == range(self.nbytes - below, self.nbytes)


class Known(NamedTuple):
    """What is known of the causes of findings.

    Attributes:
        shifted: The shared arrays whose unset bytes a shift of their writes would cover.
        independent: What is found without what follows from undefined values; ``None``: nobody
            looked.
    """

    shifted: Collection[str]
    independent: Sequence[Hazard] | None = None


class _Read(Protocol):
    """A line that reads a variable."""

    @property
    def line(self) -> Line:
        """The source line."""

    @property
    def variable(self) -> str:
        """The variable's name."""


_AnyRead = TypeVar("_AnyRead", bound=_Read)


class Shifts:
    """Collects how far writes overrun shared arrays, and which of their bytes nothing wrote."""

    def __init__(self) -> None:
        self.reaches: dict[str, Reach] = {}
        self.stands: dict[tuple[Line, str], tuple[int, int]] = {}

    def overran(self, at: Spot, site: Site, relative: int, span: tuple[int, int]) -> None:
        """Writes are out of bounds: see ``BadAccess``."""
        if at.space == "shared" and at.nbytes:
            low, high = (end - relative + at.offset for end in span)
            reach = self.reaches.setdefault(at.variable, Reach(0, at.nbytes, at.nbytes))
            reach.widen(low, high + site.nbytes)

    def read(self, site: Site, placed: Placed | None) -> None:
        """A line reads what nothing wrote of a variable."""
        if placed is not None:
            name = variable_name(placed.variable.name)
            self.stands[site.line, name] = site.size, placed.address

    def merge(self, other: Shifts) -> None:
        """Take over what was found in other blocks."""
        self.stands |= other.stands
        for name, reach in other.reaches.items():
            self.reaches.setdefault(name, reach).widen(reach.low, reach.high)

    def known(
        self, unwritten: Mapping[_AnyRead, set[int]], independent: Sequence[Hazard] | None
    ) -> Known:
        """What ``fold`` asks; ``unwritten``: places by line and variable, as ``RaceLog`` has."""
        found: dict[str, dict[int, set[int]]] = {}
        for key, places in unwritten.items():
            size, start = self.stands.get((key.line, key.variable), (0, 0))
            for place in places if size and key.variable in self.reaches else ():
                block, element = place >> 32, place & 0xFFFFFFFF
                first = element * size - start
                blocks = found.setdefault(key.variable, {})
                blocks.setdefault(block, set()).update(range(first, first + size))
        shifted = [
            name for name, blocks in found.items()
            if (unset := _stretch([*blocks.values()])) and self.reaches[name].shifted(unset)
        ]  # fmt: skip
        return Known(shifted, independent)


def counted(hazard: Hazard) -> Hazard:
    """A finding that says how often it is."""
    often = f"{hazard.count:,} times" if hazard.count > 1 else "once"
    return dataclasses.replace(hazard, notes=(often, *hazard.notes))


def _stretch(blocks: Sequence[set[int]]) -> range | None:
    """Bytes that are one stretch, and the same in each block."""
    one, *others = blocks
    whole = len(one) == max(one) + 1 - min(one)
    return range(min(one), max(one) + 1) if whole and all(one == b for b in others) else None


def fold(hazards: Iterable[Hazard], known: Known) -> list[Hazard]:
    """Hazards, with those that follow from another one beneath that one."""
    causes: list[Hazard] = []
    rest: list[Hazard] = []
    for hazard in hazards:
        free = known.independent is None or _stays(hazard, known.independent)
        (causes if free and hazard.row.causes else rest).append(hazard)
    beneath: dict[int, list[Hazard]] = {}
    stay: list[Hazard] = []
    for hazard in [*causes, *rest]:
        cause = _cause(hazard, causes, known)
        if cause is None or cause is hazard:
            stay.append(hazard)
        else:
            beneath.setdefault(id(cause), []).append(hazard)
    return _with(stay, beneath)


def fold_updates(hazards: Sequence[Hazard]) -> list[Hazard]:
    """Hazards, with those of one update in several steps as one: for a report."""
    updates = sorted((hazard for hazard in hazards if hazard.case in UPDATES), key=_telling)
    beneath: dict[int, list[Hazard]] = {}
    stay: list[Hazard] = []
    for hazard in hazards:
        first = _same_steps(hazard, updates)
        if first is None or first is hazard:
            stay.append(hazard)
        else:
            beneath.setdefault(id(first), []).append(hazard)
    return _with(stay, beneath)


def _with(stay: Sequence[Hazard], beneath: Mapping[int, Sequence[Hazard]]) -> list[Hazard]:
    """Hazards with what goes beneath each of them."""
    return [
        dataclasses.replace(hazard, follows=(*hazard.follows, *beneath.get(id(hazard), ())))
        for hazard in stay
    ]


def _cause(hazard: Hazard, causes: Sequence[Hazard], known: Known) -> Hazard | None:
    """The hazard from which another one follows, if that is known."""
    overruns = [c for c in causes if c.row.by_address and c.space == "shared"]
    if hazard.case == OVERRUN:
        return next((cause for cause in overruns if cause.places & hazard.places), None)
    unset = hazard.row.causes and not hazard.row.by_address and hazard.space == "shared"
    if unset and hazard.variable in known.shifted:
        same = (c for c in overruns if c.variable == hazard.variable)
        return next((c for c in same if c.involved[0].role == "write"), None)
    if known.independent is None or _stays(hazard, known.independent):
        return None
    return next(iter(causes), None)


def _same_steps(hazard: Hazard, updates: Sequence[Hazard]) -> Hazard | None:
    """Of the hazards of one update in several steps the one that says most."""
    if hazard.case not in UPDATES:
        return None
    where = hazard.space, hazard.variable
    return next(h for h in updates if (h.space, h.variable) == where and h.places >= hazard.places)


def _telling(hazard: Hazard) -> tuple[bool, int, bool, int]:
    """Errors first, then what names most lines, then reads, then threads furthest apart."""
    reach = list(REACHES).index(hazard.reach)
    return hazard.severity != "error", -len(hazard.places), not hazard.row.reads, -reach


def _stays(hazard: Hazard, independent: Sequence[Hazard]) -> bool:
    """Whether a finding, or a part of it, is there without what follows from others."""
    return any(
        (other.space, other.reach) == (hazard.space, hazard.reach)
        and (other.kind == hazard.kind or (other.row.is_race and hazard.row.is_race))
        and other.places & hazard.places
        and (not other.row.is_race or other.variables & hazard.variables)
        for other in independent
    )
