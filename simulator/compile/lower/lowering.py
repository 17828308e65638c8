"""Lowering of a basic block, by the instructions' rows in the table."""

import numpy as np

from kernels.ptx.module import Imm, Instruction, Reg, Symbol

from ...isa import Flow, Unsupported
from ...isa.decoded import STACK, STACK_POINTER, DecodedInstruction, roles
from ...isa.table import reach, same
from ...isa.validity import not_yet
from ..cfg.basic_blocks import Block
from ..context import RETURN, CompileContext
from ..ir import (
    BarrierOp,
    Compute,
    FenceOp,
    IrOp,
    Lowered,
    Move,
    SyscallOp,
    Terminator,
    WarpCompute,
    WarpSyncPoint,
    WgmmaRegisterEvent,
)
from ..ir_values import Constant, Register, SourceValue
from .accesses import lower_access, lower_asynchronous, lower_mbarrier, lower_parameter
from .images import lower_image
from .matrices import build_op, lower_rows, lower_scattered, lower_warpgroup
from .operands import Operands

_TERMINATORS = {
    Flow.BRANCH: "branch", Flow.EXIT: "exit", Flow.RETURN: "exit", Flow.TRAP: "trap",
}  # fmt: skip
"""Ends that may be guarded and say nothing else."""

_MALFORMED = (IndexError, KeyError, TypeError, ValueError, OverflowError, StopIteration)
"""What a builder stumbles over when an instruction's operands or types are not as PTX has them."""


