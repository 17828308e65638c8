"""Predication: guards become masks, for a machine that executes many lanes at once.

After this pass the guard of an operation on lanes (``MemoryOp``, ``WarpCompute``, ``FenceOp``,
``CountLanes``, ``TraceProbe``) is its mask. Values are computed for all lanes, and each target has
a mask of the lanes that change (``ResultValue.under``).
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from ..ir import Compute, IrOp, Move, SavePredicate, WarpCompute
from ..ir_values import Register, ResultValue, SourceValue, Temporary


def predicated(steps: Iterable[IrOp], numbers: Iterator[int]) -> list[IrOp]:
    """Replace guards by masks."""
    found: list[IrOp] = []
    for _, group in itertools.groupby(steps, key=lambda step: id(step.instruction)):
        together = list(group)
        guard = together[0].guard
        if guard is None:
            found += together
            continue
        targets = sum(len(step.targets) for step in together)
        # The first of two targets may be the guard itself.
        if guard.negated or targets > 1:
            saved = Temporary(next(numbers), "pred")
            found.append(
                SavePredicate(together[0].instruction, None, temporary=saved, predicate=guard)
            )
            guard = SourceValue(saved, "pred")
        found += [_under(step, guard) for step in together]
    return found


def _under(step: IrOp, guard: SourceValue) -> IrOp:
    """Return an operation under a guard."""
    values = isinstance(step, (Compute, Move)) and not isinstance(step, WarpCompute)
    targets = tuple(_chosen(target, guard) for target in step.targets)
    return dataclasses.replace(step, guard=None if values else guard, targets=targets)


def _chosen(target: ResultValue | None, guard: SourceValue) -> ResultValue | None:
    if target is None or not isinstance(target.register, Register):
        return target
    return target._replace(under=guard)
