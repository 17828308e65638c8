"""Estimated machine code, one instruction for each PTX instruction, if no compiler is available."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kernels.machine_code.sass import MachineInstruction
from kernels.ptx.module import Instruction

from ..compile.program import Program
from ..isa import Flow
from ..isa.decoded import roles
from ..isa.scalar.integer import SIMPLE
from ..memory.site import Site

_LATE = ("load", "atomic", "shuffle", "sfu", "tensor")
"""Pipes whose results are waited for."""


@dataclass(frozen=True)
class MachineBlock:
    """A basic block of machine code.

    Attributes:
        code: Its instructions.
        warps: Number of warps that executed it, in total.
        rounds: Number of consecutive executions in a thread block.
        loop: Number of blocks in the loop that begins with it; 0: none.
    """

    code: Sequence[MachineInstruction]
    warps: float
    rounds: float
    loop: int


def kinds(program: Program) -> dict[int, str]:
    """Return the pipes of PTX instructions with a one-to-one machine instruction, by line."""
    found = {}
    for block in program.blocks:
        for ins in block.block.instructions:
            row = roles(ins).row
            if row.waits == "block":
                found[ins.line] = "barrier"
            elif row.gate and row.build:
                found[ins.line] = "shuffle"
    for entry in program.arithmetic:
        pipe, _, type = (entry.count or "").partition("_")
        if pipe:
            single = "tensor" if pipe == "tensor" else "fma"
            found[entry.instruction.line] = "fp64" if type == "f64" else single
    for site in program.sites:
        if site.counted and site.space != "const":
            space = site.space if site.space in ("shared", "local") else "global"
            found[site.instruction.line] = f"{site.access}_{space}"
        else:
            found[site.instruction.line] = "constant"
    return found


def simple(program: Program) -> dict[int, str]:
    """Return the pipes of integer instructions that mostly map one-to-one, unless merged."""
    return {
        ins.line: "alu"
        for block in program.blocks
        for ins in block.block.instructions
        if roles(ins).row.flow is Flow.NEXT and not ins.guard and _narrow(ins)
    }


def _narrow(ins: Instruction) -> bool:
    return ins.name.startswith(SIMPLE) and ins.has("s32", "u32", "b32")


def pieces(
    program: Program, warps: Mapping[int, int], rounds: Mapping[int, float]
) -> list[MachineBlock]:
    """Estimate the blocks of ``sass_counts.pieces`` from the PTX alone."""
    sites = {site.instruction.line: site for site in program.sites}
    known = kinds(program)
    found = []
    for block in program.blocks:
        listing: list[MachineInstruction] = []
        board: dict[str, int] = {}
        for ins in block.block.instructions:
            if not (roles(ins).row.copies or roles(ins).row.generic):
                pipe = known.get(ins.line) or _other(ins)
                listing.append(_instruction(ins, pipe, sites.get(ins.line), board, len(listing)))
        number = block.number
        times = warps.get(number, 0), rounds.get(number, 0.0)
        found.append(MachineBlock(listing, float(times[0]), times[1], 0))
    place = {block.number: at for at, block in enumerate(program.blocks)}
    edges = [(place[b.number], place[to]) for b in program.blocks for to in b.block.targets]
    return with_loops(found, edges)


def with_loops(
    found: Sequence[MachineBlock], edges: Iterable[tuple[int, int]]
) -> list[MachineBlock]:
    """Add loops to the blocks; ``edges``: control-flow edges between them."""
    last: dict[int, int] = {}
    for here, there in edges:
        if 0 <= there <= here:
            last[there] = max(here, last.get(there, 0))
    return [
        replace(piece, loop=last[at] - at + 1 if at in last else 0)
        for at, piece in enumerate(found)
    ]


def _other(ins: Instruction) -> str:
    """Return the pipe of an instruction without a cost of its own."""
    if roles(ins).row.flow is not Flow.NEXT:
        return "branch"
    if ins.has("approx"):
        return "sfu"
    return "imad" if ins.has("lo", "hi", "wide") else "alu"


def _instruction(
    ins: Instruction, pipe: str, site: Site | None, board: dict[str, int], place: int
) -> MachineInstruction:
    role = roles(ins)
    waits = {board[name] for name in role.reads if name in board}
    sets = place % 6 if pipe.startswith(_LATE) else 7
    for name in role.writes:
        board.pop(name, None)
        if sets < 7:
            board[name] = sets
    width = site.nbytes if site is not None and site.counted else 0
    return MachineInstruction(
        pipe, width, ins.line, 2, (sets, 7), tuple(sorted(waits)), -1, False, False, False
    )
