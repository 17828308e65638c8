"""Counters of a launch and of each source line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ...core.geometry import Geometry, Mask
from ...core.html_table import html_table
from ...events import Observer
from ...memory.event import AccessEvent, CompactAccessEvent
from ...memory.site import Site
from .traffic import NOTHING, Traffic

_ATOMICS = 4
"""Atomic accesses of threads that cost as much as a step: race checks record their order."""


class WorkCounter(Observer):
    """Machine-independent cost of a simulation.

    Args:
        together: Warps of a whole batch, which execute a basic block in one step.

    Attributes:
        max_batch_steps: Warp-level basic blocks of the longest batch, an upper bound of its steps.
    """

    def __init__(self, together: int) -> None:
        self._warps = self._accesses = self.max_batch_steps = self._batch = 0
        self._together = together
        self.geometry: Geometry

    @property
    def work(self) -> int:
        """Number of steps in units of whole batches, plus the cost of race checks."""
        return -(-self._warps // self._together) + self._accesses // _ATOMICS

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry, self._batch = geometry, 0

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        self._warps += warps
        self._batch += warps

    def finish(self) -> None:
        """See ``Observer``."""
        self.max_batch_steps = max(self.max_batch_steps, self._batch)

    def add_batch(self, warps: int) -> None:
        """Add a batch that native code ran: the warps that executed basic blocks."""
        self._warps += warps
        self.max_batch_steps = max(self.max_batch_steps, warps)

    def add_atomics(self, threads: int) -> None:
        """Add threads' atomic accesses that native code made."""

    def merge(self, other: WorkCounter) -> None:
        """See ``Observer``."""
        self._warps += other._warps
        self._accesses += other._accesses
        self.max_batch_steps = max(self.max_batch_steps, other.max_batch_steps)


