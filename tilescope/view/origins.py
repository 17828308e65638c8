"""Data flow from an instruction's operands to its results, as the page follows it."""

from typing import Any

from kernels.ptx.module import Imm, Vector
from simulator.analysis.lane_dependence import Parts, parts
from simulator.compile.ir import Move, WarpCompute
from simulator.compile.ir_values import Constant
from simulator.compile.probes import Watched
from simulator.compile.program import Program
from simulator.isa.decoded import roles

from .pool import Pool


def origins(program: Program, item: Watched, pool: Pool) -> dict[str, Any]:
    """Return the data flow of an instruction whose results depend on other lanes or on parts.

    The result has at most one of these keys:

    - ``parts``: numbers in the pool of the ``Parts`` of the recorded results;
    - ``members``: the results depend on all lanes that the last recorded value names;
    - ``selects``: the result is one of two operands, chosen by a third;
    - ``ends``: the data flow is not followed.
    """
    step, ins = item.step, item.instruction
    row = roles(ins).row
    if item.what == "branch" and item.block in program.data.branches:
        return {"branch": True}
    if item.what != "value":
        return {}
    if step is None:
        return {} if row.build or _moves(program, item) else {"ends": True}
    made: dict[str, Any] = {}
    if all(step.op.outputs[result] == "pred" for result in item.results):
        made["predicate"] = True
    recorded = len(item.outputs) > len(item.results)  # the lanes that it names
    if row.shuffles:
        return made if recorded else made | {"ends": True}
    if isinstance(step, WarpCompute):
        if "members" in roles(ins).form.sources:
            return made | ({"members": True} if recorded else {"ends": True})
        if ins.has("sp") or any(word.startswith("sp::") for word in ins.modifiers):
            return made | {"ends": True}
    elif step.op.selects:
        return made | ({"selects": True} if recorded else {})
    elif not (row.scattered or _halves(item)):
        return made
    found = _parts(program, item).of(item.results)
    if not len(found.reads):
        return made
    return made | {"parts": [pool.add(found.reads), pool.add(found.starts), found.lanes]}


def _moves(program: Program, item: Watched) -> bool:
    """Return whether an instruction copies a parameter of a function."""
    return any(
        isinstance(step, Move) and step.instruction is item.instruction
        for step in program.blocks[item.block].lowered.steps
    )


def _halves(item: Watched) -> bool:
    """Return whether the data flow of a register's halves differs."""
    ins = item.instruction
    packed = any(kind.endswith("x2") for kind in ins.types)
    return packed or any(isinstance(operand, Vector) for operand in ins.operands)


def _parts(program: Program, item: Watched) -> Parts:
    """Return the ``Parts`` of an instruction, computed once for equal instructions."""
    ins, step = item.instruction, item.step
    assert step
    given = tuple(
        operand.value if isinstance(operand, Imm) else type(operand) for operand in ins.operands
    )
    fixed = {
        place: source.value.value
        for place, source in enumerate(step.sources)
        if isinstance(source.value, Constant)
    }
    key = ("parts", ins.name, given, step.op.inputs, step.op.outputs, tuple(fixed.items()))
    if key not in program.facts:
        program.facts[key] = parts(step.op, fixed)
    found = program.facts[key]
    assert isinstance(found, Parts)
    return found
