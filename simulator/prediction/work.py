"""What a launch asks of each part of a GPU, for a block of threads on average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernels.sass import MachineInstruction

from ..caches.merged import sites_by_line
from ..caches.traffic import Observed
from ..compile.program import Program
from ..memory.site import Site
from .plain import Piece
from .rates import Rates


@dataclass(frozen=True)
class SiteWork:
    """What an access does for a block, on average.

    Attributes:
        requests: Of warps; ``sectors``, ``lines``: that these touch; ``tags``: cycles to look these
            up; ``missed``: sectors that L1
            does not have; ``wavefronts``: of shared memory, a wide access taking two at least;
            ``bytes``: distinct ones of each request, summed.
    """

    site: Site
    space: str
    requests: float
    sectors: float
    lines: float
    tags: float
    missed: float
    wavefronts: float
    bytes: float


@dataclass
class Work:
    """A block's share of a launch.

    Attributes:
        issued: Warp instructions by pipe.
        chain: Cycles that a warp would take by itself.
        sites: Accesses.
        barriers: How often its warps meet.
        l2_read, l2_write: Sectors that L2 is asked for; ``l2_reads``, ``l2_writes``: requests, a
            line each.
        atomic_passes: Of global atomics, as ``AtomicWatch`` has them; ``atomic_hottest``: share of
            them that goes to the busiest 512 bytes.
        atomic_is_float: Whether they are floating-point ones.
        shared_conflicts: Passes that atomics of shared memory take besides.
        l1_hit_rate: Of sectors that loads ask for; ``None`` without any.
    """

    issued: dict[str, float] = field(default_factory=dict)
    chain: float = 0.0
    sites: list[SiteWork] = field(default_factory=list)
    barriers: float = 0.0
    l2_read: float = 0.0
    l2_write: float = 0.0
    l2_reads: float = 0.0
    l2_writes: float = 0.0
    atomic_passes: float = 0.0
    atomic_hottest: float = 0.0
    atomic_is_float: bool = False
    shared_conflicts: float = 0.0
    l1_hit_rate: float | None = None


def of_block(seen: Observed, found: Sequence[Piece]) -> Work:
    """What was seen of a sample, for one block of it; ``found``: the machine code, counted."""
    program, sample, missed = seen.launch.program, seen.sample, seen.missed
    blocks = len(sample.blocks)
    work = Work(barriers=sample.path.barriers / blocks)
    for piece in found:
        for instruction in piece.code:
            pipe = instruction.pipe
            work.issued[pipe] = work.issued.get(pipe, 0.0) + piece.warps / blocks
    grouped = sum(len(group) for group in sample.groups)
    asked = hit = 0.0
    for site in program.sites:
        if not (site.counted and site.traffic) or site.space == "const":
            continue
        for space, traffic in sample.requests.traffic(site).items():
            away = missed.get(site.number, 0) / grouped if space == "global" else 0.0
            wide = max(1, site.nbytes // 8)
            one = SiteWork(
                site, space, traffic.requests / blocks, traffic.sectors / blocks,
                traffic.ideal_sectors / blocks, traffic.bank_conflicts / blocks, away,
                max(traffic.wavefronts, traffic.requests * wide) / blocks,
                traffic.distinct_bytes / blocks,
            )  # fmt: skip
            work.sites.append(one)
            if space != "global":
                continue
            if site.access == "load":
                asked, hit = asked + one.sectors, hit + one.sectors - away
                work.l2_read += away
                work.l2_reads += one.lines * (away / one.sectors if one.sectors else 0.0)
            elif site.access == "atomic":
                work.atomic_is_float |= site.type.startswith("f")
            elif site.access == "store":
                work.l2_write += one.sectors
                work.l2_writes += one.lines
    work.l1_hit_rate = hit / asked if asked else None
    work.shared_conflicts = sample.atomics.conflicts / blocks
    passes = sample.atomics.passes
    if passes:
        # Predicated, although nothing in the PTX is: one lane adds for all, as ptxas has it.
        plain = {site.instruction.line for site in program.sites if not site.instruction.guard}
        combined = any(
            i.pipe == "atomic_global" and i.guarded and i.line in plain
            for piece in found
            for i in piece.code
        )
        work.atomic_passes = (sample.atomics.requests if combined else passes) / blocks
        work.atomic_hottest = max(sample.atomics.pieces.values()) / passes
    return work


def chain(
    program: Program, found: Sequence[Piece], work: Work, blocks: int, rates: Rates, to_dram: float
) -> float:
    """Cycles that a warp of a block needs by itself, waiting for what it has asked for.

    Args:
        program: The kernel; ``found``: its machine code.
        found: See there.
        work: Of a block.
        blocks: Of the sample.
        rates: Of the GPU.
        to_dram: Share of what L1 does not have that L2 has not either.
    """
    by_line = sites_by_line(program)
    of_site: dict[int, list[SiteWork]] = {}
    for one in work.sites:
        of_site.setdefault(one.site.number, []).append(one)
    waits: dict[int, float] = {}
    for line, sites in by_line.items():
        for site in sites:
            for one in of_site.get(site.number, []):
                waits[line] = max(waits.get(line, 0.0), _latency(one, rates, to_dram))
    total = 0.0
    board = [0.0] * 6
    for piece in found:
        if piece.rounds <= 0:
            continue
        took = _run(piece.code, board, waits, rates)
        if piece.loops:
            for _ in range(3):
                took = _run(piece.code, board, waits, rates)
        total += took * piece.rounds / blocks
    return total


def _run(
    code: Sequence[MachineInstruction],
    board: list[float],
    waits: Mapping[int, float],
    rates: Rates,
) -> float:
    """Cycles of a piece of code; ``board``: when each scoreboard is done, from its start on."""
    now = 0.0
    for instruction in code:
        now = max([now, *(board[b] for b in instruction.waits)])
        sets, reads = instruction.sets
        if sets < 6:
            board[sets] = max(board[sets], now + _result(instruction, waits, rates))
        if reads < 6:
            board[reads] = max(board[reads], now + rates.read_operands)
        if instruction.pipe == "barrier":
            now += rates.barrier
        now += max(1, instruction.stall)
    for number in range(6):
        board[number] = max(0.0, board[number] - now)
    return now


def _result(instruction: MachineInstruction, waits: Mapping[int, float], rates: Rates) -> float:
    pipe = instruction.pipe
    if pipe.startswith(("load", "atomic", "store")):
        return waits.get(instruction.line, rates.shared_latency)
    return {
        "sfu": rates.sfu_latency, "shuffle": rates.shuffle_latency, "fp64": rates.fp64_latency,
        "tensor": rates.tensor_latency, "constant": rates.constant_latency,
        "special": rates.special_latency,
    }.get(pipe, rates.alu_latency)  # fmt: skip


def _latency(one: SiteWork, rates: Rates, to_dram: float) -> float:
    """How long a warp waits for an access, if nobody is in its way."""
    if one.space == "shared":
        passes = one.wavefronts / one.requests if one.requests else 1.0
        return rates.shared_latency + passes - 1
    if one.space == "local":
        return rates.l1_latency
    if one.site.access == "atomic":
        return rates.atomic_latency
    missed = min(1.0, one.missed / one.requests) if one.requests else 0.0
    lines = one.lines / one.requests if one.requests else 1.0
    beyond = rates.l2_latency - rates.l1_latency
    further = to_dram * (rates.dram_latency - rates.l2_latency)
    return rates.l1_latency + lines - 1 + missed * (beyond + further)
