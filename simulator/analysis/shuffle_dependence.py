"""Stores that depend on loads of other lanes through warp shuffles.

Triton loads in one layout and stores in another, and exchanges values by full-warp shuffles in
between. A lane that received its value by the shuffle stores after every lane has loaded, because
the shuffle waits for all lanes. (PTX gives a shuffle no memory order, but a passed value has been
read.)
"""

from collections.abc import Iterable, Sequence

from kernels.ptx.module import Imm, Instruction, Reg

from ..compile.program import Program
from ..isa.decoded import roles
from ..memory.site import Site

_EVERYBODY = 0xFFFFFFFF


def exchanged(program: Program, reads: Iterable[Site], writes: Iterable[Site]) -> bool:
    """Whether each store depends on each of the loads through a full-warp shuffle."""
    written = list(writes)
    bodies = {b.block.function.name: b.block.function.body for b in program.blocks}
    for read in reads:
        body = bodies[read.function]
        loaded = _made_of(body, set(roles(read.instruction).writes))
        shuffled = {
            name for ins in body if _whole(ins, body) and set(_sources(ins)) & loaded
            for name in roles(ins).writes
        }  # fmt: skip
        passed = _made_of(body, shuffled)
        if not all(
            site.function == read.function and set(_sources(site.instruction)) & passed
            for site in written
        ):
            return False
    return True


def _whole(ins: Instruction, body: Sequence[Instruction]) -> bool:
    """Whether an instruction is a shuffle of all lanes of a warp."""
    role = roles(ins)
    if not role.row.shuffles or ins.guard is not None:
        return False
    mask = role.operand("members")
    if isinstance(mask, Reg):
        made = [one for one in body if mask.name in roles(one).writes]
        copied = len(made) == 1 and roles(made[0]).row.copies
        mask = made[0].operands[-1] if copied else None
    return isinstance(mask, Imm) and int(mask.value) & _EVERYBODY == _EVERYBODY


def _sources(ins: Instruction) -> list[str]:
    """Return the value operands of an instruction, without address and guard."""
    role = roles(ins)
    besides = {*role.bases, ins.guard.name if ins.guard else ""}
    return [name for name in role.reads if name not in besides]


def _made_of(body: Iterable[Instruction], registers: set[str]) -> set[str]:
    """Return registers and everything computed from them without memory accesses."""
    found, more = set(registers), True
    while more:
        news = {
            name for ins in body
            if not roles(ins).row.memory and found & set(_sources(ins))
            for name in roles(ins).writes
        }  # fmt: skip
        more = not news <= found
        found |= news
    return found
