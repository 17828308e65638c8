"""Critical path: the time of one warp alone, with all its waits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernels.machine_code.sass import MachineInstruction

from ..caches.merged_loads import sites_by_line
from ..compile.program import Program
from .estimated_sass import MachineBlock
from .rates import Rates
from .work import SiteWork, Work

_OFTEN = 0.5
"""Rounds of a piece for each of its loop's, from which on it is of the usual round."""


@dataclass(frozen=True)
class Chain:
    """Cycles of a warp alone; ``away``: those of them that wait for global memory."""

    cycles: float
    away: float


def chain(
    program: Program,
    found: Sequence[MachineBlock],
    work: Work,
    blocks: int,
    rates: Rates,
    to_dram: float,
) -> Chain:
    """Return the critical path of a warp.

    Args:
        program: The kernel.
        found: Its machine code.
        work: Work of a block.
        blocks: Blocks of the sample.
        rates: Constants of the GPU.
        to_dram: Share of L1 misses that also miss L2.
    """
    by_line = sites_by_line(program)
    of_site: dict[int, list[SiteWork]] = {}
    for one in work.sites:
        of_site.setdefault(one.site.number, []).append(one)
    waits: dict[int, float] = {}
    for line, sites in by_line.items():
        for site in sites:
            for one in of_site.get(site.number, []):
                wait = _latency(one, rates, to_dram)
                waits[line] = max(waits.get(line, 0.0), wait)
    total = waited = 0.0
    warp = _Warp(waits, rates, work.warps)
    for at, piece in enumerate(found):
        if piece.rounds <= 0:
            continue
        took, away = warp.run(piece.code)
        if piece.loop:  # what counts is a round among others
            for _ in range(3 if piece.loop == 1 else 1):
                for other in found[at + 1 : at + piece.loop]:
                    if other.rounds > _OFTEN * piece.rounds:
                        warp.run(other.code)
                took, away = warp.run(piece.code)
        total += took * piece.rounds / blocks
        waited += away * piece.rounds / blocks
    return Chain(total, waited)


@dataclass
class _Warp:
    """Outstanding operations of a warp, in cycles from now.

    Attributes:
        waits: Latency of accesses, by PTX line.
        warps: Warps of the block.
        board: Completion of each scoreboard, and whether a global access set it.
        copies: Completion of each group of asynchronous copies.
        open: Completion of copies that are in no group yet.
    """

    waits: Mapping[int, float]
    rates: Rates
    warps: int
    board: list[tuple[float, bool]] = field(default_factory=lambda: [(0.0, False)] * 6)
    copies: list[float] = field(default_factory=list)
    open: float = 0.0

    def run(self, code: Sequence[MachineInstruction]) -> tuple[float, float]:
        """Return the cycles of a piece of code, and those spent waiting for global memory."""
        now = away = 0.0
        board, rates = self.board, self.rates
        for instruction in code:
            last, far = max((board[b] for b in instruction.waits), default=(0.0, False))
            if instruction.pipe == "copies_wait" and instruction.width < len(self.copies):
                last, far = max((last, far), (self.copies[-1 - instruction.width], True))
            if last > now:
                away += (last - now) if far else 0.0
                now = last
            sets, reads = instruction.sets
            done = now + _result(instruction, self.waits, rates)
            if sets < 6:
                far = instruction.pipe.endswith("_global")
                board[sets] = max(board[sets], (done, far))
            elif instruction.pipe == "load_global":  # asynchronous: it writes no register
                self.open = max(self.open, done)
            if reads < 6:
                board[reads] = max(board[reads], (now + rates.read_operands, False))
            if instruction.pipe == "copies_end":
                self.copies = [*self.copies[-8:], self.open]
                self.open = 0.0
            if instruction.pipe == "barrier":
                now += rates.barrier + rates.barrier_warp * self.warps
            now += max(1, instruction.stall)
        self.board = [(max(0.0, done - now), far) for done, far in board]
        self.copies = [max(0.0, done - now) for done in self.copies]
        self.open = max(0.0, self.open - now)
        return now, away


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
    """Return the latency of an access without contention.

    Other warps of a block find the sectors in flight that one warp has requested, and wait for
    these as well.
    """
    if one.space == "shared":
        passes = one.wavefronts / one.requests if one.requests else 1.0
        return rates.shared_latency + passes - 1
    if one.site.access == "atomic":
        return rates.atomic_latency
    lines = one.lines / one.requests if one.requests else 1.0
    # A request waits for the last of its lines.
    gone = min(1.0, one.missed / one.touched) if one.touched else 0.0
    missed = 1 - math.pow(1 - gone, max(1.0, lines))
    beyond = rates.l2_latency - rates.l1_latency
    further = to_dram * (rates.dram_latency - rates.l2_latency)
    return rates.l1_latency + lines - 1 + missed * (beyond + further)
