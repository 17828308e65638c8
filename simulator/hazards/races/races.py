"""Hazards of the recorded races: kind, severity and example threads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from kernels.ptx.module import Instruction

from ...analysis.influence import ForwardSlices
from ...core.geometry import Geometry, Mask
from ...races.in_flight.async_copies import UNDER_WAY
from ...races.report.race_log import OVERRUN, UNACQUIRED, RaceGroup, RaceLog
from ..hazard import Hazard
from ..kinds import EQUAL, GUESS, LOOK, RAW_RACE, REACHES, SCRATCH, WAR_RACE, WAW_RACE, HazardKind
from ..participants import ROLES, Opponent, Participant
from ..race_cases import TOO_FEW, WAITS
from ..relaxed_reads import FRESH
from ..sources import Sources, Who
from ..wording.race_places import RacePlaces
from .read_modify_write import Steps
from .titles import race_title

_ACCESSES = {"r": "read", "w": "write"}


class RaceHazards:
    """Converts a race log to hazards.

    ``places``: names racing elements. ``scratch``: the compiler's own shared array, if there is
    one.
    """

    def __init__(
        self, race_log: RaceLog, sources: Sources, steering: ForwardSlices, places: RacePlaces,
        scratch: str = "",
    ) -> None:  # fmt: skip
        self.race_log, self.sources, self.steering = race_log, sources, steering
        self.scratch, self.places = scratch, places
        self.sites, self.steps = race_log.sites, Steps(race_log, steering)
        self.of_registers = RegisterRaces(sources)

    def hazards(self, g: Geometry) -> list[Hazard]:
        """Return one hazard for each group; similar races with a common line are joined.

        They are in program order, whichever came first in the run.
        """
        groups = self.race_log.groups.values()
        joined: list[list[tuple[RaceGroup, Hazard]]] = []
        for group in groups:
            if _explained(group, groups) or (self.steps.guesses(group) and _wider(group, groups)):
                continue
            hazard = self._hazard(group, g)
            same = [known for known in joined if any(_is_same_race(hazard, h) for _, h in known)]
            joined = [known for known in joined if all(known is not one for one in same)]
            joined.append([*(pair for known in same for pair in known), (group, hazard)])
        for races in joined:
            races.sort(key=lambda pair: _place(pair[0]))
        joined.sort(key=lambda races: _place(races[0][0]))
        counted = [_counted(*_join(races)) for races in joined]
        return counted + self.of_registers.hazards()

    def _hazard(self, group: RaceGroup, g: Geometry) -> Hazard:
        kind, case = _kind(group), self._case(group)
        said = kind.case(case)
        example = group.examples[group.in_order]
        sides = group.sides if group.in_order else group.sides[::-1]
        threads = example.first, example.second
        involved = tuple(
            dataclasses.replace(
                self.sources.part(
                    ROLES[self.sites[site].access],
                    [self.sites[n].instruction for n in (site, *sorted(side - {site}))],
                    *g.place(number % group.threads, number // group.threads),
                ),
                element=self.places.element(
                    group.name, example.array, example.at, self.sites[site]
                ),
                value=self.places.value(group.name, example.array, bits, self.sites[site]),
            )
            for site, side, number, bits in zip(
                example.sites, sides, threads, example.bits, strict=True
            )
        )  # fmt: skip
        place, who = f"{group.space} {group.name}", REACHES[group.distance]
        return Hazard(
            kind.name, said.message.format(place=place, who=who), said.severity,
            group.space, group.name, example.element, involved,
            notes=tuple(filter(None, [self._note(group, case)])), case=case, reach=group.distance,
            pairs=(tuple(item.source for item in involved),),
        )  # fmt: skip

    def _note(self, group: RaceGroup, case: str) -> str:
        """Return an additional note; for an insufficient wait, with the required number."""
        pairs = {*group.meets, *((other, one) for one, other in group.meets)}
        short = [self.race_log.waits[pair] for pair in sorted(pairs & {*self.race_log.waits})]
        queues = {self.sites[one].queue for pair in group.meets for one in pair}
        queue = next((name for name in WAITS if name in (case, *queues)), "")
        if not short or not (case in WAITS or _kind(group) is RAW_RACE):
            return _kind(group).case(case).note
        pending, needed = min(short, key=lambda pair: pair[1])
        return (TOO_FEW + WAITS[queue]).format(left=pending, needed=needed)

    def _case(self, group: RaceGroup) -> str:
        """Return the case of the kind, which sets the severity."""
        near, in_global = group.distance == "lane", group.space == "global"
        volatile = group.how == "volatile"
        if group.how in (OVERRUN, "silent", "proxy", "steps", *UNDER_WAY):
            return group.how
        if group.how != UNACQUIRED and self.steps.looks(group):
            return LOOK
        if group.reads:
            if self.steps.guesses(group):
                return GUESS
            if volatile:
                return "volatile lanes" if near else "polled" if in_global else "volatile"
            if near and self._flagged(group):
                return "flag"
            if not volatile and self._updates(group):
                return "update in step" if near else "update"
            if near:
                return "in step"
        else:
            if volatile and in_global:
                steps = near and not group.clashes
                return EQUAL if not group.unequal else "volatile lanes" if steps else "polled"
            if group.unequal and self._of_scratch(group):
                return SCRATCH
            if (group.at_once or not near) and self.steps.loses(group):
                return "lost"
            if not group.unequal:
                return EQUAL
            if near:
                return "one instruction" if group.clashes else "in step"
        if group.how == UNACQUIRED:
            return FRESH if group.fresh else UNACQUIRED
        if group.how in _kind(group).cases:
            return group.how
        if group.distance == "block":
            return "blocks" if in_global else "far"
        return ""

    def _of_scratch(self, group: RaceGroup) -> bool:
        """Whether one instruction's stores to the compiler's own memory race."""
        mine = group.space == "shared" and group.name == self.scratch
        return mine and all(one == other for one, other in group.meets)

    def _updates(self, group: RaceGroup) -> bool:
        """Whether threads read for lost updates at the same lines."""
        return any(
            (other.space, other.name) == (group.space, group.name)
            and group.lines <= other.lines
            and not other.reads
            and self._case(other) == "lost"
            for other in self.race_log.groups.values()
        )

    def _flagged(self, group: RaceGroup) -> bool:
        """Whether a flag is meant to order the racing accesses."""
        one, other = (self.sites[min(side)] for side in group.sides)
        return self.race_log.find_order().handed(one, other, group.distance, False) is not None


def _place(group: RaceGroup) -> tuple[object, ...]:
    """Return the sort key: place in the program, and order of naming."""
    sites = [sorted(side) for side in group.sides]
    reach = list(REACHES).index(group.distance)
    return min(map(min, sites)), sites, group.space, group.name, group.how, reach


def _is_same_race(one: Hazard, other: Hazard) -> bool:
    """Whether two races say the same of a line, possibly for two variables."""
    said = (one.family, one.notes) == (other.family, other.notes)
    return said and bool(one.places & other.places)


def _join(races: Sequence[tuple[RaceGroup, Hazard]]) -> tuple[RaceGroup, Hazard]:
    """Join races into one hazard."""
    (first, into), *others = races
    for group, hazard in others:
        first.pairs.update(group.pairs)
        first.take_places(group)
        into.involved += tuple(_with_opponents(hazard, into))
        into.pairs += hazard.pairs
        if hazard.variable != into.variable and hazard.variable not in into.also:
            into.also = (*into.also, hazard.variable)
    return first, into


def _with_opponents(hazard: Hazard, into: Hazard) -> Iterator[Participant]:
    """Yield a pair's accesses at lines that ``into`` lacks, each with the thread it races with."""
    known = into.sources
    for mine, other in zip(hazard.involved, hazard.involved[::-1], strict=True):
        if mine.source in known:
            continue
        if other.source in known and other.thread is not None and other.block is not None:
            opponent = Opponent(other.role, other.thread, other.block)
            mine = dataclasses.replace(mine, opponent=opponent)
        yield mine