class RaceWorkCounter(WorkCounter):
    """Cost of a simulation with race checks."""

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        if event.site.access == "atomic":
            self._accesses += self.geometry.active(event.mask)[0]

    def add_atomics(self, threads: int) -> None:
        """See ``WorkCounter``."""
        self._accesses += threads

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """See ``Observer``."""

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``."""


class InstructionCounter(Observer):
    """Counts executed basic blocks and instructions.

    Args:
        blocks: Number of basic blocks.
        arithmetic: Floating-point instructions.

    Attributes:
        threads, warps: Threads and warps that executed each basic block.
        guarded: Threads that executed each guarded floating-point instruction, by its tally.
        parted: Warps that the branch at each basic block's end split.
        met: Warps that the barrier at each basic block's end released.
    """

    def __init__(self, blocks: int, arithmetic: int) -> None:
        self.threads, self.warps = [0] * blocks, [0] * blocks
        self.guarded = [0] * arithmetic
        self.parted, self.met = [0] * blocks, [0] * blocks
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        self.threads[block] += threads
        self.warps[block] += warps

    def arithmetic(self, number: int, lanes: Mask | None) -> None:
        """See ``Observer``."""
        self.guarded[number] += self.geometry.active(lanes)[0]

    def diverged(self, block: int, warps: int) -> None:
        """See ``Observer``."""
        self.parted[block] += warps

    def barrier_passed(self, block: int, warps: int) -> None:
        """See ``Observer``."""
        self.met[block] += warps

    def add(
        self, threads: list[int], warps: list[int], guarded: list[int], parted: list[int],
        met: list[int],
    ) -> None:  # fmt: skip
        """Add what native code counted."""
        for mine, more in (
            (self.threads, threads), (self.warps, warps), (self.guarded, guarded),
            (self.parted, parted), (self.met, met),
        ):  # fmt: skip
            mine[:] = [a + b for a, b in zip(mine, more, strict=True)]

    def merge(self, other: InstructionCounter) -> None:
        """See ``Observer``."""
        self.add(other.threads, other.warps, other.guarded, other.parted, other.met)


@dataclass(frozen=True)
class CacheTraffic:
    """Sectors (32 bytes) that loads request from a cache, and its hits."""

    sectors: float
    hits: float

    @property
    def hit_rate(self) -> float | None:
        """Hits over sectors; ``None`` if there are none."""
        return self.hits / self.sectors if self.sectors else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"sectors": self.sectors, "hits": self.hits, "hit_rate": self.hit_rate}


@dataclass(frozen=True)
class DramTraffic:
    """Bytes that DRAM reads and writes during the launch."""

    read_bytes: float
    write_bytes: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return dict(self.__dict__)


_OPERATIONS = ("load", "store", "atomic")
ARITHMETIC = ("fma_f32", "add_f32", "mul_f32", "fma_f64", "add_f64", "mul_f64")
"""Names of the arithmetic counters, in thread instructions."""
TENSOR = tuple(f"tensor_{type}" for type in ("f64", "tf32", "bf16", "f16", "fp8", "int"))
"""Names of the counters of tensor cores by the type of A, in operations."""


@dataclass
class Counters:
    """Counters of a launch or of one source line.

    Memory counters are ``Traffic``. ``cluster_load`` ... count accesses to shared memory of other
    blocks of the cluster. ``bulk_load`` ... count global memory moved by bulk and tensor copies,
    ``bulk_shared_load`` ... shared memory. ``fma_f32`` ... and ``flops`` count threads.
    ``tensor_f16`` ... are tensor-core operations by the type of A, two for a multiply-add; all but
    integer ones are also in ``flops``. ``thread_instructions`` and ``warp_instructions`` count PTX
    instructions. ``l1``, ``l2`` and ``dram`` exist for a launch with a GPU: they are estimates by
    cache models.
    """

    global_load: Traffic = NOTHING
    global_store: Traffic = NOTHING
    global_atomic: Traffic = NOTHING
    shared_load: Traffic = NOTHING
    shared_store: Traffic = NOTHING
    shared_atomic: Traffic = NOTHING
    cluster_load: Traffic = NOTHING
    cluster_store: Traffic = NOTHING
    cluster_atomic: Traffic = NOTHING
    local_load: Traffic = NOTHING
    local_store: Traffic = NOTHING
    local_atomic: Traffic = NOTHING
    const_load: Traffic = NOTHING
    texture_load: Traffic = NOTHING
    surface_load: Traffic = NOTHING
    surface_store: Traffic = NOTHING
    surface_atomic: Traffic = NOTHING
    bulk_load: Traffic = NOTHING
    bulk_store: Traffic = NOTHING
    bulk_atomic: Traffic = NOTHING
    bulk_shared_load: Traffic = NOTHING
    bulk_shared_store: Traffic = NOTHING
    bulk_shared_atomic: Traffic = NOTHING
    fma_f32: int = 0
    add_f32: int = 0
    mul_f32: int = 0
    fma_f64: int = 0
    add_f64: int = 0
    mul_f64: int = 0
    tensor_f64: int = 0
    tensor_tf32: int = 0
    tensor_bf16: int = 0
    tensor_f16: int = 0
    tensor_fp8: int = 0
    tensor_int: int = 0
    flops: int = 0
    thread_instructions: int = 0
    warp_instructions: int = 0
    divergent_branches: int = 0
    barriers: int = 0
    l1: CacheTraffic | None = None
    l2: CacheTraffic | None = None
    dram: DramTraffic | None = None

    def _repr_html_(self) -> str:
        """Return tables for Jupyter: memory traffic, then all other counters but zeros."""
        rows = [
            (name.replace("_", " "), f"{t.requests:,}", f"{t.accesses:,}", f"{t.bytes:,}",
             f"{t.sectors:,}", f"{t.wavefronts:,}", f"{t.bank_conflicts:,}")
            for name in TRAFFIC if (t := getattr(self, name)).requests
        ]  # fmt: skip
        head = ("memory", "requests", "accesses", "bytes", "sectors", "wavefronts", "conflicts")
        others = [
            (name.replace("_", " "), f"{value:,}")
            for name, value in self.__dict__.items() if isinstance(value, int) and value
        ]  # fmt: skip
        parts = [html_table(head, rows)] if rows else []
        return "\n".join([*parts, html_table(("counter", "value"), others)])

    def _traffic(self, *spaces: str) -> Traffic:
        parts = [getattr(self, f"{space}_{does}") for space in spaces for does in _OPERATIONS]
        return sum((part for part in parts if part != NOTHING), NOTHING)

    @property
    def global_bytes(self) -> int:
        """Bytes that threads and bulk copies request from global memory."""
        return self._global.bytes

    @property
    def global_sector_bytes(self) -> int:
        """Bytes of the 32-byte sectors of global requests."""
        return self._global.sectors * 32

    @property
    def _global(self) -> Traffic:
        return self._traffic("global", "bulk")

    @property
    def intensity(self) -> float | None:
        """FLOP per byte requested from global memory."""
        return self.flops / self.global_bytes if self.global_bytes else None

    @property
    def sector_intensity(self) -> float | None:
        """FLOP per byte of the sectors."""
        return self.flops / self.global_sector_bytes if self.global_sector_bytes else None

    @property
    def coalescing(self) -> float | None:
        """Distinct requested bytes over bytes of sectors, of loads and stores."""
        total = self._global
        return total.coalescing if total.sectors else None

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of shared memory caused by bank conflicts."""
        return self._traffic("shared").bank_conflicts

    @property
    def lane_utilisation(self) -> float | None:
        """Active lanes as a share of 32, over all instructions."""
        if not self.warp_instructions:
            return None
        return self.thread_instructions / (32 * self.warp_instructions)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        plain = {
            name: value if isinstance(value, int) else value.to_dict()
            for name, value in self.__dict__.items()
            if value is not None
        }
        derived = ("intensity", "sector_intensity", "coalescing", "lane_utilisation")
        return plain | {name: getattr(self, name) for name in derived}


TRAFFIC = tuple(f.name for f in fields(Counters) if isinstance(f.default, Traffic))
"""Names of the memory counters: space and operation."""


@dataclass
class Line:
    """Counters of one source line.

    Attributes:
        file: Path as in the PTX.
        line: Number from 1; 0 without line information.
        code: Text of the line, stripped; ``""`` if the source is unavailable.
    """

    file: str
    line: int
    code: str
    counters: Counters = field(default_factory=Counters)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return self.__dict__ | {"counters": self.counters.to_dict()}
