"""Race log: races in groups, each of which becomes one hazard.

A group has the races of pairs of threads at the same two source lines, at the same distance (lanes
of a warp, warps of a block, blocks) and for the same reason.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...core.geometry import Flat
from ...memory.site import Site
from ..accesses import SHARED, Race
from ..order.stale_reads import Loaded
from ..shadow.conflicts import FREED
from ..shadow.pair_limit import PairBound
from ..shadow.shadow_memory import Conflict
from ..shadow.stored_values import UNKNOWN_BITS
from .pairs import MAX_PAIRS, Pairs
from .program_order import ProgramOrder
from .raced_elements import LOCATIONS, RacedElements


class _Example(NamedTuple):
    """An example pair of threads; the smallest is shown.

    Attributes:
        second: The thread named last.
        first: The thread named first.
        element: The element, in units of the second access's element size.
        sites: Sites of the first and the second access.
        array: Number of the array; -1 for shared memory.
        at: Byte address of the location, in shared memory or from the start of the array.
        bits: Bits that the first and the second access store, or ``UNKNOWN_BITS``.
    """

    second: int
    first: int
    element: int
    sites: tuple[int, int]
    array: int
    at: int
    bits: tuple[int, int]


READING = ("product", "bulk")
"""How a write races with what still reads, a ``wgmma`` or a copy in bulk: that comes first,
wherever it stands."""
WRITING = ("copy", "transaction", "proxy")
"""How a read races with what a copy still writes, or what another proxy wrote: that comes first."""
UNACQUIRED = "unacquired"
"""How a read races that a fence behind a relaxed read of a flag would put in order."""
OVERRUN = "overrun"  # of its own array
SENT = "sent"
"""How an access races with what a copy in bulk still writes to global memory: that comes first."""


@dataclass
class RaceGroup:
    """Races that form one hazard, between instructions on two ``sides`` (a write's side first).

    Attributes:
        unequal: Whether some pairs store different values.
        at_once: Whether some are of one execution of an instruction.
        clashes: Whether some of these store different values.
        fresh: Whether no read after a relaxed one can hit stale data in L1.
        loaded: The L1 sectors that would be stale.
        swaps: Whether some involve an atomic.
        meets: The pairs of racing instructions.
        places: Racing elements, by the name of their variable.
        turns: The sides whose instruction came first in program order; both in a loop.
        examples: Example if the first side is named first, and if the second is.
    """

    how: str
    distance: str
    space: str
    name: str
    threads: int
    reads: bool
    lines: frozenset[object]
    unequal: bool = False
    at_once: bool = False
    clashes: bool = False
    fresh: bool = True
    loaded: list[Loaded] = field(default_factory=list)
    swaps: bool = False
    pairs: Pairs = field(default_factory=Pairs)
    sides: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    meets: set[tuple[int, int]] = field(default_factory=set)
    places: dict[str, RacedElements] = field(default_factory=dict)
    turns: set[bool] = field(default_factory=set)
    examples: dict[bool, _Example] = field(default_factory=dict)

    @property
    def where(self) -> tuple[object, ...]:
        """Key of races that are one finding to a reader."""
        return self.distance, self.space, self.name, self.lines, self.reads

    @property
    def in_order(self) -> bool:
        """Whether the first side is named first; if either may be, the write is."""
        return True in self.turns

    @property
    def bound(self) -> int | None:
        """Last thread whose pairs with later ones may count or be shown; ``None``: any."""
        if not self.pairs.full:
            return None
        return max(self.pairs.last, *(example.second for example in self.examples.values()))

    @property
    def learnt(self) -> bool:
        """Whether further pairs of writes add nothing about their values."""
        return self.reads or (self.unequal and (self.clashes or not self.at_once))

    @property
    def locations(self) -> int:
        """Number of elements on which the counted pairs race."""
        return sum(places.count(self.pairs.behind) for places in self.places.values())

    @property
    def everywhere(self) -> bool:
        """Whether all identically behaving blocks race, whatever values they store."""
        return self.reads and self.how != "silent" and not self.swaps

    def spread(self, blocks: Flat) -> None:
        """Replicate one block's races for other blocks, given by their distance."""
        self.pairs.spread(blocks * self.threads)
        for places in self.places.values():
            places.spread(blocks, blocks * self.threads)

    def take_places(self, other: RaceGroup) -> None:
        """Add the racing elements of another group."""
        for name, places in other.places.items():
            self.places.setdefault(name, RacedElements()).update(places)

    def merge(self, other: RaceGroup) -> None:
        """Add the races of another group with other threads."""
        self.unequal |= other.unequal
        self.at_once |= other.at_once
        self.clashes |= other.clashes
        self.fresh &= other.fresh
        self.swaps |= other.swaps
        self.pairs.update(other.pairs)
        for mine, theirs in zip(self.sides, other.sides, strict=True):
            mine |= theirs
        self.meets |= other.meets
        self.take_places(other)
        self.turns |= other.turns
        for turn, example in other.examples.items():
            self.examples[turn] = min(example, self.examples.get(turn, example))


class RaceLog:
    """Log of all races; each hazard counts at most ``max_pairs`` pairs of threads.

    ``order``: decides which of two sites a report names first. ``place``: gives variable and
    element of a shared address.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        order: Callable[[], ProgramOrder],
        place: Callable[[str, int, Site], tuple[str, int]],
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        self.max_pairs = max_pairs
        self.sites, self.find_order, self.place = sites, order, place
        self.groups: dict[tuple[object, ...], RaceGroup] = {}
        self.waits: dict[tuple[int, int], tuple[int, int]] = {}  # ``Copy.short``
        self._by_sites: dict[tuple[object, ...], list[RaceGroup]] = {}

    def like(self) -> RaceLog:
        """Return an empty log for the same program."""
        return RaceLog(self.sites, self.find_order, self.place, self.max_pairs)

    def bound(self, race: Race) -> PairBound:
        """Return the bound of the pairs of such a race that are still wanted."""
        return PairBound(functools.partial(self._last, race), functools.partial(self._learnt, race))

    def _last(self, race: Race) -> int | None:
        # A pair that is out of bounds hides no plain one of the same instructions.
        groups = [g for g in self._by_sites.get(_sites(race), []) if g.how != OVERRUN]
        bounds = [group.bound for group in groups]
        if not groups or None in bounds:
            return None
        mixed = "atomic" in (race.other.access, race.site.access) and len(groups) < 2
        return None if mixed else max(bound for bound in bounds if bound is not None)

    def _learnt(self, race: Race) -> bool:
        groups = self._by_sites.get(_sites(race), [])
        return bool(groups) and all(group.learnt for group in groups)

    def knows(self, race: Race) -> bool:
        """Whether a race of this kind is logged."""
        return _sites(race) in self._by_sites

    def add(
        self,
        race: Race,
        conflict: Conflict,
        unequal: Flat,
        silent: Flat,
        stored: Flat | None = None,
    ) -> None:
        """Log racing pairs; ``unequal``, ``silent``, ``stored``: see ``stored_values.compare``."""
        if stored is None:
            stored = np.full((2, len(unequal)), UNKNOWN_BITS)
        overrun = race.overruns(conflict.place)
        for still, over in itertools.product((False, True), repeat=2):
            at = np.flatnonzero((silent == still) & (overrun == over))
            if at.size:
                how = "silent" if still else race.how
                self._add(race, conflict, at, unequal, OVERRUN if over else how, stored[:, at])

    def _add(
        self, race: Race, conflict: Conflict, at: Flat, unequal: Flat, how: str, stored: Flat
    ) -> None:
        one, other = race.other, race.site
        earlier, later = conflict.earlier[at], conflict.later[at]
        name = self._named(race, int(conflict.place[at[0]]))
        reads = "load" in (one.access, other.access)
        turn = how == SENT or self.find_order().named(one, other, race.distance, race.behind)
        if one.access == "load" or (not reads and _after(one, other, turn)):
            one, other, earlier, later, turn = other, one, later, earlier, not turn
            stored = stored[::-1]
        turn &= how not in (*READING, FREED)
        distance = race.distance
        if how == "race" and race.space == "shared":
            how, distance = self._under_way(one, other, distance)
        turn |= reads and how in WRITING
        same = one.line == other.line
        if same and not reads:
            turn = True
            stored = np.where(earlier <= later, stored, stored[::-1])
            earlier, later = np.minimum(earlier, later), np.maximum(earlier, later)
        key = (how, distance, race.space, name, one.line, other.line, reads)
        group = self.groups.get(key)
        if group is None:
            lines = frozenset((one.line, other.line))
            what = how, distance, race.space, name, race.threads, reads, lines
            group = self.groups[key] = RaceGroup(*what, pairs=Pairs(self.max_pairs))
        by_sites = self._by_sites.setdefault(_sites(race), [])
        if not any(group is known for known in by_sites):
            by_sites.append(group)
        group.turns.add(turn)
        group.unequal |= bool(unequal[at].any())
        group.swaps |= "atomic" in (one.access, other.access)
        group.at_once |= race.same_execution
        group.clashes |= race.same_execution and bool(unequal[at].any())
        group.fresh &= race.met
        group.loaded += [race.loaded] if race.loaded and group.fresh else []
        group.pairs.add(earlier, later)
        group.sides[0].add(one.number)
        group.sides[1].add(other.number)
        group.meets.add((one.number, other.number))
        size, elements = one.size, conflict.place[at]
        elements = elements // race.columns if race.space == "shared" else elements
        array = race.allocation.number if race.allocation else SHARED
        for turn, first, second in ((True, earlier, later), (False, later, earlier)):
            pick = _smallest(second, first, elements)
            place, (low, high) = int(elements[pick]), stored[:, pick].tolist()
            sites = (one.number, other.number) if turn else (other.number, one.number)
            example = _Example(
                int(second[pick]), int(first[pick]),
                self._element(race, place, other if turn else one), sites,
                array, place * race.granule, (low, high) if turn else (high, low),
            )  # fmt: skip
            group.examples[turn] = min(example, group.examples.get(turn, example))
        places = elements * race.granule // size
        if race.space == "shared":  # a block's own
            blocks = np.minimum(earlier, later) // race.threads
            if race.blocks is not None:
                blocks = race.blocks[conflict.place[at] % race.columns]
            places |= blocks << 32
        keys = np.minimum(earlier, later) << 32 | np.maximum(earlier, later)
        group.places.setdefault(name, RacedElements()).add(places, keys)

    def _under_way(self, one: Site, other: Site, distance: str) -> tuple[str, str]:
        """Return how a race is named: is one operation certainly in flight at the other?"""
        order = self.find_order()
        for copy, touching in ((one, other), (other, one)):
            if not copy.asynchronous or distance == "block":
                continue
            by_one = copy.queue == "transaction" and distance == "lane"
            after = distance == "warp" or not order.first(touching, copy, copy.queue)
            if after and (by_one or order.unwaited(copy, touching)):
                return copy.queue, copy.queue
        return "race", distance

    def merge(self, other: RaceLog) -> None:
        """Add the races of other blocks."""
        for key, group in other.groups.items():
            mine = self.groups.setdefault(key, group)
            if mine is not group:
                mine.merge(group)
        self.waits |= other.waits
        keys = {id(group): key for key, group in other.groups.items()}
        for sites, groups in other._by_sites.items():
            known = self._by_sites.setdefault(sites, [])
            news = [self.groups[keys[id(group)]] for group in groups]
            known += [group for group in news if not any(group is one for one in known)]

    def add_unknown(self, other: RaceLog) -> None:
        """Add the races of another run at lines without races so far."""
        known = {group.where for group in self.groups.values()}
        for key, group in other.groups.items():
            if group.where not in known:
                self.groups[key] = group

    def _named(self, race: Race, place: int) -> str:
        if race.space == "shared":
            return self.place("shared", place // race.columns * race.granule, race.site)[0]
        assert race.allocation is not None
        return race.allocation.name

    def _element(self, race: Race, place: int, site: Site) -> int:
        """Return the element of a location, in units of an instruction's element size."""
        if race.space == "shared":
            return self.place("shared", place * race.granule, site)[1]
        return place * race.granule // site.size

    def explains(self, line: object, name: str, places: set[int]) -> bool:
        """Whether writes that race with a line's reads are the ones that these reads missed."""
        raced: set[int] = set()
        for group in self.groups.values():
            reads = group.sides[1] if group.reads and group.how != OVERRUN else ()
            reading = {self.sites[n].line for n in reads}
            if group.in_order and group.name == name and line in reading:
                if group.pairs.full or len(group.places[name]) >= LOCATIONS:
                    return True
                raced |= group.places[name].all()
        return bool(raced) and places <= raced


def _after(one: Site, other: Site, turn: bool) -> bool:
    """Return which of two writes becomes the second side, by source lines, so that copies agree."""
    first, second = str(one.line), str(other.line)
    return not turn if first == second else first > second


def _sites(race: Race) -> tuple[object, ...]:
    array = race.allocation.number if race.allocation else -1
    return race.other.number, race.site.number, race.how, race.distance, array


def _smallest(*values: Flat) -> int:
    """Return the index of the lexicographically smallest tuple of values."""
    at = np.flatnonzero(values[0] == values[0].min())
    for more in values[1:]:
        if len(at) > 1:
            at = at[more[at] == more[at].min()]
    return int(at[0])
