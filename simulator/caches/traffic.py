"""Traffic of a launch through L1, L2 and DRAM, as counters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernels.errors import LaunchError
from kernels.machine_code.cubin import MachineCode, machine_code

from ..execute.prepare import PreparedLaunch
from ..gpus.occupancy import Occupancy, occupancy
from ..gpus.table import KIB, Gpu
from ..hazards.resources import lacking
from ..observe.counters.banks import SECTOR
from ..observe.counters.totals import CacheTraffic, Counters, DramTraffic
from .footprint import footprint
from .launch_footprint import of_all
from .levels import l1_misses
from .merged_loads import widths
from .sample import Sample, take
from .shared_level import DeviceMemory, SharedLevelTraffic, device_memory

_L1_KIB = {
    "7.0": 128, "7.5": 96, "8.0": 192, "8.6": 128, "8.9": 128, "9.0": 256, "10.0": 256, "12.0": 128,
}  # fmt: skip
"""KiB of L1 and shared memory together: CUDA C++ Programming Guide, by compute capability."""


_CLUSTERS = 9.0
"""The compute capability from which on blocks may form clusters."""
_AGAIN = 1.02
"""Times the bytes that have to be read from which on some are read again."""


@dataclass(frozen=True)
class Observed:
    """A launch as observed on a sample of its blocks, for a GPU.

    Attributes:
        code: Its machine code, if a compiler is available.
        occupancy: Resident blocks of a multiprocessor; without known registers an upper bound.
        sample: The executed sample.
        missed: L1 misses of the sample in sectors, by access.
        touched: Accesses of the sample in sectors, by access; those of a block's warps count once.
        memory: Traffic between L2 and DRAM.
    """

    launch: PreparedLaunch
    gpu: Gpu
    code: MachineCode | None
    occupancy: Occupancy
    sample: Sample
    missed: dict[int, float]
    touched: dict[int, float]
    memory: DeviceMemory

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return math.prod(self.launch.grid)

    @property
    def grouped(self) -> float:
        """Blocks of the launch for each one counted in ``missed``."""
        return self.blocks / sum(len(group) for group in self.sample.groups)

    @property
    def local_beyond(self) -> float:
        """Share of local-memory traffic that misses L1; all resident threads share it."""
        if self.code is None or not self.code.stack_bytes:
            return 0.0
        threads = math.prod(self.launch.block) * max(1, self.occupancy.blocks)
        room = l1_bytes(self.gpu, self.launch.shared_bytes, self.occupancy.blocks)
        return max(0.0, 1 - room / (self.code.stack_bytes * threads))

    @property
    def reads_again(self) -> bool:
        """Whether DRAM reads some data again after eviction from L2."""
        return self.memory.cold.read > _AGAIN * self.memory.least_read

    @property
    def l1(self) -> CacheTraffic:
        """L1 traffic of loads from global memory."""
        asked = 0.0
        for site in self.launch.program.sites:
            if site.access == "load" and site.space != "const":
                traffic = self.sample.requests.traffic(site).get("global")
                asked += traffic.sectors if traffic and site.counted else 0
        asked *= self.sample.factor
        return CacheTraffic(asked, max(0.0, asked - sum(self.missed.values()) * self.grouped))

    def moved(self, cold: bool) -> SharedLevelTraffic:
        """Return the bytes between L2 and DRAM, by purpose."""
        return self.memory.cold if cold else self.memory.warm

    def l2(self, cold: bool) -> CacheTraffic:
        """Return the L2 traffic of loads; with two partitions remote data are looked up in both."""
        asked = sum(self.missed.values()) * self.grouped
        read = self.moved(cold).loaded / SECTOR
        if self.gpu.architecture.l2_partitions > 1:
            shared = 1 - min(1.0, read / asked) if asked else 0.0
            missed = read * (1.5 + shared / 2)
            asked += read / 2
        else:
            missed = read
        return CacheTraffic(asked, max(0.0, asked - missed))

    def dram(self, cold: bool) -> DramTraffic:
        """Return the traffic between L2 and DRAM."""
        moved = self.moved(cold)
        return DramTraffic(moved.read, moved.written)


def l1_bytes(gpu: Gpu, shared_bytes: int, blocks: int) -> int:
    """Return the size of L1: the driver reserves as little shared memory as the blocks need."""
    chip = gpu.architecture
    needed = blocks * (shared_bytes + chip.shared_reserved) if shared_bytes else 0
    split = next((kib for kib in chip.carveouts if kib * KIB >= needed), chip.carveouts[-1])
    return (_L1_KIB[gpu.capability] - split) * KIB


def observe(launch: PreparedLaunch, gpu: Gpu, registers: int | None = None) -> Observed:
    """Execute a sample of a launch and model its accesses down to DRAM.

    Args:
        launch: The launch; its arguments are not modified.
        gpu: The GPU.
        registers: Registers of a thread, if known better.

    Raises:
        LaunchError: A block does not fit on a multiprocessor, or the GPU has no clusters.
    """
    if math.prod(launch.cluster) > 1 and float(gpu.capability) < _CLUSTERS:
        raise LaunchError(
            f"clusters need compute capability 9.0, and {gpu.name} has {gpu.capability}"
        )
    code = machine_code(launch.kernel, gpu.capability)
    if registers is None and code is not None:
        registers = code.registers
    residency = occupancy(gpu, math.prod(launch.block), registers, launch.shared_bytes)
    if not residency.blocks:
        said = [f": {case.message}; {case.note}" for case in lacking(launch, gpu, registers)]
        raise LaunchError(
            f"a block does not fit on {gpu.name}, "
            f"for {' and '.join(residency.limiters)}{''.join(said)}"
        )
    program = launch.program
    known = widths(program, code) if code and code.known else {}
    sample = take(launch, gpu.sms, residency.blocks, known)
    capacity = l1_bytes(gpu, launch.shared_bytes, residency.blocks)
    slots = residency.blocks * gpu.sms
    meet = sample.path.barriers > 0
    found = l1_misses(sample.touches, program.sites, sample.groups, capacity, slots, meet)
    missed, touched = ({site: pair[at] for site, pair in found.items()} for at in (0, 1))
    return follow(Observed(launch, gpu, code, residency, sample, missed, touched, DeviceMemory()))


def follow(observed: Observed) -> Observed:
    """Recompute ``memory``, for the GPU's L2."""
    grid, gpu = observed.launch.grid, observed.gpu
    blocks = sum(len(group) for group in observed.sample.groups)
    missed = {
        site.number: observed.missed[site.number] / blocks
        for site in observed.launch.program.sites
        if site.access == "load" and site.number in observed.missed
    }
    sites, touches = observed.launch.program.sites, observed.sample.touches
    touched = footprint(touches, sites, observed.blocks, missed)
    known = of_all(touches, sites, observed.blocks, missed) if observed.sample.whole else None
    memory = device_memory(
        touched, grid, gpu.sms, observed.occupancy.blocks, gpu.l2,
        gpu.architecture.l2_partitions, known,
    )  # fmt: skip
    return replace(observed, memory=memory)


def count(counters: Counters, observed: Observed) -> None:
    """Add the cache traffic of a launch with empty caches to its counters."""
    counters.l1, counters.l2, counters.dram = observed.l1, observed.l2(True), observed.dram(True)
