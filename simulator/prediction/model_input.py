"""Input of the performance model; advice changes one part of it at a time."""

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
        found: The machine code with execution counts.
        work: Work of a block.
        memory: Bytes that DRAM reads and writes.
        updated: Bytes that it reads for atomics.
        shape: Shape of the grid.
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
        """Time in seconds, in total and by part."""
        program, blocks = self.launch.program, len(self.observed.sample.blocks)
        waits = chain(program, self.found, self.work, blocks, self.rates, self.to_dram)
        row_misses = self.observed.memory.row_misses
        return times(
            self.work, waits, self.memory, row_misses, self.observed.gpu, self.rates, self.shape
        )

    @property
    def to_dram(self) -> float:
        """Share of the L2 requests of loads that DRAM serves."""
        asked = self.work.l2_read * 32 * self.shape.blocks
        return min(1.0, (self.memory[0] - self.updated) / asked) if asked else 0.0

    @property
    def own(self) -> float:
        """Seconds without the constant overhead of a launch."""
        return self.took.total - self.rates.launch_us * 1e-6

    @functools.cached_property
    def block(self) -> OneBlock:
        """Footprint of one block."""
        return one_block(self.observed.sample.touches)

    def with_sites(
        self, changed: Mapping[int, SiteWork], *more: SiteWork, dense: float = 1.0
    ) -> PredictionCase:
        """Return the case with other costs of some accesses.

        Args:
            changed: Costs by index in ``work.sites``.
            more: Additional accesses.
            dense: Share of the footprint that DRAM has to read at least.
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
        """Return the case without some machine instructions."""
        found = [
            dataclasses.replace(piece, code=[i for i in piece.code if not gone(i)])
            for piece in self.found
        ]
        return self.with_code(found)

    def with_code(self, found: Sequence[MachineBlock]) -> PredictionCase:
        """Return the case with other machine code."""
        work = dataclasses.replace(
            self.work, issued=issued(found, len(self.observed.sample.blocks))
        )
        return dataclasses.replace(self, found=found, work=work)


def case(launch: PreparedLaunch, observed: Observed, known: Rates, caches: str) -> PredictionCase:
    """Build the model input of an observed launch; ``caches`` as for ``predict``."""
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
    """Return the machine code, or the PTX instead, with execution counts from the PTX's blocks."""
    program = observed.launch.program
    if observed.code is not None and observed.code.known:
        return sass_counts.pieces(program, observed.code, warps, rounds)
    return estimated_sass.pieces(program, warps, rounds)
