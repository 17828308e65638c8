"""Counters of a launch and of each source line: which instructions ran, and all that it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ...core.geometry import Geometry, Mask
from ...events import Observer
from ...memory.event import AccessEvent, CompactAccessEvent
from ...memory.site import Site
from .traffic import NOTHING, Traffic

_ATOMICS = 4
"""So many threads' atomic accesses count for a step: races are told by who came before whom in
them."""


class WorkCounter(Observer):
    """Measures how long a launch takes, the same on every machine.

    Args:
        together: Warps of a whole batch, which execute a basic block in one step.

    Attributes:
        most: Warps that executed basic blocks in the longest batch, which are no fewer than its
            steps.
    """

    def __init__(self, together: int) -> None:
        self._warps = self._accesses = self.most = self._batch = 0
        self._together = together
        self.geometry: Geometry

    @property
    def work(self) -> int:
        """Steps of the launch, if whole batches made them; and more for what races cost."""
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
        self.most = max(self.most, self._batch)

    def add_batch(self, warps: int) -> None:
        """Add a batch that native code ran: the warps that executed basic blocks."""
        self._warps += warps
        self.most = max(self.most, warps)

    def add_atomics(self, threads: int) -> None:
        """Add threads' atomic accesses that native code made."""

    def merge(self, other: WorkCounter) -> None:
        """See ``Observer``."""
        self._warps += other._warps
        self._accesses += other._accesses
        self.most = max(self.most, other.most)


class RaceWorkCounter(WorkCounter):
    """The same where races are looked for."""

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
    """Counts what runs.

    Args:
        blocks: How many basic blocks there are; ``arithmetic``: floating-point instructions.

    Attributes:
        threads, warps: That executed each basic block, by its number.
        guarded: Threads that executed each guarded floating-point instruction, by its tally.
        parted: Warps that the branch at each basic block's end sent both ways; ``met``: that
            the barrier there let go.
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
    """Sectors of 32 bytes that loads ask a cache for, and how many of them it has."""

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
    """Bytes that DRAM reads and writes while the launch runs."""

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
    """Counts of a launch, or of one source line.

    Memory counters are ``Traffic``, ``cluster_load`` ... of shared memory by a block's number in
    the cluster, ``bulk_load`` ... what copies in bulk (of tensors, too) move of global memory,
    ``bulk_shared_load`` ... of shared memory; ``fma_f32`` ... and ``flops`` count threads;
    ``tensor_f16`` ... are operations of tensor cores by the type of A, two a multiply-add (all but
    integers' are in ``flops`` too); ``thread_instructions`` are PTX instructions by thread,
    ``warp_instructions`` by warp. ``l1``, ``l2`` and ``dram`` are of the launch alone, where
    ``launch`` was given a GPU: estimates, from models of its caches.
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

    def _traffic(self, space: str) -> Traffic:
        total = Traffic()
        for operation in _OPERATIONS:
            total += getattr(self, f"{space}_{operation}")
        return total

    @property
    def global_bytes(self) -> int:
        """Bytes that threads and copies in bulk asked of global memory: what a textbook counts."""
        return self._global.bytes

    @property
    def global_sector_bytes(self) -> int:
        """Bytes of the 32-byte sectors that global requests touch."""
        return self._global.sectors * 32

    @property
    def _global(self) -> Traffic:
        return self._traffic("global") + self._traffic("bulk")

    @property
    def intensity(self) -> float | None:
        """FLOP per byte asked of global memory."""
        return self.flops / self.global_bytes if self.global_bytes else None

    @property
    def sector_intensity(self) -> float | None:
        """FLOP per byte of the sectors touched."""
        return self.flops / self.global_sector_bytes if self.global_sector_bytes else None

    @property
    def coalescing(self) -> float | None:
        """Distinct bytes asked for over bytes of sectors touched, loads and stores."""
        total = self._global
        return total.coalescing if total.sectors else None

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of shared memory that bank conflicts added."""
        return self._traffic("shared").bank_conflicts

    @property
    def lane_utilisation(self) -> float | None:
        """Share of a warp's 32 lanes that are on, over all instructions."""
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
    """What one source line did.

    Attributes:
        file: Path as the PTX gives it.
        line: Number from 1; 0 where the PTX has no line information.
        code: The line's text, stripped; ``""`` if the source is not at hand.
    """

    file: str
    line: int
    code: str
    counters: Counters = field(default_factory=Counters)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return self.__dict__ | {"counters": self.counters.to_dict()}