def _explained(group: RaceGroup, others: Iterable[RaceGroup]) -> bool:
    """Whether a lane's operation in flight, raced by its own warp, explains the race."""
    return group.distance == "lane" and any(
        other.how in UNDER_WAY
        and (other.space, other.name, other.lines) == (group.space, group.name, group.lines)
        and _kind(other) is _kind(group)
        for other in others
    )


def _wider(group: RaceGroup, others: Iterable[RaceGroup]) -> bool:
    """Whether threads at a larger distance race at the same lines."""
    reach = list(REACHES)
    return any(
        other.reads
        and (other.space, other.name, other.lines) == (group.space, group.name, group.lines)
        and reach.index(other.distance) > reach.index(group.distance)
        for other in others
    )


def _kind(group: RaceGroup) -> HazardKind:
    """Return the hazard kind of a group."""
    return WAW_RACE if not group.reads else RAW_RACE if group.in_order else WAR_RACE


def _counted(group: RaceGroup, hazard: Hazard) -> Hazard:
    """Return the final hazard of a group, with its counts."""
    hazard.count, hazard.capped = len(group.pairs), group.pairs.behind is not None
    hazard.locations = group.locations
    pairs = "pair" if hazard.count == 1 else "pairs"
    text = f"{'at least ' if hazard.capped else ''}{hazard.count:,} {pairs} of threads"
    if not hazard.capped:  # those that are not counted may be of any block
        blocks = len(group.pairs.blocks(group.threads))
        text += f" in {blocks:,} block{'s' if blocks != 1 else ''}"
    short = hazard.kind[:3]
    after = "-after-".join(_ACCESSES[letter] for letter in (short[0], short[2]))
    text += f": a {after} ({short.upper()}) race"
    if hazard.also:
        text += f"; also on {', '.join(hazard.also)}"
    hazard.notes = (text, *hazard.notes)
    hazard.heading = race_title(hazard)
    return hazard


