"""Which blocks of a grid are run to see what the launch does, and what was seen of them.

Blocks are handed to multiprocessors in turn, so those that run on one at a time are ``sms`` apart.
A sample is made of such groups, spread over the launch; the grid that is small runs whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..analysis.taint import depends_on_data
from ..compile.program import Program
from ..events import Observer, Stall, Told
from ..execute.batches import BlocksWait, batches, run_batches
from ..execute.prepare import Prepared
from ..geometry import Flat, Geometry, Mask
from ..memory.event import Event, Spread
from ..observe.totals import InstructionCounter
from .keys import SECTOR_BITS, packed, unpacked
from .watch import RequestCounter, TouchWatch

WORK = 1.5e8
"""Thread instructions that a sample may have, about: some seconds."""
LANES = 1 << 16
"""Lanes of a batch, at most."""
FIRST = 1 << 12
"""Lanes of the first batch, at least."""


_HOT = 4096
"""Words of a request by all blocks of a batch up to which one of them may be busy."""


class PathCounter(Observer):
    """How often each basic block ran, one time after the other, summed over batches by blocks.

    ``stall``: why one did not come to its end.
    """

    def __init__(self) -> None:
        self.rounds: dict[int, float] = {}
        self.barriers = 0.0
        self.stall: Stall | None = None

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self._blocks = geometry.columns

    def ran(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        more = min(self._blocks, warps)
        self.rounds[block] = self.rounds.get(block, 0.0) + more

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``."""
        self.barriers += min(self._blocks, warps)

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        self.stall = self.stall or stall


class AtomicWatch(Observer):
    """What atomics wait for: each other, where they go to one place.

    Attributes:
        pieces: Passes of global ones by the 512 bytes that they go to. Lanes of a request that go
            to one sector pass together, but for those that go to the same word. ``reach``: the
            first and the last block that goes there.
        words: Lanes of global ones by the word that they go to, where these are few.
        conflicts: Further passes of shared ones, whose lanes go to the same word; ``same``: that
            global ones would take, were they shared.
        requests: Of global ones, with the lanes of a line together.
    """

    def __init__(self) -> None:
        self.pieces: Counter[int] = Counter()
        self.reach: dict[int, tuple[int, int]] = {}
        self.words: Counter[int] = Counter()
        self.requests = self.conflicts = self.same = 0
        self.geometry: Geometry

    @property
    def passes(self) -> int:
        """Of all global ones."""
        return sum(self.pieces.values())

    def hottest(self, blocks: Flat, factor: float) -> float:
        """Share of all passes of the launch that goes to the busiest 512 bytes.

        Places where only neighbouring blocks go are no busier in a launch of more blocks.

        Args:
            blocks: Those that ran; ``factor``: blocks of the launch for each.
            factor: See there.
        """
        far = (int(blocks.max()) - int(blocks.min())) / 2
        most = max(
            (
                count * (factor if self.reach[number][1] - self.reach[number][0] >= far else 1)
                for number, count in self.pieces.items()
            ),
            default=0.0,
        )
        return most / (self.passes * factor) if self.pieces else 0.0

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def access(self, event: Event) -> None:
        """See ``Observer``."""
        site, g = event.site, self.geometry
        if site.access != "atomic" or not site.traffic or isinstance(event.address, Spread):
            return
        rows = g.by_warp(np.broadcast_to(event.address, g.shape), np.int64(-1))
        on = True if event.mask is None else np.broadcast_to(event.mask, g.shape)
        lanes = g.by_warp(np.broadcast_to(on, g.shape), False)
        keys = np.where(lanes, rows + site.offset, -1).transpose(0, 2, 1).reshape(-1, 32)
        ordered = np.sort(keys, axis=1)
        live = ordered >= 0
        run = np.where(live, 1, 0)
        for lane in range(1, 32):
            same = (ordered[:, lane] == ordered[:, lane - 1]) & live[:, lane]
            run[:, lane] = np.where(same, run[:, lane - 1] + 1, run[:, lane])
        further = int((run.max(axis=1) - 1)[live[:, -1]].sum())
        if event.space == "shared":
            # The machine counts lanes that add one to a word, and adds them all at once.
            ones = not site.type.startswith("f") and all(
                (np.asarray(one) == 1).all() for one in event.values or (0,)
            )
            self.conflicts += 0 if ones and site.instruction.has("add") else further
            return
        self.same += further
        words, lanes_of = np.unique(ordered[live], return_counts=True)
        if len(words) <= _HOT:
            self.words.update(dict(zip(words.tolist(), lanes_of.tolist(), strict=True)))
        sectors = np.where(live, ordered >> SECTOR_BITS, -1)
        row = np.broadcast_to(np.arange(len(sectors))[:, None], sectors.shape)[live]
        places, inverse = np.unique(packed(row, sectors[live]), return_inverse=True)
        passes = np.zeros(len(places), np.int64)
        np.maximum.at(passes, inverse, run[live])
        self.requests += len(np.unique(places >> 2))
        rows, touched = unpacked(places)
        numbers, which = np.unique(touched >> 4, return_inverse=True)
        counts = np.bincount(which, passes)
        blocks = g.blocks[rows % g.columns]
        first, last = np.full((2, len(numbers)), blocks[0] if len(blocks) else 0)
        np.minimum.at(first, which, blocks)
        np.maximum.at(last, which, blocks)
        found = zip(*(x.tolist() for x in (numbers, counts, first, last)), strict=True)
        for number, count, begin, end in found:
            self.pieces[number] += int(count)
            before = self.reach.get(number, (begin, end))
            self.reach[number] = min(begin, before[0]), max(end, before[1])


