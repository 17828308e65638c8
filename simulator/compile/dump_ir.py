"""Readable IR, for ``tilescope ptx --steps``."""

from kernels.ptx.module import Imm, Instruction, Symbol
from kernels.ptx.names import variable_name
from kernels.source_access import plain_name

from ..isa import DTYPES
from .cfg.basic_blocks import EXIT, successors
from .ir import BarrierOp, Compute, FenceOp, IrOp, MemoryOp, Terminator, WarpCompute
from .ir_values import (
    Constant,
    Parameter,
    Register,
    ResultValue,
    SourceValue,
    SpecialRegisterValue,
    Temporary,
    Value,
    operand_text,
)
from .program import CompiledBlock, Program

_WIDTH = 80


def listing(program: Program) -> str:
    """Return the IR of every block, one operation a line."""
    return "\n\n".join("\n".join(_block(block)) for block in program.blocks)


def _block(block: CompiledBlock) -> list[str]:
    lowered = block.lowered
    ways = (
        f"block {n}" if n != EXIT else "nowhere" for n in dict.fromkeys(successors(block.block))
    )
    lines = [f"block {block.number}, then {' or '.join(ways) or 'nowhere'}", "  PTX  line  step"]
    if lowered.gate:
        members = lowered.gate.members
        whose = "warpgroup" if lowered.gate.group else "warp"
        text = f"lanes {_source(members)}" if members else f"lanes of the {whose}"
        lines.append(_line(block.block.instructions[0], "wait", text))
    for step in lowered.steps:
        word = (
            "warp"
            if isinstance(step, WarpCompute)
            else type(step).__name__.removesuffix("Op").lower()
        )
        lines.append(_line(step.instruction, word, _operands(step)))
    if lowered.end:
        lines.append(_line(lowered.end.instruction, lowered.end.how, _operands(lowered.end)))
    return lines


def _line(ins: Instruction, word: str, text: str) -> str:
    line = ins.location.user.line if ins.location else ""
    full = f"{ins.line:5}{line:>6}  {word:8} {text}".rstrip()
    return full if len(full) <= _WIDTH else f"{full[: _WIDTH - 3]}..."


def _operands(step: IrOp) -> str:
    sources = ", ".join(map(_source, step.sources))
    match step:
        case MemoryOp(site=site, base=base):
            offset = f"{site.offset:+}" if site.offset else ""
            where = f"[{_value(base.value)}{offset}]"
            vector = f".v{site.count}" if site.count > 1 else ""
            text = f"{site.access}_{site.number} {site.space}{vector}.{site.type} {where}"
            text = f"{text}, {sources}" if sources else text
        case Compute():
            text = f"{step.instruction.name} {sources}"
        case FenceOp(reach=reach):
            text = f"of the {('block', 'cluster', 'device')[reach]}"
        case BarrierOp(reduction=(how, number)):
            text = f"{sources}: {how} in r{number}"
        case Terminator(how="call", call_entry=entry):
            text = f"block {entry}"
        case _:
            text = sources
    targets = ", ".join(map(_target, step.targets))
    guard = f"@{_source(step.guard)} " if step.guard else ""
    return f"{guard}{targets} = {text}" if targets else f"{guard}{text}"


def _source(source: SourceValue) -> str:
    if isinstance(source.value, Constant):
        return _value(source.value)
    sign = "!" if source.negated else ""
    return f"{sign}{_value(source.value)}{_as(source.value.carrier, source.type)}"


def _target(target: ResultValue | None) -> str:
    if target is None:
        return "_"
    return f"{_value(target.register)}{_as(target.register.carrier, target.type)}"


def _as(carrier: str, type: str) -> str:
    """Return the type, if it differs from the register's."""
    return "" if DTYPES[carrier] == DTYPES[type] else f":{type}"


def _value(value: Value) -> str:
    match value:
        case Register(number=number):
            return f"r{number}"
        case Temporary(number=number):
            return f"v{number}"
        case SpecialRegisterValue(name=name):
            return name
        case Parameter(offset=offset):
            return f"parameter[{offset}]"
        case Constant(operand=Symbol(name=name, offset=offset)):
            return plain_name(variable_name(name)) + (f"{offset:+}" if offset else "")
        case Constant(operand=Imm() as operand):
            return operand_text(operand)
    return str(value.value)
