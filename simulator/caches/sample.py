"""Which blocks of a grid are run to see what the launch does, and what was seen of them.

Blocks are handed to multiprocessors in turn, so those that run on one at a time are ``sms`` apart.
A sample is made of such groups, spread over the launch; the grid that is small runs whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..analysis.taint import depends_on_data
from ..compile.program import Program
from ..core.geometry import Flat, Geometry, Mask
from ..events import Dispatcher, Observer, Stall
from ..execute.batches import InterBlockWait, batches, run_batches
from ..execute.prepare import PreparedLaunch
from ..memory.event import BadAccess
from ..observe.counters.totals import InstructionCounter
from .access_recorder import RequestCounter, TouchWatch
from .atomics import AtomicWatch

WORK = 1.5e8
"""Thread instructions that a sample may have, about: some seconds."""
LANES = 1 << 16
"""Lanes of a batch, at most."""
FIRST = 1 << 12
"""Lanes of the first batch, at least."""


class PathCounter(Observer):
    """How often each basic block ran, one time after the other, summed over batches by blocks.

    ``stall``: why one did not come to its end; ``bad``: the first invalid access.
    """

    def __init__(self) -> None:
        self.rounds: dict[int, float] = {}
        self.barriers = 0.0
        self.stall: Stall | None = None
        self.bad: BadAccess | None = None

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self._blocks = geometry.columns

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        more = min(self._blocks, warps)
        self.rounds[block] = self.rounds.get(block, 0.0) + more

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``."""
        self.barriers += min(self._blocks, warps)

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        self.stall = self.stall or stall

    def bad_access(self, bad: BadAccess) -> None:
        """See ``Observer``."""
        self.bad = self.bad or bad


@dataclass
class Sample:
    """Counts and paths of some sampled blocks of a launch.

    Attributes:
        blocks: Numbers of those that ran; ``groups``: which of them shared a multiprocessor.
        grid_blocks: Of the launch.
    """

    blocks: Flat
    groups: list[Flat]
    grid_blocks: int
    ran: InstructionCounter
    path: PathCounter
    requests: RequestCounter
    touches: TouchWatch
    atomics: AtomicWatch

    @property
    def factor(self) -> float:
        """Blocks of the launch for each that ran."""
        return self.grid_blocks / len(self.blocks)

    @property
    def whole(self) -> bool:
        """Whether all blocks ran."""
        return len(self.blocks) == self.grid_blocks


class _BatchWork(Observer):
    """Thread instructions of a batch."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.done = sizes, 0.0

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``; what a step costs by itself counts as some thousands of threads."""
        self.done += self.sizes[block] * (threads + 2000)


def take(launch: PreparedLaunch, sms: int, resident: int, widths: Mapping[int, int]) -> Sample:
    """Run a sample of a launch.

    Args:
        launch: The launch; its arguments stay as they are.
        sms: Multiprocessors of the GPU; ``resident``: blocks that one holds.
        resident: See there.
        widths: Of accesses, as ``sass_counts.widths`` has them.
    """
    launch = replace(launch, schedule="lockstep")
    try:
        return _take(launch, sms, max(1, resident), widths, together=launch.cooperative)
    except InterBlockWait:
        return _take(launch, sms, max(1, resident), widths, together=True)


def _take(
    launch: PreparedLaunch, sms: int, resident: int, widths: Mapping[int, int], together: bool
) -> Sample:
    program, total = launch.program, math.prod(launch.grid)
    threads = math.prod(launch.block)
    ran = InstructionCounter(len(program.blocks), len(program.arithmetic))
    requests = RequestCounter(len(program.sites), {}, widths)
    path, touches, atomics = PathCounter(), TouchWatch(), AtomicWatch()
    work = _BatchWork([len(block.block.instructions) for block in program.blocks])
    observers: list[Observer] = [ran, requests, path, touches, work]
    if any(site.access == "atomic" for site in program.sites):
        observers.append(atomics)
    dispatcher, allocations = Dispatcher(observers), launch.allocations()
    blank = program.analysis(_goes_alike)
    groups = _groups(total, sms, resident)
    done: list[Flat] = []

    if together or math.prod(launch.cluster) > 1:
        for numbers in batches(launch, together):
            run_batches(launch, allocations, dispatcher, [numbers], together, blank=blank)
            done += [numbers[numbers % sms == sm] for sm in range(min(sms, total))]
            if work.done > WORK:
                break
        everything = np.sort(np.concatenate(done))
        here = [group for group in done if len(group)]
        return Sample(everything, here, total, ran, path, requests, touches, atomics)
    # A step costs some thousands of lanes' time by itself: the first batch has as many.
    some = max(1, -(-FIRST // (max(len(group) for group in groups) * threads)))
    while groups:
        part = groups[:some]
        groups = groups[some:]
        run_batches(launch, allocations, dispatcher, [np.sort(np.concatenate(part))], blank=blank)
        done += part
        each = work.done / len(done)
        budget = WORK - work.done
        if budget < each or touches.full:
            break
        size = max(1, sum(len(g) for g in done) // len(done)) * threads
        some = max(1, min(int(budget / each), LANES // size, 64))
    blocks = np.sort(np.concatenate(done))
    return Sample(blocks, done, total, ran, path, requests, touches, atomics)


def _goes_alike(program: Program) -> bool:
    """Whether a launch does the same accesses whatever it computes."""
    anywhere = {"global", "shared", "local"}
    return (
        depends_on_data(program, lambda s: anywhere if s.space == "generic" else {s.space}) is None
    )


def _groups(total: int, sms: int, resident: int) -> list[Flat]:
    """Return the blocks that share a multiprocessor, in the order of examination."""
    wave = sms * resident
    waves = -(-total // wave)
    # Spread over the launch, first and last wave among them, and over the multiprocessors.
    found, used = [], np.zeros(0, np.int64)
    for step in range(64 if waves > 1 else sms):
        number = _spread(step, waves)
        sm = (step * 61 if waves > 1 else step) % min(sms, total)
        group = np.arange(number * wave + sm, min((number + 1) * wave, total), sms, dtype=np.int64)
        if number or waves > 8:  # the first multiprocessor to finish gets the next block
            last = min(wave, total - number * wave)
            rng = np.random.default_rng(step)
            group = number * wave + np.sort(rng.choice(last, len(group), replace=False))
            group = group[~np.isin(group, used)]
        used = np.concatenate([used, group])
        if len(group):
            found.append(group)
    unique: dict[int, Flat] = {}
    for group in found:
        unique.setdefault(int(group[0]), group)
    return list(unique.values())


def _spread(step: int, count: int) -> int:
    """Return numbers below a count, spread by the golden ratio."""
    return int((step * 0.6180339887498949 + 0.5) % 1.0 * count)
