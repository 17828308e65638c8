"""From what was counted while running to counters of the launch and of each line."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.ptx.module import Instruction
from kernels.toolkit import short_path

from ..compile.program import Program
from ..execute.machine import Machine
from ..geometry import Geometry
from ..hazards.sources import Sources
from ..run import Counters, Line
from .counters import TrafficCounter


class Tally:
    """Thread counts of guarded floating-point instructions."""

    def __init__(self, program: Program) -> None:
        self.counts = np.zeros(len(program.arithmetic), np.int64)
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """A new batch begins."""
        self.geometry = geometry

    def add(self, number: int, mask: Any) -> None:
        """Count an instruction's active threads."""
        self.counts[number] += self.geometry.active(mask)[0]


def collect(
    program: Program, machine: Machine, traffic: TrafficCounter, tally: Tally, sources: Sources
) -> tuple[Counters, list[Line]]:
    """Counters of the launch, and per source line in source order."""
    total = Counters(divergent_branches=machine.divergent_branches, barriers=machine.barrier_warps)
    lines: dict[tuple[str, int], Line] = {}

    paths: dict[str, str] = {}

    def targets(ins: Instruction) -> tuple[Counters, Counters]:
        location = ins.location.user if ins.location else None
        if location and location.file not in paths:
            paths[location.file] = short_path(location.file)
        key = (paths[location.file], location.line) if location else ("PTX", ins.line)
        if key not in lines:
            lines[key] = Line(*key, sources.code(location) if location else ins.name)
        return total, lines[key].counters

    for block in program.blocks:
        threads = int(machine.thread_runs[block.number])
        warps = int(machine.warp_runs[block.number])
        if warps:
            for ins in block.block.instructions:
                for counters in targets(ins):
                    counters.thread_instructions += threads
                    counters.warp_instructions += warps
    for entry in program.arithmetic:
        guarded = entry.tally is not None
        threads = int(tally.counts[entry.tally] if guarded else machine.thread_runs[entry.block])
        if threads:
            for counters in targets(entry.instruction):
                counters.flops += threads * entry.flops
                if entry.count:
                    name = entry.count
                    setattr(counters, name, getattr(counters, name) + threads)
    for site in program.sites:
        for space, cost in traffic.traffic(site).items():
            where = "const" if site.space == "const" else space
            name = f"{where}_{site.kind}"
            for counters in targets(site.instruction):
                setattr(counters, name, getattr(counters, name) + cost)
    ordered = [lines[key] for key in sorted(lines)]
    return total, ordered
