"""What hazards say: each text stands here, once."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from kernels.errors import LaunchError
from kernels.ptx.module import Instruction, Special
from kernels.ptx.names import LOCAL_MEMORY, variable_name

from ..analysis.steering import Steering
from ..compile.program import Program
from ..geometry import Geometry
from ..memory.site import Site
from ..memory.spaces import Home
from ..races.book import RaceBook
from .control import Control, Who, line_of
from .hazard import SEVERITIES, Hazard, Involved, Triple
from .naming import spot
from .sources import Sources

_VERBS = {"load": "read", "store": "write", "atomic": "atomic access"}
_ROLES = {"load": "read", "store": "write", "atomic": "atomic"}


class Findings:
    """Collects hazards; the same finding at the same source line is one hazard with a count."""

    def __init__(
        self, sources: Sources, program: Program, steering: Steering, grid: Triple, block: Triple
    ) -> None:
        self.sources, self.layout, self.sites = sources, program.layout, program.sites
        self.functions = program.module.functions
        self.reads_grid = any(  # the driver's workspace for the barrier of a grid
            isinstance(operand, Special) and operand.name.startswith("%envreg")
            for function in self.functions.values()
            for ins in function.body
            for operand in ins.operands
        )
        self.grid, self.shape = grid, block
        self.found: dict[Any, Hazard] = {}
        self.control = Control(self.sources, self.involved)
        self.races = RaceBook(program, steering, self._place, self._part, self._thread, self._block)
        self.local_reads: dict[int, set[int]] = {}
        self.unwritten: dict[Any, set[int]] = {}
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """A new batch begins."""
        self.geometry = self.control.geometry = geometry

    def hazards(self) -> list[Hazard]:
        """Errors first, then in order of discovery.

        A read that nothing has written *yet*, because a write that nothing orders came later
        in this schedule, is that race and no hazard of its own.
        """
        raced = {k for k, places in self.unwritten.items() if self.races.explains(k, places)}
        found = [hazard for key, hazard in self.found.items() if key not in raced]
        everything = [*found, *self.control.hazards(), *self.races.hazards()]
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

    def _part(
        self, role: str, copies: list[Instruction], thread: Triple, block: Triple
    ) -> Involved:
        """The part of an instruction, and of its copies that unrolling or calls made."""
        item = self.involved(role, copies[0], thread, block)
        for ins in copies[1:]:
            item = self._also(item, ins)
        return item

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
        g = self.geometry
        if space == "shared":
            places = (g.blocks[column] << 32) + address // site.size
            self._unwritten(site, name).update(np.unique(places).tolist())
        what = f"{space} {name}[{element}]"
        if name == LOCAL_MEMORY:
            what = f"byte {int(address[0])} of the thread's local memory"
        self._add(
            "uninitialised", f"read of {what} that nothing wrote",
            "read", site.instruction, len(thread),
            self._thread(int(thread[0])), g.block_at(int(column[0])),
            space=space, variable=name, element=element,
        )  # fmt: skip

    def unset(self, site: Site, name: str, elements: Any, thread: Any, column: Any) -> None:
        """Reads of global memory that is as ``cudaMalloc`` left it."""
        element = int(elements[0])
        self._unwritten(site, name).update(np.unique(elements).tolist())
        self._add(
            "uninitialised", f"read of global {name}[{element}] that nothing wrote",
            _ROLES[site.kind], site.instruction, len(thread), self._thread(int(thread[0])),
            self.geometry.block_at(int(column[0])), space="global", variable=name, element=element,
        )  # fmt: skip

    def _unwritten(self, site: Site, name: str) -> set[int]:
        """Where a source line read what nothing had written, as ``RaceBook`` names locations."""
        key = ("uninitialised", line_of(site.instruction), name, "read")
        return self.unwritten.setdefault(key, set())

    def unset_constant(self, site: Site, name: str, lanes: Any) -> None:
        """A read of constant memory that has no initialiser: nothing can have filled it."""
        who = Who().add(self.geometry, lanes)
        self._add(
            "unset-constant", f"read of constant {name}, which nothing has filled: zeros here",
            "read", site.instruction, who.count, *who.example, space="const", variable=name,
        )  # fmt: skip

    def trap(self, ins: Instruction) -> None:
        """Tell the trap of ``this_grid().sync()`` from others.

        Raises:
            LaunchError: It is that trap: the launch is not cooperative.
        """
        inside = self.sources.inside(ins)
        if inside and "cooperative_groups" in inside.file and self.reads_grid:
            raise LaunchError(
                "the grid is synchronised, which needs a cooperative launch; the simulator does "
                f"not execute those yet: {self.sources.of(ins)}, PTX line {ins.line}"
            )

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
