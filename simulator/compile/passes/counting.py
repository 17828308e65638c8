"""Counting pass: which operations count as arithmetic, and how their lanes are counted."""

from collections.abc import Iterable

from ..ir import Compute, CountLanes, IrOp
from ..probes import Arithmetic


def counted(steps: Iterable[IrOp], block: int, arithmetic: list[Arithmetic]) -> list[IrOp]:
    """Insert counters for operations that only some lanes of a block execute.

    ``arithmetic`` receives the counted instructions.
    """
    found: list[IrOp] = []
    for step in steps:
        if isinstance(step, Compute) and (step.op.flops or step.op.count):
            tally = len(arithmetic) if step.guard else None
            if tally is not None:
                found.append(CountLanes(step.instruction, step.guard, number=tally))
            op = step.op
            arithmetic.append(Arithmetic(step.instruction, op.count, op.flops, block, tally))
        found.append(step)
    return found
