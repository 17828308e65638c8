"""The machine code of a kernel laid over its PTX: how often each of its pieces ran.

The simulator says how often each basic block of the PTX ran; the line table says from which line
of the PTX an instruction comes. ``ptxas`` unrolls loops once more, and merges loads: a line that
stands several times in a piece of code was unrolled so often.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from kernels.machine_code.cubin import MachineCode
from kernels.machine_code.sass import MachineInstruction, instructions
from kernels.ptx.module import Instruction

from ..compile.cfg.basic_blocks import EXIT, successors
from ..compile.program import Program
from .estimated_sass import MachineBlock, kinds, simple, with_loops
from .flow_counts import flows


def pieces(
    program: Program, code: MachineCode, warps: Mapping[int, int], rounds: Mapping[int, float]
) -> list[MachineBlock]:
    """Return the machine code in basic blocks, with how often each ran.

    Args:
        program: The PTX, compiled for the simulator.
        code: What ptxas makes of it.
        warps: Warps that executed each basic block of the PTX, by its number.
        rounds: How often each ran in a block of threads.
    """
    listing = instructions(code)
    cuts = {0, len(listing)}
    for number, instruction in enumerate(listing):
        if instruction.target >= 0:
            cuts.add(instruction.target)
        if instruction.target >= 0 or instruction.is_terminator or instruction.leaves:
            cuts.add(number + 1)
    ordered = sorted(cut for cut in cuts if 0 <= cut <= len(listing))
    spans = list(itertools.pairwise(ordered))
    ran = {
        ins.line: (ins, block.number)
        for block in program.blocks
        for ins in block.block.instructions
    }
    copies = _copies(listing, spans, ran, kinds(program))
    ran_counts = {ran[line][1] for line in copies}
    bare = {line: at for line, at in ran.items() if at[1] not in ran_counts}
    copies |= _copies(listing, spans, bare, simple(program), sure=False)
    edges = _edges(listing, spans)
    sizes = [last - first for first, last in spans]
    trips = _trips(program, warps)
    forbidden = {
        piece
        for line, (where, _) in copies.items()
        for piece, count in where.items()
        if count > max(1.0, trips.get(ran[line][1], math.inf)) + 0.5
    }
    solved = []
    for counts in (warps, rounds):
        known = [
            (where, float(counts.get(ran[line][1], 0)), sure)
            for line, (where, sure) in copies.items()
        ]
        passed = flows(edges, sizes, known, float(counts.get(program.start, 0)), forbidden)
        times = np.zeros(len(spans))
        np.add.at(times, [here for here, _ in edges], passed)
        solved.append(times.tolist())
    found = [
        MachineBlock(listing[a:b], ran_by, times, 0)
        for (a, b), ran_by, times in zip(spans, *solved, strict=True)
    ]
    return with_loops(found, edges)


def _trips(program: Program, warps: Mapping[int, int]) -> dict[int, float]:
    """Rounds of the innermost loop that each basic block of the PTX stands in, for each entry."""
    numbers = [block.number for block in program.blocks]
    place = {number: at for at, number in enumerate(numbers)}
    edges = [
        (place[block.number], place.get(to, -1))
        for block in program.blocks
        for to in dict.fromkeys(successors(block.block) or [EXIT])
    ]
    if not edges:
        return {}
    known = [({place[n]: 1.0}, float(warps.get(n, 0)), True) for n in numbers]
    passed = flows(
        [(a, b) for a, b in edges], [1] * len(numbers), known, float(warps.get(program.start, 0))
    )
    found: dict[int, float] = {}
    loops = sorted({(b, a) for a, b in edges if 0 <= b <= a}, key=lambda loop: loop[0] - loop[1])
    for head, last in loops:  # the widest first: an inner loop has the last word
        outside = sum(
            flow
            for (a, b), flow in zip(edges, passed.tolist(), strict=True)
            if b == head and not head <= a <= last
        )
        if outside > 0:
            rounds = warps.get(numbers[head], 0) / outside
            found |= {numbers[at]: rounds for at in range(head, last + 1)}
    return found


def _copies(
    listing: Sequence[MachineInstruction],
    spans: Sequence[tuple[int, int]],
    ran: Mapping[int, tuple[Instruction, int]],
    kinds: Mapping[int, str],
    sure: bool = True,
) -> dict[int, tuple[dict[int, float], bool]]:
    """Return, for each PTX line that is one machine instruction, its copies by piece.

    With them stands whether all execute whenever their piece does; ``sure``: whether they may.
    """
    found: dict[int, tuple[dict[int, float], bool]] = {}
    for piece, (first, last) in enumerate(spans):
        for instruction in listing[first:last]:
            ins, _ = ran.get(instruction.line, (None, 0))
            if ins is None or ins.guard:
                continue
            if instruction.pipe.startswith(kinds.get(instruction.line, "-")):
                where, always = found.get(instruction.line, ({}, sure))
                where[piece] = where.get(piece, 0.0) + 1
                found[instruction.line] = where, always and not instruction.guarded
    return found


def _edges(
    listing: Sequence[MachineInstruction], spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """From which piece control passes to which; to -1 at the end."""
    number = {first: piece for piece, (first, _) in enumerate(spans)}
    found = []
    for piece, (_, last) in enumerate(spans):
        end = listing[last - 1]
        if end.target in number:
            found.append((piece, number[end.target]))
        if end.leaves or (end.is_terminator and end.target not in number):
            found.append((piece, -1))
        if not end.is_terminator:
            found.append((piece, number.get(last, -1)))
    return found
