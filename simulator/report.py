"""What hazards say: each text stands here, once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .control import Control, line_of
from .geometry import WARP, Geometry
from .hazard import SEVERITIES, Hazard, Involved, Triple
from .lanes import Race
from .memory import Home
from .module import Instruction
from .names import LOCAL_MEMORY, variable_name
from .naming import spot
from .program import Program
from .site import Site
from .sources import Sources

_VERBS = {"load": "read", "store": "write", "atomic": "atomic access"}
_ROLES = {"load": "read", "store": "write", "atomic": "atomic"}
_RACES = {
    "raw": "RAW race on {0} (read of what {1} may not have written yet)",
    "war": "WAR race on {0} (write over what {1} may not have read yet)",
    "waw": "WAW race on {0} (write over what {1} may have written)",
}
_WHO = {"lane": "another lane of the warp", "warp": "another warp", "block": "another block"}


@dataclass
class _RaceGroup:
    """Races that make one hazard: same kind, lines and reach."""

    race: Race
    thread: int
    block: int
    other: int
    severity: str
    reach: str
    name: str
    element: int
    earlier: Site
    same_value: bool
    pairs: int = 0
    places: set[int] = field(default_factory=set)
    blocks: set[int] = field(default_factory=set)
    copies: dict[tuple[int, int], tuple[Instruction, Instruction]] = field(default_factory=dict)


class Findings:
    """Collects hazards; the same finding at the same source line is one hazard with a count."""

    def __init__(self, sources: Sources, program: Program, grid: Triple, block: Triple) -> None:
        self.sources, self.layout, self.sites = sources, program.layout, program.sites
        self.functions = program.module.functions
        self.grid, self.shape = grid, block
        self.found: dict[Any, Hazard] = {}
        self.control = Control(self.sources, self.involved)
        self.races: dict[Any, _RaceGroup] = {}
        self.local_reads: dict[int, set[int]] = {}
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """A new batch begins."""
        self.geometry = self.control.geometry = geometry

    def hazards(self) -> list[Hazard]:
        """Errors first, then in order of discovery; races on several variables joined."""
        made = [self._race_hazard(group) for group in self.races.values()]
        joined: list[tuple[Any, Hazard]] = []
        for hazard in made:
            key = (hazard.family, hazard.notes[1:])
            same = next((h for k, h in joined if k == key and h.places & hazard.places), None)
            if same is None:
                joined.append((key, hazard))
                continue
            same.count += hazard.count
            same.involved += tuple(i for i in hazard.involved if i.source not in same.sources)
            if hazard.variable != same.variable and hazard.variable not in same.also:
                same.also = (*same.also, hazard.variable)
        others = [*self.found.values(), *self.control.hazards()]
        everything = [*others, *(hazard for _, hazard in joined)]
        for _, hazard in joined:
            also = f"; also on {', '.join(hazard.also)}" if hazard.also else ""
            head, *rest = hazard.notes
            pairs = "pair" if hazard.count == 1 else "pairs"
            hazard.notes = (f"{hazard.count:,} {pairs} of threads in {head}{also}", *rest)
        return sorted(everything, key=lambda h: h.severity != "error")

    def involved(
        self, role: str, ins: Instruction, thread: Triple | None = None, block: Triple | None = None
    ) -> Involved:
        """An instruction's part in a hazard."""
        sources = self.sources
        return Involved(
            role, sources.of(ins), ins.name, ins.line, thread, block,
            sources.calls(ins), (), sources.inside(ins),
        )  # fmt: skip

    def _add(
        self, kind: str, message: str, role: str, ins: Instruction | None, count: int,
        thread: Triple | None = None, block: Triple | None = None, **more: Any,
    ) -> None:  # fmt: skip
        key = (kind, line_of(ins) if ins else 0, more.get("variable", ""), role)
        if key in self.found:
            hazard = self.found[key]
            hazard.count += count
            if ins:
                hazard.involved = (self._also(hazard.involved[0], ins), *hazard.involved[1:])
            return
        involved = (self.involved(role, ins, thread, block),) if ins else ()
        severity = more.pop("severity", SEVERITIES[kind])
        self.found[key] = Hazard(kind, message, severity, involved=involved, count=count, **more)

    def _also(self, item: Involved, ins: Instruction) -> Involved:
        """The part that another copy of an instruction has too: perhaps called from elsewhere."""
        if not ins.location or not item.calls:
            return item
        calls = self.sources.calls(ins)[:1]
        if not calls or calls[0] in (item.calls[0], *item.also):
            return item
        return dataclasses.replace(item, also=(*item.also, *calls))

    # -- memory -------------------------------------------------------------------

    def memory(
        self, kind: str, site: Site, relative: int, home: Home | None,
        thread: Triple, block: Triple, count: int,
    ) -> None:  # fmt: skip
        """A bad access; ``relative`` is the distance in bytes from the start of ``home``."""
        verb = _VERBS[site.kind]
        at = spot(home, relative, site, self.layout, self.functions)
        space = at.space
        if kind == "misaligned":
            message = f"misaligned {verb} of {at.text}: not a multiple of {site.width} bytes"
        elif kind == "address-space":
            space = site.space
            message = f"{verb} as {site.space} memory of an address that is not: {at.text}"
        elif kind == "read-only":
            message = f"{verb} to read-only {at.text}"
        elif home is None:
            message = f"{verb} outside any array, at address {at.text}"
        else:
            message = f"{verb} out of bounds: {at.text} ({at.extent})"
        self._add(
            kind, message, _ROLES[site.kind], site.instruction, count, thread, block,
            space=space, variable=at.variable, element=at.element,
        )  # fmt: skip

    def uninitialised(self, space: str, site: Site, address: Any, thread: Any, column: Any) -> None:
        """Reads of shared or local memory that nothing wrote; one element each."""
        name, element = self._place(space, int(address[0]), site)
        if space == "local":
            self.local_reads.setdefault(site.number, set()).update(np.unique(address).tolist())
        what = f"{space} {name}[{element}]"
        if name == LOCAL_MEMORY:
            what = f"byte {int(address[0])} of the thread's local memory"
        g = self.geometry
        self._add(
            "uninitialised", f"read of {what} that nothing wrote",
            "read", site.instruction, len(thread),
            self._thread(int(thread[0])), g.block_at(int(column[0])),
            space=space, variable=name, element=element,
        )  # fmt: skip

    def drop_local_reads(self, sites: set[int]) -> None:
        """Reads of unwritten local memory that turned out to change nothing."""
        left = {line_of(self.sites[n].instruction) for n in self.local_reads if n not in sites}
        lines = {line_of(self.sites[n].instruction) for n in sites} - left
        for key, hazard in list(self.found.items()):
            if key[0] == "uninitialised" and hazard.space == "local" and key[1] in lines:
                del self.found[key]

    def _place(self, space: str, address: int, site: Site) -> tuple[str, int]:
        """Variable name and element of a shared or local address."""
        find = self.layout.shared_variable if space == "shared" else self.layout.local_variable
        placed = find(address)
        if placed is None:
            return f"{space} memory", address // site.size
        name = variable_name(placed.variable.name)
        return name, (address - placed.address) // site.size

    def _thread(self, number: int) -> Triple:
        x, y, _ = self.shape
        return number % x, number // x % y, number // (x * y)

    def _block(self, number: int) -> Triple:
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    # -- races ----------------------------------------------------------------------

    def race(self, race: Race) -> None:
        """Racing pairs of two instructions."""
        c = race.conflict
        earlier_block, later_block = c.earlier // race.threads, c.later // race.threads
        earlier, later = c.earlier % race.threads, c.later % race.threads
        same_block = earlier_block == later_block
        same_warp = same_block & (earlier // WARP == later // WARP)
        reach = np.where(same_warp, 0, np.where(same_block, 1, 2))
        same_value = np.zeros(len(c.place), bool) if race.same_value is None else race.same_value
        for how in (0, 1, 2):
            for equal in (False, True):
                pick = np.flatnonzero((reach == how) & (same_value == equal))
                if pick.size:
                    self._race_group(race, self.sites[c.earlier_site], pick, how, equal)

    def _race_group(self, race: Race, earlier: Site, pick: Any, how: int, equal: bool) -> None:
        c, first = race.conflict, int(pick[0])
        reach = ("lane", "warp", "block")[how]
        one, two = line_of(earlier.instruction), line_of(race.site.instruction)
        place = int(c.place[first])
        if race.space == "shared":
            address = place // self.geometry.columns * race.granule
            name, element = self._place("shared", address, race.site)
        else:
            assert race.allocation is not None
            name, element = race.allocation.name, place * race.granule // race.site.size
        severity = "warning" if equal or reach == "lane" else "error"
        key = (c.kind, race.space, name, one, two, reach, equal)
        group = self.races.get(key)
        if group is None:
            group = self.races[key] = _RaceGroup(
                race, int(c.later[first]) % race.threads, int(c.later[first]) // race.threads,
                int(c.earlier[first]), severity, reach, name, element, earlier, equal,
            )  # fmt: skip
        copies = earlier.instruction, race.site.instruction
        group.copies[id(copies[0]), id(copies[1])] = copies
        group.pairs += len(pick)
        if len(group.places) < 100_000:
            group.places.update((c.place[pick]).tolist())
            group.blocks.update((c.later[pick] // race.threads).tolist())

    def _race_hazard(self, group: _RaceGroup) -> Hazard:
        race = group.race
        message = _RACES[race.conflict.kind].format(f"{race.space} {group.name}", _WHO[group.reach])
        earlier_block = self._block(group.other // race.threads)
        earlier = self.involved(
            _ROLES[group.earlier.kind], group.earlier.instruction,
            self._thread(group.other % race.threads), earlier_block,
        )  # fmt: skip
        later = self.involved(
            _ROLES[race.site.kind], race.site.instruction,
            self._thread(group.thread), self._block(group.block),
        )  # fmt: skip
        for one, two in group.copies.values():
            earlier, later = self._also(earlier, one), self._also(later, two)
        blocks = len(group.blocks)
        notes = [f"{blocks:,} block{'s' if blocks != 1 else ''}"]
        if group.same_value:
            notes.append("every write leaves the same value")
        elif race.conflict.same_instruction:
            notes.append("lanes of one instruction: which of them wins is not defined")
        elif group.reach == "lane":
            notes.append("lanes of a warp need __syncwarp() between them")
        elif group.reach == "block":
            notes.append("no barrier orders two blocks of one launch: use atomics or two launches")
        return Hazard(
            f"{race.conflict.kind}-race", message, group.severity, race.space, group.name,
            group.element, (earlier, later), group.pairs, tuple(notes),
        )  # fmt: skip