class Lowering:
    """Lowering of one basic block.

    Args:
        context: State of the compilation.
        block: The basic block.

    Attributes:
        operands: Operands of the block's instructions.
    """

    def __init__(self, context: CompileContext, block: Block) -> None:
        self.context, self.block, self.function = context, block, block.function
        self.operands = Operands(context, block)

    def lower(self) -> Lowered:
        """Return the block's IR.

        Raises:
            PtxError: An instruction is unsupported here; the message names it and its lines.
        """
        block, operands = self.block, self.operands
        steps: list[IrOp] = []
        gate = None
        end: Terminator | None = None
        for i, ins in enumerate(block.instructions):
            try:
                role = roles(ins)
                if i == 0 and role.row.gate:
                    gate = self.gate(role)
                if role.flow is Flow.RETURN and STACK in self.function.variables:
                    empty = SourceValue(Constant(np.uint64(0)), "u64")
                    pointer = operands.target(Reg(STACK_POINTER), "u64")
                    steps.append(Move(ins, operands.guard(ins.guard), (pointer,), (empty,)))
                if ins is block.end:
                    end = self.end(ins, role)
                else:
                    if (number := self.context.flights.get(id(ins))) is not None:
                        steps.append(
                            WgmmaRegisterEvent(ins, operands.guard(ins.guard), number=number)
                        )
                    steps += self.instruction(ins, role)
            except Unsupported as error:
                raise not_yet(ins, str(error)) from None
            except _MALFORMED:
                raise not_yet(ins, "operands or types that do not fit: use the PTX ISA's") from None
        private = self.function.registers
        outlives = tuple(
            register
            for register, name in operands.written.items()
            if name not in private or name in block.live_out
        )
        return Lowered(block, tuple(steps), end, gate, outlives, operands.numbers)

    def instruction(self, ins: Instruction, role: DecodedInstruction) -> list[IrOp]:
        """Lower an instruction of the block's body."""
        operands, row = self.operands, role.row
        if row.rows:
            return lower_rows(operands, ins, role)
        if row.phase:
            return lower_mbarrier(operands, ins, role)
        if row.picture:
            return lower_image(operands, ins, role)
        if row.asynchronous:
            return lower_asynchronous(operands, ins, role)
        if row.warpgroup:
            return lower_warpgroup(operands, ins, role)
        if row.scattered:
            return lower_scattered(operands, ins, role)
        if row.build:
            return [self.value(ins, role)]
        if row.memory:
            moves = lower_parameter(operands, ins, role) if role.parameter else None
            return [lower_access(operands, ins, role)] if moves is None else moves
        if row.fence:
            proxy = ins.has("proxy")
            return [FenceOp(ins, operands.guard(ins.guard), reach=reach(ins), proxy=proxy)]
        return []

    def value(self, ins: Instruction, role: DecodedInstruction) -> IrOp:
        """Lower an instruction that computes values by its row's function."""
        operands, op = self.operands, build_op(self.context, ins, role)
        guard = operands.guard(ins.guard)
        if len(role.sources) != len(op.inputs):
            raise Unsupported(f"{len(role.sources)} source operands: use {len(op.inputs)}")
        sources = tuple(map(operands.source, role.sources, op.inputs))
        results = role.results + (None,) * (len(op.outputs) - len(role.results))
        targets = tuple(map(operands.target, results, op.outputs))
        if op.fn is same:
            return Move(ins, guard, targets, sources)
        return (WarpCompute if op.warp else Compute)(ins, guard, targets, sources, op=op)

    # -- gates and ends ---------------------------------------------------------

    def gate(self, role: DecodedInstruction) -> WarpSyncPoint:
        """Return the warp synchronisation before a block that begins with such an instruction."""
        barrier = role.row.warp_barrier
        guard = self.operands.guard(self.block.instructions[0].guard)
        if "members" not in role.form.sources:
            waits = role.row.asynchronous == "wait"
            group = "wait" if waits else "warpgroup" if role.row.warpgroup else ""
            return WarpSyncPoint(None, barrier, guard if waits else None, group)
        members = role.operand("members")
        if isinstance(members, Reg):
            return WarpSyncPoint(
                SourceValue(self.operands.register(members.name), "u32"), barrier, guard
            )
        if not isinstance(members, Imm):
            raise Unsupported("such a member mask: use a register or a number")
        return WarpSyncPoint(self.operands.source(members, "u32"), barrier, guard)

    def end(self, ins: Instruction, role: DecodedInstruction) -> Terminator:
        """Lower the terminator."""
        guard, flow = self.operands.guard(ins.guard), role.flow
        if flow in (Flow.SYSTEM, Flow.ASSERT):
            return self.system(ins, guard)
        if flow is Flow.SWITCH:
            if guard:
                raise Unsupported("a guard: use a branch around it")
            return Terminator(
                ins, None, (), (self.operands.source(role.sources[0], "b32"),), how="switch"
            )
        if flow is Flow.CALL:
            callee = ins.targets[0]
            register = self.context.register(self.context.module.functions[callee], RETURN)
            entry, back = self.context.entries[callee], register.number
            group = self.context.recursions.get(self.function.name)
            saves: tuple[Register, ...] = ()
            if group and callee in group.names:
                names = (*sorted(self.block.live_out - {*ins.results}), RETURN)
                saves = tuple(map(self.operands.register, names))
                group.keep(saves)
            else:
                group = None
            return Terminator(
                ins, None, how="call", call_entry=entry, return_register=back,
                group=group, saves=saves,
            )  # fmt: skip
        if flow is Flow.BARRIER:
            return self.barrier(ins, role, guard)
        if flow is Flow.RETURN and not self.function.is_entry:
            register = self.operands.register(RETURN)
            return Terminator(ins, guard, how="return", return_register=register.number)
        how = "goto" if flow is Flow.BRANCH and not guard else _TERMINATORS[flow]
        return Terminator(ins, guard, how=how)

    def system(self, ins: Instruction, guard: SourceValue | None) -> SyscallOp:
        """Lower the call of a system function, whose parameters are registers."""
        given = [operand.name for operand in ins.operands if isinstance(operand, Symbol)]
        sources = tuple(SourceValue(r, r.carrier) for r in map(self.operands.register, given))
        result = self.operands.register(ins.results[0]).number if ins.results else -1
        return SyscallOp(ins, guard, (), sources, name=ins.targets[0], result=result)

    def barrier(
        self, ins: Instruction, role: DecodedInstruction, guard: SourceValue | None
    ) -> Terminator:
        """Lower a block barrier or a cluster barrier."""
        operands, reduction = self.operands, None
        predicate: tuple[SourceValue, ...] = ()
        if role.results:
            target = role.results[0]
            operation = next((m for m in ins.modifiers if m in ("popc", "and", "or")), None)
            if operation is None or not isinstance(target, Reg):
                raise Unsupported("no operation: use .popc, .and or .or")
            register = operands.register(target.name)
            if register.carrier != ("s32" if operation == "popc" else "pred"):
                raise Unsupported(f"a result of type {register.carrier}: use .u32 or .pred")
            reduction = (operation, register.number)
            predicate = (operands.source(role.operand("pred"), "pred"),)
        zero = SourceValue(Constant(np.int32(0)), "b32")
        given = (role.operand("bar"), role.operand("threads"))
        numbers = (
            zero if operand is None else operands.source(operand, "b32") for operand in given
        )
        sources = (*numbers, *predicate)
        return BarrierOp(
            ins, guard, (), sources, reduction=reduction, waits=role.holds,
            cluster=ins.has("cluster"),
        )  # fmt: skip