@dataclass
class Sample:
    """What was seen of some blocks of a launch.

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


class _Work(Observer):
    """Thread instructions of a batch."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.done = sizes, 0.0

    def ran(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``; what a step costs by itself counts as some thousands of threads."""
        self.done += self.sizes[block] * (threads + 2000)


def take(launch: Prepared, sms: int, resident: int, widths: Mapping[int, int]) -> Sample:
    """Run a sample of a launch.

    Args:
        launch: The launch; its arguments stay as they are.
        sms: Multiprocessors of the GPU; ``resident``: blocks that one holds.
        resident: See there.
        widths: Of accesses, as ``code.widths`` has them.
    """
    launch = replace(launch, schedule="lockstep")
    try:
        return _take(launch, sms, max(1, resident), widths, together=launch.cooperative)
    except BlocksWait:
        return _take(launch, sms, max(1, resident), widths, together=True)


def _take(
    launch: Prepared, sms: int, resident: int, widths: Mapping[int, int], together: bool
) -> Sample:
    program, total = launch.program, math.prod(launch.grid)
    threads = math.prod(launch.block)
    ran = InstructionCounter(len(program.blocks), len(program.arithmetic))
    requests = RequestCounter(len(program.sites), {}, widths)
    path, touches, atomics = PathCounter(), TouchWatch(), AtomicWatch()
    work = _Work([len(block.block.instructions) for block in program.blocks])
    observers: list[Observer] = [ran, requests, path, touches, work]
    if any(site.access == "atomic" for site in program.sites):
        observers.append(atomics)
    told, allocations = Told(observers), launch.allocations()
    blank = program.fact(_goes_alike)
    groups = _groups(total, sms, resident)
    done: list[Flat] = []

    if together or math.prod(launch.cluster) > 1:
        for numbers in batches(launch, together):
            run_batches(launch, allocations, told, [numbers], together, blank=blank)
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
        run_batches(launch, allocations, told, [np.sort(np.concatenate(part))], blank=blank)
        done += part
        each = work.done / len(done)
        left = WORK - work.done
        if left < each or touches.full:
            break
        size = max(1, sum(len(g) for g in done) // len(done)) * threads
        some = max(1, min(int(left / each), LANES // size, 64))
    blocks = np.sort(np.concatenate(done))
    return Sample(blocks, done, total, ran, path, requests, touches, atomics)


def _goes_alike(program: Program) -> bool:
    """Whether a launch does the same accesses whatever it computes."""
    anywhere = {"global", "shared", "local"}
    return (
        depends_on_data(program, lambda s: anywhere if s.space == "generic" else {s.space}) is None
    )


def _groups(total: int, sms: int, resident: int) -> list[Flat]:
    """Blocks that are on a multiprocessor together, in the order in which they are looked at."""
    wave = sms * resident
    waves = -(-total // wave)
    # Spread over the launch, first and last wave among them, and over the multiprocessors.
    found, used = [], np.zeros(0, np.int64)
    for step in range(64 if waves > 1 else sms):
        number = _spread(step, waves)
        sm = (step * 61 if waves > 1 else step) % min(sms, total)
        group = np.arange(number * wave + sm, min((number + 1) * wave, total), sms, dtype=np.int64)
        if number or waves > 8:  # whoever is done first gets the next block
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
    """Numbers below a count, spread by the golden ratio."""
    return int((step * 0.6180339887498949 + 0.5) % 1.0 * count)
