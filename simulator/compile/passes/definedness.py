"""Definedness pass: inserts V-bit propagation, as Memcheck does.

The program computes V bits for each register besides its value: ones for bits that derive from
uninitialised memory. A copy copies them. A result bit of an instruction is undefined if it changes
with the undefined bits of the operands, which is determined by evaluating the instruction with
other values. A ``Watch`` reports undefined bits of a branch, guard, address or barrier operand
(``memory.definedness`` has the V bits of memory).
"""

import dataclasses
from collections.abc import Iterator

from kernels.ptx.module import Instruction

from ...isa import DTYPES, Op
from ...isa.definedness import bits_of, propagate_v_bits
from ...memory.definedness import shadow_site
from ...memory.site import PHASE
from ..context import CompileContext
from ..ir import Bulk, Compute, IrOp, Lowered, MemoryOp, Move, TraceProbe, WarpCompute
from ..ir_values import Constant, Register, ResultValue, SourceValue, Temporary


class DefinednessPass:
    """Pass over one block's operations that inserts V-bit propagation and probes of uses.

    Args:
        use_sites: Receives the instruction of each inserted ``Watch``, in the order of their
            numbers.
    """

    def __init__(
        self, context: CompileContext, lowered: Lowered, use_sites: list[Instruction]
    ) -> None:
        self.context, self.block, self.traced = context, lowered, use_sites
        self.temporaries: dict[int, Temporary] = {}

    def lowered(self) -> Lowered:
        """Return the block with V bits."""
        block, steps = self.block, list[IrOp]()
        for step in block.steps:
            probe = dataclasses.replace(step.instruction)  # reported before the guard applies
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
        shadows = tuple(self.context.shadow(register) for register in block.live_out)
        return dataclasses.replace(
            block, steps=tuple(steps), end=end, live_out=block.live_out + shadows
        )

    def uses(
        self, ins: Instruction, guard: SourceValue | None, *sources: SourceValue | None
    ) -> list[IrOp]:
        """Return operations that report undefined values."""
        shadows = tuple(self.source(source) for source in sources if source and _varies(source))
        if not shadows:
            return []
        self.traced.append(ins)
        return [TraceProbe(ins, guard, (), shadows, number=len(self.traced) - 1)]

    def shadows(self, step: IrOp) -> Iterator[IrOp]:
        """Yield the operations on V bits that precede an operation."""
        ins, guard = step.instruction, step.guard
        targets = tuple(map(self.target, step.targets))
        sources = tuple(map(self.source, step.sources))
        match step:
            case MemoryOp(site=site, base=base):
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
                yield MemoryOp(ins, guard, targets, given, site=shadow_site(site), base=base)
            case Compute(op=op) if op.warp or any(map(_varies, step.sources)):
                make = WarpCompute if op.warp else Compute
                shadow = Op(
                    propagate_v_bits(op), op.inputs, tuple(map(bits_of, op.outputs)), warp=op.warp
                )
                yield make(ins, guard, targets, step.sources + sources, op=shadow)
            case Compute() | Bulk():
                if isinstance(step, Bulk):  # where to, how much; what a surface is given
                    yield from self.uses(ins, guard, *step.sources)
                kinds = (target.type if target else "pred" for target in targets)
                yield Move(ins, guard, targets, tuple(map(_zero, kinds)))
            case Move():
                yield Move(ins, guard, targets, sources)

    def source(self, source: SourceValue) -> SourceValue:
        """Return the V bits of a source."""
        kind = bits_of(source.type)
        if not isinstance(source.value, Register | Temporary):
            return _zero(kind)
        return SourceValue(self.shadow(source.value), kind)

    def target(self, target: ResultValue | None) -> ResultValue | None:
        """Return the V bits of a target."""
        return target and ResultValue(self.shadow(target.register), bits_of(target.type))

    def shadow(self, register: Register | Temporary) -> Register | Temporary:
        """Return the V-bit register of a register."""
        if isinstance(register, Register):
            return self.context.shadow(register)
        number = register.number
        if number not in self.temporaries:
            made = Temporary(next(self.block.numbers), bits_of(register.carrier))
            self.temporaries[number] = made
        return self.temporaries[number]


def _varies(source: SourceValue) -> bool:
    return isinstance(source.value, Register | Temporary)


def _zero(kind: str) -> SourceValue:
    return SourceValue(Constant(DTYPES[kind].type(0)), kind)
