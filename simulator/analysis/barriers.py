"""Barriers named in a program: where threads arrive and wait."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kernels.ptx.module import Imm, Instruction

from ..compile.cfg.basic_blocks import Block
from ..isa import Flow
from ..isa.decoded import roles

_MBARRIER, _CLUSTER, _ANY = -1, -2, -3
"""All ``mbarrier``s, which addresses name; that of a cluster; of a block one that a register names.
"""


@dataclass
class BarrierSites:
    """A barrier; ``arrivals``, ``waits``: block numbers of its instructions."""

    arrivals: set[int] = field(default_factory=set)
    waits: set[int] = field(default_factory=set)


def barriers(blocks: Sequence[Block]) -> Collection[BarrierSites]:
    """Return a program's barriers; a register operand merges all barriers of the blocks."""
    found: dict[int, BarrierSites] = defaultdict(BarrierSites)
    uses = [(block.number, use) for block in blocks for use in map(_use, block.instructions) if use]
    one = any(name == _ANY for _, (name, _, _) in uses)
    for block, (name, arrives, waits) in uses:
        barrier = found[_ANY if one and name >= 0 else name]
        barrier.arrivals |= {block} if arrives else set()
        barrier.waits |= {block} if waits else set()
    return found.values()


def _use(ins: Instruction) -> tuple[int, bool, bool] | None:
    """Return the barrier of an instruction, and whether threads arrive and wait."""
    role = roles(ins)
    row = role.row
    if row.phase or row.asynchronous == "arrive":
        return _MBARRIER, row.phase not in ("init", "end", "wait"), row.phase == "wait"
    if row.flow is not Flow.BARRIER:
        return None
    if ins.has("cluster"):
        return _CLUSTER, row.waits == "nobody", row.waits != "nobody"
    number = ins.operands[len(role.writes)]
    name = number.value if isinstance(number, Imm) else _ANY
    return name, True, row.waits != "nobody"
