"""Perturbation of shuffles that read inactive lanes: does the outcome depend on them?

The value is undefined, but reading it is allowed. In a reduction, lanes at the end of a partial
warp do so, and compare or branch on values that never reach the result. A read therefore counts
only if the launch's outcome changes with its value, which is tested.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from kernels.ptx.module import Imm, Line

from ..compile.program import Program
from ..core.geometry import Geometry, InactiveLaneRead, Lanes, UndefinedValueSource

_VALUES = (0x55555555, 0xEAAAAAAA, 0, None)
"""For a register: large and small as an integer, a float, a double or two halves, and all bits
on and off; zero; and the reader's own value, for code that compares the two."""
_CONSTANTS = 8


def used(
    program: Program, reads: Mapping[Line, Collection[int]],
    outcome: Callable[[UndefinedValueSource | None], object],
) -> dict[Line, int]:  # fmt: skip
    """Return the lines whose reads of inactive lanes change the outcome, each with one such read.

    Args:
        program: The kernel.
        reads: For each line the pairs of reading lane and source lane (``InactiveLaneRead.reads``).
        outcome: Repeats the launch with other values for these reads and returns its outcome.
    """
    usual = outcome(None)
    found: dict[Line, int] = {}
    for value in (*_VALUES, *_compared(program)):

        def matters(chosen: Mapping[Line, Collection[int]], value: int | None = value) -> bool:
            return bool(outcome(_others(chosen, value)) != usual)

        candidates = {line: sorted(reads[line]) for line in reads if line not in found}
        if not candidates or not matters(candidates):
            continue
        for line, every in candidates.items():
            if len(candidates) > 1 and not matters({line: every}):
                continue
            low, high = 0, len(every)  # the first `low` change nothing, the first `high` do
            while high - low > 1:  # it is often the very first
                middle = (low + high) // 2 if low else 1
                low, high = (low, middle) if matters({line: every[:middle]}) else (middle, high)
            found[line] = every[low]
    return found


def _others(chosen: Mapping[Line, Collection[int]], value: int | None) -> UndefinedValueSource:
    """Return values for the chosen reads (``None``.

    The reader's own), and the usual ones for others.
    """

    def instead(g: Geometry, read: InactiveLaneRead) -> Lanes:
        numbers = chosen.get(read.instruction.user_line, ())
        lanes = read.lanes & np.isin(read.reads(g), list(numbers))
        dtype, both = read.value.dtype, 0x1_0000_0001 * (value or 0)
        mine = np.array(both, np.uint64).reshape(1).view(dtype)[0]
        other = read.value if value is None else mine
        return np.where(lanes, other, read.found)

    return instead


def _compared(program: Program) -> list[int]:
    """Return constants that the kernel compares with for equality."""
    found = {
        operand.value & 0xFFFFFFFF: None
        for function in program.module.functions.values()
        for ins in function.body
        if {"eq", "ne"} & set(ins.modifiers)
        for operand in ins.operands
        if isinstance(operand, Imm) and isinstance(operand.value, int)
    }
    return [value for value in found if value not in _VALUES][:_CONSTANTS]
