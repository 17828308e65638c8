"""What hazards say: each text stands here, once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiler import CompiledBlock
from .geometry import Geometry
from .hazard import SEVERITIES, Hazard
from .layout import Layout
from .machine import Waiting
from .module import Instruction
from .site import Site
from .sources import Sources

_VERBS = {"load": "read", "store": "write", "atomic": "atomic access"}


class Findings:
    """Collects hazards; the same finding at the same instruction is one hazard with a count."""

    def __init__(self, sources: Sources, layout: Layout) -> None:
        self.sources, self.layout = sources, layout
        self.found: dict[tuple[str, int, str], Hazard] = {}
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """A new batch begins."""
        self.geometry = geometry

    def add(self, hazard: Hazard) -> None:
        """Keep a hazard, or add to the count of the one already known."""
        key = (hazard.kind, hazard.details.get("instruction", 0), hazard.variable)
        if key in self.found:
            self.found[key].count += hazard.count
        else:
            self.found[key] = hazard

    def sorted(self) -> list[Hazard]:
        """Errors first, then in order of discovery."""
        return sorted(self.found.values(), key=lambda h: h.severity != "error")

    def _make(self, kind: str, message: str, ins: Instruction | None, **more: Any) -> Hazard:
        sources = (self.sources.of(ins),) if ins else ()
        names = (ins.name,) if ins else ()
        return Hazard(
            kind, message, SEVERITIES[kind], sources=sources, instructions=names,
            details={"instruction": ins.line if ins else 0}, **more,
        )  # fmt: skip

    # -- memory -------------------------------------------------------------------

    def memory(
        self,
        kind: str,
        site: Site,
        relative: int,
        name: str,
        thread: tuple[int, int, int],
        block: tuple[int, int, int],
        count: int,
    ) -> Hazard:
        """A bad access; ``relative`` is the byte offset from the start of ``name``."""
        verb = _VERBS[site.kind]
        space = site.space if site.space != "generic" else "global"
        element = relative // site.size if relative % site.size == 0 else None
        place = f"{name}[{element}]" if element is not None else f"{name} at byte {relative}"
        if name.endswith(" memory"):
            space = name.split()[0]
            place = f"byte {relative} of {name}"
        if kind == "misaligned":
            message = f"misaligned {verb} of {place}: not a multiple of {site.width} bytes"
        elif kind == "read-only":
            message = f"{verb} to read-only {place}"
        elif not name:
            space, element = "global", None
            message = f"{verb} outside any array, at address {relative:#x}"
            if 0 <= relative < 4096:
                message += " (a null pointer?)"
        else:
            message = f"{verb} out of bounds: {place}"
        return self._make(
            kind, message, site.instruction, space=space, variable=name, element=element,
            thread=thread, block=block, count=count,
        )  # fmt: skip

    # -- control --------------------------------------------------------------------

    def barrier_released(self, waits: list[Waiting], lanes: Any) -> None:
        """A barrier let lanes go; threads that stood at different ones are a hazard."""
        if len({wait.block.number for wait in waits}) > 1:
            first, second = waits[0].block.block.end, waits[1].block.block.end
            hazard = self._make(
                "barrier-divergence", "threads of a block wait at different barriers", first,
                **self._example(waits[0].mask),
            )  # fmt: skip
            if first and second:
                hazard.sources = (self.sources.of(first), self.sources.of(second))
                hazard.instructions = (first.name, second.name)
            self.add(hazard)

    def stuck(self, waiting: list[Waiting], alive: Any) -> None:
        """Some threads wait at a barrier that the others never reach."""
        for wait in waiting:
            self.add(
                self._make(
                    "deadlock", "threads wait at a barrier that others never reach",
                    wait.block.block.end, **self._example(wait.mask),
                )
            )  # fmt: skip

    def event(self, kind: str, block: CompiledBlock, lanes: Any) -> None:
        """``trap``, a failed ``assert``, or a warp instruction that waits in vain."""
        ins = block.block.end if kind in ("trap", "assert") else block.block.body[0]
        text = {
            "trap": "the kernel executed a trap",
            "assert": "an assertion failed",
            "bad-mask": "a member mask names lanes that never come to this instruction",
        }[kind]
        self.add(self._make(kind, text, ins, **self._example(lanes)))

    def _example(self, lanes: Any) -> dict[str, Any]:
        g = self.geometry
        full = np.broadcast_to(np.bool_(True) if lanes is None else lanes, g.shape)
        if not full.any():
            return {}
        first = np.unravel_index(int(np.argmax(full)), full.shape)
        thread, block = g.thread_at(tuple(int(i) for i in first))
        return {"thread": thread, "block": block, "count": int(np.count_nonzero(full))}
