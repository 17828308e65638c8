"""Fusion of chains of fused multiply-adds (``isa.scalar.fma_chain``).

The intermediate sum must have no other use: no other operation reads it, and it is dead at the end
of the block.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...isa.numerics.arithmetic import fma_f32
from ..ir import Compute, IrOp
from ..ir_values import Register, ResultValue, SourceValue, Temporary, Value


@dataclass(frozen=True, kw_only=True)
class Product(IrOp):
    """One product of a chain; the first has three sources, others two, the last one a target."""

    chain: Temporary


def chained(
    steps: Iterable[IrOp], outlives: Iterable[Register], end: IrOp | None, numbers: Iterator[int]
) -> list[IrOp]:
    """Fuse the chains of a block.

    Args:
        steps: The block's operations.
        outlives: Registers that are live at its end.
        end: Its terminator.
        numbers: Generator of numbers for temporaries.
    """
    steps = list(steps)
    for chain in _chains(steps, set(outlives), end):
        total = Temporary(next(numbers), "f32")
        for place, at in enumerate(chain):
            step = steps[at]
            steps[at] = Product(
                step.instruction,
                None,
                step.targets if at == chain[-1] else (),
                step.sources if place == 0 else step.sources[:2],
                chain=total,
            )
    return steps


def _chains(
    steps: Sequence[IrOp], outlives: set[Register], end: IrOp | None
) -> Iterator[list[int]]:
    """Yield the positions of each chain's operations."""
    adding = [at for at, step in enumerate(steps) if isinstance(step, Compute) and _adds(step)]
    if len(adding) < 2:
        return
    uses = _Uses(steps, outlives, end)
    chain: list[int] = []
    for at in adding:
        if chain and not uses.only(chain[-1], at):
            if len(chain) > 1:
                yield chain
            chain = []
        chain.append(at)
    if len(chain) > 1:
        yield chain


def _adds(step: Compute) -> bool:
    return (
        step.op.fn is fma_f32
        and step.guard is None
        and isinstance(target := step.targets[0], ResultValue)
        and isinstance(target.register, Register)
        and target.register.carrier == "f32"
        and target.under is None
    )


class _Uses:
    """Reads and writes of registers in a block."""

    def __init__(self, steps: Sequence[IrOp], outlives: set[Register], end: IrOp | None) -> None:
        self.steps, self.outlives = steps, outlives
        self.reads: dict[Value, list[int]] = {}
        self.writes: dict[Value, list[int]] = {}
        for at, step in enumerate([*steps, end] if end else steps):
            for value in _read(step):
                self.reads.setdefault(value, []).append(at)
            for target in filter(None, step.targets):
                self.writes.setdefault(target.register, []).append(at)

    def only(self, one: int, other: int) -> bool:
        """Whether an operation adds to the result of another, which nothing else reads."""
        (target,) = self.steps[one].targets
        assert target is not None
        sum_ = target.register
        if self.steps[other].sources[2] != SourceValue(sum_, "f32"):
            return False
        last = next((at for at in self.writes[sum_] if at > one), None)
        if last is None and sum_ in self.outlives:
            return False
        readers = [at for at in self.reads[sum_] if one < at and (last is None or at <= last)]
        return readers == [other]


def _read(step: IrOp) -> Iterator[Value]:
    """Yield all values that an operation reads."""
    for field in dataclasses.fields(step):
        value = getattr(step, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            match item:
                case SourceValue(value=one):
                    yield one
                case Register():
                    yield item
                case ResultValue(register=one, under=SourceValue(value=under)):
                    yield from (one, under)  # the other lanes keep what they had
