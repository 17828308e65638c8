"""Barriers without which nothing goes wrong, and a launch without them."""

from __future__ import annotations

import dataclasses
import math

from kernels.ptx.module import Instruction

from ...compile.compiler import compile_ptx
from ...execute.prepare import PreparedLaunch
from ...fixes import barriers_of, without_barriers
from ...isa import Flow
from ...isa.decoded import roles
from ...observe.observers import chosen
from ...rerun.driver import suspicious
from ..model_input import PredictionCase
from .change import Change

_STEPS = 3000
"""Basic blocks that a block may run for its barriers to be judged."""
_LEAST = 0.05
"""Share of the time without the launch's that all barriers have to take before they are judged."""


def barriers(case: PredictionCase) -> Change | None:
    """Barriers that order nothing, in some blocks."""
    launch = case.launch
    if not case.work.barriers or launch.cooperative or math.prod(launch.cluster) > 1:
        return None
    every = [
        ins
        for block in launch.program.blocks
        for ins in block.block.instructions
        if roles(ins).flow is Flow.BARRIER
    ]
    steps = sum(case.observed.sample.path.rounds.values()) / len(case.observed.sample.blocks)
    saved = case.took.total - _without(case, every).took.total
    if steps > _STEPS or saved < _LEAST * case.own:
        return None
    idle = _idle(launch)
    found = [ins for ins in every if ins.line in idle]
    if not found:
        return None
    mended = _without(case, found)
    ran = case.observed.sample.ran.warps
    number = {ins.line: b.number for b in launch.program.blocks for ins in b.block.instructions}
    first = max(found, key=lambda ins: ran[number[ins.line]])
    count = f"{case.work.barriers - mended.work.barriers:,.0f}"
    fields = {"which": f"{count} barriers a block that order", "them": "them"}
    if count == "1":
        fields = {"which": "1 barrier a block that orders", "them": "it"}
    return Change(mended, first, fields)


def _without(case: PredictionCase, some: list[Instruction]) -> PredictionCase:
    lines = {ins.line for ins in some}
    mended = case.without(lambda i: i.pipe == "barrier" and i.line in lines)
    there = case.work.issued.get("barrier", 0.0)
    share = mended.work.issued.get("barrier", 0.0) / there if there else 1.0
    work = dataclasses.replace(mended.work, barriers=case.work.barriers * share)
    return dataclasses.replace(mended, work=work)


def _some(blocks: int) -> list[int]:
    """The first block, the last, and some between: what they do may hang on their number."""
    return sorted({0, 1 % blocks, 2 % blocks, blocks // 3, blocks // 2, blocks - 1})


def _idle(launch: PreparedLaunch) -> set[int]:
    """PTX lines of the barriers without which some blocks leave nothing to suspect.

    None if these do so as it is: that is for the launch to judge, which looks closely.
    """
    small = dataclasses.replace(launch, step_limit=4 * _STEPS, schedule="lockstep", counted=False)
    blocks = _some(math.prod(launch.grid))
    checks = chosen("all")

    def needed(lines: list[int]) -> bool:
        kernel = without_barriers(launch.kernel, lines)
        program = launch.program
        edited = compile_ptx(
            kernel.ptx, kernel.entry, program.arch, program.stack, program.first_variable
        )
        return suspicious(dataclasses.replace(small, kernel=kernel, program=edited), checks, blocks)

    if suspicious(small, checks, blocks):
        return set()
    copies = [
        [ins.line for ins in some]
        for some in barriers_of(launch.kernel)
        if roles(some[0]).flow is Flow.BARRIER
    ]
    return {line for lines in copies if not needed(lines) for line in lines}
