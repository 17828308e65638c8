"""Writes that come after reads of other lanes, for what these read is in what is written.

Triton loads in one layout and stores in another; between the two it exchanges values by shuffles
of the whole warp. A lane that has its value from there stores after every lane has loaded: the
shuffle waits for all of them, and each gives what it loaded. (PTX orders no memory by a shuffle,
but a value that was passed on has been read.)
"""

from collections.abc import Iterable, Sequence

from kernels.ptx.module import Imm, Instruction, Reg

from ..compile.program import Program
from ..isa.decoded import roles
from ..memory.site import Site

_EVERYBODY = 0xFFFFFFFF


def exchanged(program: Program, reads: Iterable[Site], writes: Iterable[Site]) -> bool:
    """Whether each write stores what a shuffle of the whole warp made of each of the reads."""
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
    """Whether it is a shuffle by all lanes of a warp."""
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
    """The registers of the values that it takes: neither its address nor its guard."""
    role = roles(ins)
    besides = {*role.bases, ins.guard.name if ins.guard else ""}
    return [name for name in role.reads if name not in besides]


def _made_of(body: Iterable[Instruction], registers: set[str]) -> set[str]:
    """Registers, and those that instructions other than accesses make of their values."""
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