@dataclasses.dataclass
class _RegisterRace:
    """Unordered accesses of a ``wgmma`` and another instruction to registers.

    Attributes:
        how: Access of the other instruction: ``read``, ``write`` or ``write of A``.
        other: The other instruction; ``None``: any earlier one, as there was never a fence.
    """

    case: str
    how: str
    product: Instruction
    other: Instruction | None
    who: Who


_REGISTERS = {"read": (RAW_RACE, WAR_RACE), "write": (WAW_RACE, RAW_RACE),
              "write of A": (WAR_RACE, WAR_RACE)}  # fmt: skip
"""Which race it is, if the other touches what is under way, and if it came first."""


class RegisterRaces:
    """Collects register races, one for each case and pair of source lines."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.found: dict[tuple[object, ...], _RegisterRace] = {}

    def add(
        self, case: str, how: str, product: Instruction, other: Instruction | None,
        g: Geometry, lanes: Mask,
    ) -> None:  # fmt: skip
        """Add lanes in which a product and another instruction race."""
        key = case, how, product.user_line, other and other.user_line
        known = self.found.setdefault(key, _RegisterRace(case, how, product, other, Who()))
        known.who.add(g, lanes)

    def merge(self, other: RegisterRaces) -> None:
        """Merge the races of other blocks."""
        for key, theirs in other.found.items():
            mine = self.found.setdefault(key, theirs)
            if mine is not theirs:
                mine.who.merge(theirs.who)

    def hazards(self) -> list[Hazard]:
        """Return the hazards in order of discovery."""
        return [self._hazard(found) for found in self.found.values()]

    def _hazard(self, found: _RegisterRace) -> Hazard:
        first = found.case == "unfenced"
        kind = _REGISTERS[found.how][first]
        said = kind.case(found.case)
        parts = [self.sources.part("wgmma", [found.product], *found.who.example)]
        if found.other:
            role = found.how.partition(" ")[0]
            part = self.sources.part(role, [found.other], *found.who.example)
            parts.insert(0 if first else 1, part)
        count = found.who.count
        return Hazard(
            kind.name, said.message.format(place="registers", who=REACHES[found.case]),
            said.severity, involved=tuple(parts), count=count,
            notes=(f"{count:,} thread{'s' * (count != 1)}", said.note), case=found.case,
            reach=found.case,
        )  # fmt: skip
