"""Collection of hazards; their wording is in ``kinds.py``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kernels.errors import LaunchError
from kernels.ptx.module import Function, Instruction, Line
from kernels.ptx.names import LOCAL_MEMORY

from ..compile.program import CompiledBlock
from ..core.geometry import WARP, Flat, Geometry, Mask
from ..events import Observer, Stall
from ..isa.decoded import calls
from ..memory.site import Site
from ..memory.storage.layout import Layout
from ..memory.storage.spaces import Home
from ..memory.storage.word_ops import unique
from .control import ControlHazards
from .folding import Shifts, counted, fold
from .hazard import Hazard, Triple
from .kinds import EXITED_BLOCK, KINDS, LEAVES, UNINITIALISED, UNSET_CONSTANT, HazardKind
from .participants import ROLES, VERBS
from .races.races import RaceHazards
from .sources import Sources, Who
from .traps import reads_grid
from .wording.array_shapes import Shapes
from .wording.naming import place_at, spot

_USERS = 3
"""Lines that a report names as users of an uninitialised value, at most."""


class _Key(NamedTuple):
    """Identity of a finding: kind, source line, variable and role."""

    kind: str
    line: Line
    variable: str
    role: str
    site: int = -1
    """Site of an uninitialised read, until it is known whether its value is used; -1 then."""


class Findings(Observer):
    """Collects hazards; equal findings at one source line become one hazard with a count.

    ``put_in``: returns why the compiler inserted a trap (``traps.compiler_inserted_reason``).

    Attributes:
        more: Complete hazards that checks report at the end of the launch.
    """

    def __init__(
        self, sources: Sources, layout: Layout, functions: Mapping[str, Function],
        races: RaceHazards, put_in: Callable[[Instruction], str | None],
        shapes: Callable[[], Shapes],
    ) -> None:  # fmt: skip
        self.put_in, self._shapes = put_in, shapes
        self.sources, self.layout, self.functions, self.races = sources, layout, functions, races
        self.sites = races.sites
        self.found: dict[_Key, Hazard] = {}
        self.more: list[Hazard] = []
        self.control = ControlHazards(sources)
        self.uninitialised_reads: dict[_Key, set[int]] = {}
        self.shifts = Shifts()
        self.independent: list[Hazard] | None = None
        self.synchronised: list[Hazard] | None = None
        self.geometry: Geometry

    @functools.cached_property
    def shapes(self) -> Shapes:
        """Shapes of arrays, for the names of elements."""
        return self._shapes()

    def start(self, geometry: Geometry) -> None:
        """Begin a batch."""
        self.geometry = self.control.geometry = geometry

    def event(self, name: str, block: CompiledBlock, lanes: Mask | None, text: str = "") -> None:
        """See ``Observer``."""
        if name == "trap" and block.block.end:
            self.trap(block.block.end)
            put_in = self.put_in(block.block.end)
            if put_in is not None:
                name, text = "undefined", put_in
        self.control.event(name, block, lanes, text)

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        self.control.stuck(stall)

    def merge(self, other: Findings) -> None:
        """See ``Observer``; ``RaceCheck`` merges the races."""
        for key, hazard in other.found.items():
            mine = self.found.setdefault(key, hazard)
            if mine is not hazard:
                mine.count += hazard.count
                first, theirs = mine.involved[0], hazard.involved[0]
                mine.involved = (first.called(*theirs.calls[:1], *theirs.also), *mine.involved[1:])
        self.control.merge(other.control)
        for key, places in other.uninitialised_reads.items():
            self.uninitialised_reads.setdefault(key, set()).update(places)
        self.shifts.merge(other.shifts)

    @property
    def clean(self) -> bool:
        """Whether there are no findings."""
        races = self.races.race_log.groups or self.races.of_registers.found
        return not (self.found or self.more or self.control.groups or races)

    def hazards(self) -> list[Hazard]:
        """Return all hazards: errors first, then in order of discovery."""
        raced, lines = self._raced(), dict[_Key, Hazard]()
        for key, hazard in self.found.items():
            line = key._replace(site=-1)
            if line in raced:
                continue
            once, hazard = KINDS[key.kind].once, dataclasses.replace(hazard)
            mine = lines.setdefault(line._replace(line=("", 0)) if once else line, hazard)
            if mine is not hazard:
                mine.count += hazard.count
                theirs = hazard.involved[0]
                if once:
                    mine.involved = (*mine.involved, *hazard.involved)
                    continue
                called = mine.involved[0].called(*theirs.calls[:1], *theirs.also)
                more = (part for part in hazard.involved[1:] if part not in mine.involved)
                mine.involved = (called, *mine.involved[1:], *more)
        found = [*(counted(hazard) for hazard in lines.values()), *self.more]
        found += self.control.hazards()
        if self.races.race_log.groups or self.races.of_registers.found:
            found += self.races.hazards(self.geometry)
        known = self.shifts.known(self.uninitialised_reads, self.independent)
        found = fold(found, known._replace(synchronised=self.synchronised))
        return sorted(found, key=lambda h: h.severity != "error")

    def _raced(self) -> set[_Key]:
        """Return uninitialised reads that are races and therefore no findings of their own.

        An unordered write came later under this schedule.
        """
        return {
            key
            for key, places in self.uninitialised_reads.items()
            if self.races.race_log.explains(key.line, key.variable, places)
        }

    def _add(
        self, kind: HazardKind, role: str, ins: Instruction, count: int,
        thread: Triple | None, block: Triple | None, space: str, variable: str,
        element: int | None, words: Mapping[str, object], case: str = "", site: int = -1,
    ) -> None:  # fmt: skip
        """Add a finding; ``words`` fill the format of its case's message."""
        key = _Key(kind.name, ins.user_line, variable, role, site)
        if key in self.found:
            hazard = self.found[key]
            hazard.count += count
            hazard.involved = (self.sources.also(hazard.involved[0], ins), *hazard.involved[1:])
            return
        said = kind.case(case)
        self.found[key] = Hazard(
            kind.name, said.message.format_map(words), said.severity, space, variable, element,
            (self.sources.part(role, [ins], thread, block),), count,
            notes=(said.note,) if said.note else (), case=case,
        )  # fmt: skip

    # -- memory -------------------------------------------------------------------

    def memory(
        self, name: str, site: Site, relative: int, home: Home | None,
        thread: Triple, block: Triple, count: int, what: str = "",
        span: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """Add an invalid access, by the hazard's name: see ``BadAccess``."""
        kind, case = KINDS[name], "picture" if what else "nowhere" * (home is None)
        code = self.sources.of(site.instruction).code
        at = spot(home, relative, site, self.layout, self.functions, self.shapes, code)
        if kind.causes and site.access == "store":
            self.shifts.overran(at, site, relative, span or (relative, relative))
        words = {
            "verb": VERBS[site.access], "place": what or at.text, "extent": at.extent,
            "space": site.space, "width": site.nbytes,
        }  # fmt: skip
        self._add(
            kind, ROLES[site.access], site.instruction, count, thread, block,
            site.space if kind.by_instruction else at.space, at.variable, at.element, words,
            case if case in kind.cases else "",
        )  # fmt: skip

    def uninitialised(
        self, space: str, site: Site, address: Flat, thread: Flat, column: Flat, home: Flat
    ) -> None:
        """Add reads of uninitialised shared or local memory, one element each.

        ``home``: column of the block whose memory is read.
        """
        code, at = self.sources.of(site.instruction).code, int(address[0])
        name, element, text = place_at(self.layout, self.shapes, space, at, site, code)
        if space == "shared":
            places = (self.geometry.blocks[home] << 32) + address // site.size
            self._locations(site, name).update(unique(places).tolist())
            self.shifts.read(site, self.layout.variable(space, at))
        place = text if name == LOCAL_MEMORY else f"{space} {text}"
        self._uninitialised("read", site, place, space, name, element, thread, column)

    def uninitialised_global(
        self, site: Site, number: int, name: str, elements: Flat, thread: Flat, column: Flat
    ) -> None:
        """Add reads of uninitialised global memory."""
        element = int(elements[0])
        self._locations(site, name).update(unique(elements).tolist())
        index = self.shapes.place(name, number, element * site.size, site.size)
        role, place = ROLES[site.access], f"global {name}{index}"
        self._uninitialised(role, site, place, "global", name, element, thread, column)

    def _uninitialised(
        self, role: str, site: Site, place: str, space: str, name: str, element: int,
        thread: Flat, column: Flat,
    ) -> None:  # fmt: skip
        g = self.geometry
        self._add(
            UNINITIALISED, role, site.instruction, len(thread),
            *g.place(int(thread[0]), int(g.blocks[column[0]])), space, name, element,
            {"place": place}, site=-1 if calls(site.instruction) else site.number,
        )  # fmt: skip

    def _locations(self, site: Site, name: str) -> set[int]:
        """Return the uninitialised locations that a line read, numbered as in ``RaceLog``."""
        key = _Key(UNINITIALISED.name, site.line, name, "read")
        return self.uninitialised_reads.setdefault(key, set())

    def shuffled(self, ins: Instruction, read: int, block: int, count: int) -> None:
        """Add a read of an inactive lane's register (``InactiveLaneRead.reads``)."""
        g = self.geometry
        thread, source, named = read // 2 // WARP, read // 2 % WARP, read % 2
        lane = thread % WARP
        there = thread - lane + source < g.threads
        case = ("absent" if named else "left out") if there else "nobody"
        self._add(
            UNINITIALISED, "read", ins, count, *g.place(thread, block), "", "", None,
            {"who": f"lane {lane}", "value": source}, case,
        )  # fmt: skip

    def exited(self, site: Site, thread: Flat, column: Flat) -> None:
        """Add accesses to shared memory of blocks that may have exited, one thread each."""
        g = self.geometry
        self._add(
            EXITED_BLOCK, ROLES[site.access], site.instruction, len(thread),
            *g.place(int(thread[0]), int(g.blocks[column[0]])), "shared", "", None,
            {"verb": VERBS[site.access]}, LEAVES,
        )  # fmt: skip

    def unset_constant(self, site: Site, name: str, who: Who) -> None:
        """Add a read of constant memory without an initialiser, which nothing can have filled."""
        self._add(
            UNSET_CONSTANT, "read", site.instruction, who.count, *who.example,
            "const", name, None, {"place": name},
        )  # fmt: skip

    def trap(self, ins: Instruction) -> None:
        """Distinguish the trap of ``this_grid().sync()`` from others.

        Raises:
            LaunchError: It is that trap: the launch is not cooperative.
        """
        inside = self.sources.inside(ins)
        if inside and "cooperative_groups" in inside.file and reads_grid(self.functions):
            raise LaunchError(
                "the grid is synchronised, which needs a cooperative launch (cooperative=True, "
                f"--cooperative): {self.sources.of(ins)}, PTX line {ins.line}"
            )

    def uninitialised_read_sites(self) -> list[int]:
        """Return the sites that read uninitialised memory."""
        raced = self._raced()
        keys = (key for key in self.found if key.site >= 0 and key._replace(site=-1) not in raced)
        return sorted({key.site for key in keys})

    def used_uninitialised_sites(self) -> set[int]:
        """Return the sites that read uninitialised memory and whose values are used."""
        return {key.site for key in self.found if key.kind == UNINITIALISED.name and key.site >= 0}

    def keep_used(self, uses: Mapping[int, Sequence[Instruction]]) -> None:
        """Drop uninitialised reads without a use, and name the uses of the others."""
        for key in [key for key in self.found if key.site >= 0]:
            if key.site not in uses:
                del self.found[key]
                continue
            hazard = self.found[key]
            users = {self.sources.of(ins): ins for ins in reversed(uses[key.site])}
            users.pop(hazard.involved[0].source, None)
            parts = [self.sources.part("used", [ins]) for ins in reversed(users.values())]
            hazard.involved += tuple(parts[:_USERS])
