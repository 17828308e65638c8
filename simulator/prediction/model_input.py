"""All that the time of a launch is worked out from; advice changes one thing of it at a time."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernels.machine_code.sass import MachineInstruction

from ..caches.traffic import Observed
from ..execute.prepare import PreparedLaunch
from . import estimated_sass, sass_counts
from .block_footprint import OneBlock, one_block
from .critical_path import chain
from .estimated_sass import MachineBlock
from .model import Shape, Times, times
from .rates import Rates
from .work import SiteWork, Work, issued, of_block


@dataclass(frozen=True)
class PredictionCase:
    """A launch on a GPU.

    Attributes:
        launch: The launch.
        observed: Measurements of its sampled blocks.
        rates: Constants of the GPU.
        found: The machine code, counted.
        work: Of a block.
        memory: Bytes that DRAM reads and writes; ``updated``: that it reads for atomics.
        shape: Of the grid.
    """

    launch: PreparedLaunch
    observed: Observed
    rates: Rates
    found: Sequence[MachineBlock]
    work: Work
    memory: tuple[float, float]
    updated: float
    shape: Shape

    @functools.cached_property
    def took(self) -> Times:
        """Seconds, in all and by part."""
        program, blocks = self.launch.program, len(self.observed.sample.blocks)
        waits = chain(program, self.found, self.work, blocks, self.rates, self.to_dram)
        row_misses = self.observed.memory.row_misses
        return times(
            self.work, waits, self.memory, row_misses, self.observed.gpu, self.rates, self.shape
        )

    @property
    def to_dram(self) -> float:
        """Share of what loads ask L2 for that DRAM has to read."""
        asked = self.work.l2_read * 32 * self.shape.blocks
        return min(1.0, (self.memory[0] - self.updated) / asked) if asked else 0.0

    @property
    def own(self) -> float:
        """Seconds without those that every launch takes."""
        return self.took.total - self.rates.launch_us * 1e-6

    @functools.cached_property
    def block(self) -> OneBlock:
        """What one block touches."""
        return one_block(self.observed.sample.touches)

    def with_sites(
        self, changed: Mapping[int, SiteWork], *more: SiteWork, dense: float = 1.0
    ) -> PredictionCase:
        """With other figures of some accesses.

        Args:
            changed: By their place in ``work.sites``.
            more: Accesses that there were not.
            dense: Share of what the launch touches that DRAM has to read at least.
        """
        sites = [changed.get(at, one) for at, one in enumerate(self.work.sites)]
        work = dataclasses.replace(self.work, sites=[*sites, *more])
        before, after = self.work.l2_read, work.l2_read
        read, written = self.memory
        loaded = read - self.updated
        least = min(loaded, self.observed.memory.footprint * dense)
        if after < before:
            loaded = max(least, loaded * after / before)
        return dataclasses.replace(self, work=work, memory=(loaded + self.updated, written))

    def without(self, gone: Callable[[MachineInstruction], bool]) -> PredictionCase:
        """With some machine instructions left out."""
        found = [
            dataclasses.replace(piece, code=[i for i in piece.code if not gone(i)])
            for piece in self.found
        ]
        return self.with_code(found)

    def with_code(self, found: Sequence[MachineBlock]) -> PredictionCase:
        """With other machine code."""
        work = dataclasses.replace(
            self.work, issued=issued(found, len(self.observed.sample.blocks))
        )
        return dataclasses.replace(self, found=found, work=work)


def case(launch: PreparedLaunch, observed: Observed, known: Rates, caches: str) -> PredictionCase:
    """A launch as it was observed; ``caches`` as ``predict`` takes it."""
    sample = observed.sample
    found = counted(observed, dict(enumerate(sample.ran.warps)), sample.path.rounds)
    moved = observed.moved(caches == "cold")
    warps = -(-math.prod(launch.block) // 32)
    shape = Shape(observed.blocks, warps, max(1, observed.occupancy.blocks))
    memory = moved.read, moved.written
    return PredictionCase(
        launch, observed, known, found, of_block(observed, found), memory, moved.updated, shape
    )


def counted(
    observed: Observed, warps: Mapping[int, int], rounds: Mapping[int, float]
) -> list[MachineBlock]:
    """The machine code, or the PTX in its place, by how often each basic block of the PTX ran."""
    program = observed.launch.program
    if observed.code is not None and observed.code.known:
        return sass_counts.pieces(program, observed.code, warps, rounds)
    return estimated_sass.pieces(program, warps, rounds)
