"""What a block does to undefined bits, beside what it does to values.

After this pass a program runs as before and computes a *shadow* of each register as well: ones
for the bits that come from memory that nothing wrote. A copy copies them. An instruction's
result is undefined in the bits that change with what is put into the undefined bits of its
operands: that is tried out. Where a branch, a guard, an address or a barrier is made of such
bits, a ``Watch`` tells of it (``memory.definedness`` has the shadows of memory).
"""

import dataclasses
from collections.abc import Iterator

from kernels.ptx.module import Instruction

from ...isa import DTYPES, Op
from ...isa.definedness import bits_of, spread
from ...memory.definedness import shadow_site
from ...memory.site import PHASE
from ..context import CompileContext
from ..ir import Access, Bulk, Compute, Lowered, Move, Step, WarpCompute, Watch
from ..ir_values import Constant, Register, Source, Target, Temporary


class DefinednessPass:
    """The pass over one block's steps.

    Args:
        told: Gets the instructions that a ``Watch`` is told of, by its number.
    """

    def __init__(self, context: CompileContext, lowered: Lowered, told: list[Instruction]) -> None:
        self.context, self.block, self.told = context, lowered, told
        self.temporaries: dict[int, Temporary] = {}

    def lowered(self) -> Lowered:
        """The block with its shadows."""
        block, steps = self.block, list[Step]()
        for step in block.steps:
            probe = dataclasses.replace(step.instruction)  # told before the guard is heeded
            steps += self.uses(probe, None, step.guard)
            steps += self.shadows(step)
            steps.append(step)
        if block.end:
            probe = dataclasses.replace(block.end.instruction)
            steps += self.uses(probe, None, block.end.guard, *block.end.sources)
        if block.gate and block.gate.members:
            probe = dataclasses.replace(block.block.instructions[0])
            steps = [*self.uses(probe, None, block.gate.members), *steps]
        end = block.end
        if end and end.saves:
            end = dataclasses.replace(
                end, saves=end.saves + tuple(map(self.context.shadow, end.saves))
            )
        shadows = tuple(self.context.shadow(register) for register in block.outlives)
        return dataclasses.replace(
            block, steps=tuple(steps), end=end, outlives=block.outlives + shadows
        )

    def uses(self, ins: Instruction, guard: Source | None, *sources: Source | None) -> list[Step]:
        """Tell if one of the values is undefined."""
        told = tuple(self.source(source) for source in sources if source and _varies(source))
        if not told:
            return []
        self.told.append(ins)
        return [Watch(ins, guard, (), told, number=len(self.told) - 1)]

    def shadows(self, step: Step) -> Iterator[Step]:
        """What a step does to shadows, done before it."""
        ins, guard = step.instruction, step.guard
        targets = tuple(map(self.target, step.targets))
        sources = tuple(map(self.source, step.sources))
        match step:
            case Access(site=site, base=base):
                compared = step.sources[: -site.count]  # a compare-and-swap's
                given = sources
                if site.access == "atomic":
                    given = sources[-site.count :]
                    if site.operation not in ("exch", "cas", PHASE):
                        given += step.sources[-site.count :]
                    yield from self.uses(ins, guard, base, *compared)
                elif site.access == "load":  # how much of it is loaded is a number as it is
                    yield from self.uses(ins, guard, base, *step.sources)
                    given = step.sources
                else:
                    yield from self.uses(ins, guard, base)
                yield Access(ins, guard, targets, given, site=shadow_site(site), base=base)
            case Compute(op=op) if op.warp or any(map(_varies, step.sources)):
                make = WarpCompute if op.warp else Compute
                shadow = Op(spread(op), op.inputs, tuple(map(bits_of, op.outputs)), warp=op.warp)
                yield make(ins, guard, targets, step.sources + sources, op=shadow)
            case Compute() | Bulk():
                if isinstance(step, Bulk):  # where to, how much; what a surface is given
                    yield from self.uses(ins, guard, *step.sources)
                kinds = (target.type if target else "pred" for target in targets)
                yield Move(ins, guard, targets, tuple(map(_zero, kinds)))
            case Move():
                yield Move(ins, guard, targets, sources)

    def source(self, source: Source) -> Source:
        """The shadow of what is read."""
        kind = bits_of(source.type)
        if not isinstance(source.value, Register | Temporary):
            return _zero(kind)
        return Source(self.shadow(source.value), kind)

    def target(self, target: Target | None) -> Target | None:
        """The shadow of what is written."""
        return target and Target(self.shadow(target.register), bits_of(target.type))

    def shadow(self, register: Register | Temporary) -> Register | Temporary:
        """The shadow of a register."""
        if isinstance(register, Register):
            return self.context.shadow(register)
        number = register.number
        if number not in self.temporaries:
            made = Temporary(next(self.block.numbers), bits_of(register.carrier))
            self.temporaries[number] = made
        return self.temporaries[number]


def _varies(source: Source) -> bool:
    return isinstance(source.value, Register | Temporary)


def _zero(kind: str) -> Source:
    return Source(Constant(DTYPES[kind].type(0)), kind)
