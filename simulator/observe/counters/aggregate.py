"""Aggregation of observed counts to counters of a launch and of each source line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kernels.compiler.toolkit import short_path
from kernels.ptx.module import Instruction

from ...compile.probes import Arithmetic
from ...compile.program import CompiledBlock
from ...hazards.sources import Sources
from ...memory.site import Site
from .totals import TENSOR, Counters, InstructionCounter, Line
from .traffic import Traffic
from .traffic_counter import COUNTED_SPACES, TrafficCounter

_Arithmetic = tuple[int, int | None, int, str | None, int]
"""Basic block, tally, place, counter and operations a thread of a floating-point instruction."""


class SourcePlaces:
    """Source places of a program's instructions, shared by all of its launches.

    Attributes:
        instructions: First instruction of each place: a user's source line, or a PTX line.
        blocks: For each basic block, the number of its instructions at each place.
        terminator_places: Place of each basic block's terminator.
        arithmetic: Floating-point instructions, with their number per kind.
        accesses: Place and counter of each access, by ``TrafficCounter``'s slots.
    """

    def __init__(
        self, blocks: Sequence[CompiledBlock], arithmetic: Sequence[Arithmetic],
        sites: Sequence[Site],
    ) -> None:  # fmt: skip
        self.instructions: list[Instruction] = []
        self._numbers: dict[tuple[str | None, int], int] = {}
        self.blocks = [Counter(map(self._place, block.block.instructions)) for block in blocks]
        self.terminator_places = [
            self._place(b.block.instructions[-1]) if own else -1
            for b, own in zip(blocks, self.blocks, strict=True)
        ]
        self.arithmetic: Counter[_Arithmetic] = Counter(
            (a.block, a.tally, self._place(a.instruction), a.count, a.flops) for a in arithmetic
        )
        self.accesses = [
            (self._place(site.instruction), name) for site in sites for name in _names(site)
        ]

    def _place(self, ins: Instruction) -> int:
        at = ins.location.user if ins.location else None
        key = (at.file, at.line) if at else (None, ins.line)
        if key not in self._numbers:
            self._numbers[key] = len(self.instructions)
            self.instructions.append(ins)
        return self._numbers[key]


def _names(site: Site) -> list[str]:
    """Return the counters that an access adds to, by its space; empty: none."""
    own = bool(site.is_image) or site.space == "const"
    where = [site.space if own else space for space in COUNTED_SPACES]
    if site.in_bulk:
        where = ["bulk" if space == "global" else "bulk_shared" for space in COUNTED_SPACES]
    counts = site.traffic or site.in_bulk
    return [f"{space}_{site.access}" if counts else "" for space in where]


def collect(
    places: SourcePlaces, ran: InstructionCounter, traffic: TrafficCounter, sources: Sources
) -> tuple[Counters, list[Line]]:
    """Return the counters of the launch, and of each source line in source order."""
    total = Counters()
    lines: dict[tuple[str, int], Line] = {}
    known: dict[int, Counters] = {}
    paths: dict[str, str] = {}

    def targets(place: int) -> tuple[Counters, Counters]:
        if place not in known:
            ins = places.instructions[place]
            location = ins.location.user if ins.location else None
            if location and location.file not in paths:
                paths[location.file] = short_path(location.file)
            key = (paths[location.file], location.line) if location else ("PTX", ins.line)
            if key not in lines:
                lines[key] = Line(*key, sources.code(location) if location else ins.name)
            known[place] = lines[key].counters
        return total, known[place]

    for number, block in enumerate(places.blocks):
        threads, warps = ran.threads[number], ran.warps[number]
        if warps:
            for place, times in block.items():
                for counters in targets(place):
                    counters.thread_instructions += threads * times
                    counters.warp_instructions += warps * times
            for counters in targets(places.terminator_places[number]) if block else ():
                counters.divergent_branches += ran.parted[number]
                counters.barriers += ran.met[number]
    for (number, tally, place, count, flops), times in places.arithmetic.items():
        threads = ran.threads[number] if tally is None else ran.guarded[tally]
        if threads:
            work = threads * flops * times
            for counters in targets(place):
                counters.flops += work if count != "tensor_int" else 0
                if count:
                    more = work if count in TENSOR else threads * times
                    setattr(counters, count, getattr(counters, count) + more)
    together: dict[tuple[int, str], list[list[int]]] = {}
    for slot, figures in traffic.costs():
        together.setdefault(places.accesses[slot], []).append(figures)
    for (place, name), several in together.items():
        cost = Traffic(*map(sum, zip(*several, strict=True)))
        for counters in targets(place) if name else ():
            setattr(counters, name, getattr(counters, name) + cost)
    return total, [lines[key] for key in sorted(lines)]
