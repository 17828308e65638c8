"""Work of a launch for each part of a GPU, for an average block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from ..caches.traffic import Observed
from ..compile.program import Program
from ..memory.site import Site
from .estimated_sass import MachineBlock

_AS_HALF = {
    "tensor_f64": 16.0, "tensor_tf32": 2.0, "tensor_bf16": 1.0, "tensor_f16": 1.0,
    "tensor_fp8": 0.5, "tensor_int": 0.5,
}  # fmt: skip
"""Time of an operation on tensor cores, by the type of A, where one of 16-bit floats is 1."""


@dataclass(frozen=True)
class SiteWork:
    """Work of an access for an average block.

    Attributes:
        requests: Warp-level requests.
        sectors, lines: Sectors and 128-byte lines of these.
        tags: Tag-lookup cycles.
        missed: Sectors that miss L1, each once for all warps of a block.
        touched: Sectors that L1 is asked for, likewise.
        wavefronts: Wavefronts of shared memory; a wide access takes at least two.
        conflicts: Those of them that are bank conflicts.
        bytes: Distinct bytes of each request, summed.
        ideal: Sectors if the distinct bytes of each request were contiguous.
        passes: Passes of a global atomic (``AtomicWatch``); conflicts of a shared one.
    """

    site: Site
    space: str
    requests: float
    sectors: float
    lines: float
    tags: float
    missed: float
    touched: float
    wavefronts: float
    conflicts: float
    bytes: float
    ideal: float
    passes: float = 0.0


@dataclass(frozen=True)
class Work:
    """A block's share of a launch.

    Attributes:
        issued: Warp instructions by pipe.
        sites: Accesses.
        barriers: How often its warps meet.
        atomic_hottest: Share of the passes of global atomics that goes to the busiest 512 bytes.
        atomic_word: Floating-point ones of the busiest word.
        warps: Of the block.
        tensor: Operations of tensor cores, of 16-bit floats or as many of others as take as long.
    """

    issued: Mapping[str, float]
    sites: Sequence[SiteWork]
    barriers: float = 0.0
    atomic_hottest: float = 0.0
    atomic_word: float = 0.0
    warps: int = 1
    tensor: float = 0.0

    @property
    def loads(self) -> list[SiteWork]:
        """Loads of global memory."""
        return self._of("load")

    @property
    def stores(self) -> list[SiteWork]:
        """Likewise."""
        return self._of("store")

    def _of(self, access: str) -> list[SiteWork]:
        return [
            one
            for one in self.sites
            if one.site.access == access and one.space in ("global", "local")
        ]

    @property
    def l2_read(self) -> float:
        """Sectors that loads ask L2 for."""
        return sum(one.missed for one in self.loads)

    @property
    def l2_reads(self) -> float:
        """The requests, a line each."""
        return sum(one.lines * one.missed / one.sectors for one in self.loads if one.sectors)

    @property
    def l2_write(self) -> float:
        """Sectors that stores hand to L2: all, of local memory as well."""
        return sum(one.sectors for one in self.stores)

    @property
    def l2_writes(self) -> float:
        """The requests, a line each."""
        return sum(one.lines for one in self.stores)

    @property
    def atomic_passes(self) -> float:
        """Passes of global atomics."""
        return sum(one.passes for one in self.sites if one.space != "shared")

    @property
    def spilled(self) -> float:
        """Accesses to local memory that are the compiler's own."""
        there = sum(self.issued.get(f"{what}_local", 0.0) for what in ("load", "store"))
        known = sum(one.requests for one in self.sites if one.space == "local")
        return max(0.0, there - known)


def scaled(one: SiteWork, share: float) -> SiteWork:
    """Return an access so many times."""
    figures = [f.name for f in fields(SiteWork) if f.name not in ("site", "space")]
    return replace(one, **{name: share * getattr(one, name) for name in figures})


def repeated(work: Work, times: float) -> Work:
    """Return the work of threads repeated, without machine code and barriers."""
    return replace(
        work, sites=[scaled(one, times) for one in work.sites],
        atomic_word=times * work.atomic_word, tensor=times * work.tensor,
    )  # fmt: skip


def issued(found: Sequence[MachineBlock], blocks: int) -> dict[str, float]:
    """Return a block's warp instructions by pipe; ``found``: machine code of so many blocks."""
    counts: dict[str, float] = {}
    for piece in found:
        for instruction in piece.code:
            pipe = instruction.pipe
            counts[pipe] = counts.get(pipe, 0.0) + piece.warps / blocks
    return counts


def of_block(observed: Observed, found: Sequence[MachineBlock]) -> Work:
    """Return the average work of a sampled block; ``found``: machine code with counts."""
    program, sample, missed = observed.launch.program, observed.sample, observed.missed
    atomics = sample.atomics
    passes = atomics.requests if _combined(program, found) else atomics.passes
    blocks = len(sample.blocks)
    grouped = sum(len(group) for group in sample.groups)
    sites, is_float = [], False
    beyond = observed.local_beyond
    for site in program.sites:
        if not (site.counted and site.traffic) or site.space == "const":
            continue
        for space, traffic in sample.requests.traffic(site).items():
            away = missed.get(site.number, 0) / grouped if space == "global" else 0.0
            asked = observed.touched.get(site.number, 0) / grouped
            if space == "local":
                asked = traffic.sectors / blocks
                away = beyond * asked
            wide = max(1, site.nbytes // 8)
            shared = space == "shared"
            waits = atomics.conflicts if shared else passes
            sites.append(SiteWork(
                site, space, traffic.requests / blocks, traffic.sectors / blocks,
                0.0 if shared else traffic.wavefronts / blocks,
                0.0 if shared else traffic.bank_conflicts / blocks, away, asked,
                max(traffic.wavefronts, traffic.requests * wide) / blocks if shared else 0.0,
                traffic.bank_conflicts / blocks if shared else 0.0,
                traffic.distinct_bytes / blocks, traffic.ideal_sectors / blocks,
                waits[site.number] / blocks,
            ))  # fmt: skip
            if space == "global" and site.access == "atomic":
                is_float |= site.type.startswith("f")
    busiest = max(atomics.words.values(), default=0) if is_float else 0
    return Work(
        issued(found, blocks), sites, sample.path.barriers / blocks,
        atomics.hottest(sample.blocks, sample.factor), busiest / blocks,
        -(-math.prod(observed.launch.block) // 32), _tensor(observed) / blocks,
    )  # fmt: skip


def _tensor(observed: Observed) -> float:
    ran = observed.sample.ran
    return sum(
        _AS_HALF[entry.count] * entry.flops
        * (ran.threads[entry.block] if entry.tally is None else ran.guarded[entry.tally])
        for entry in observed.launch.program.arithmetic
        if entry.count in _AS_HALF
    )  # fmt: skip


def _combined(program: Program, found: Sequence[MachineBlock]) -> bool:
    """Whether one lane adds for all: predicated, although nothing in the PTX is."""
    plain = {site.instruction.line for site in program.sites if not site.instruction.guard}
    return any(
        i.pipe == "atomic_global" and i.guarded and i.line in plain
        for piece in found
        for i in piece.code
    )
