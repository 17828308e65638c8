"""Barriers without which nothing goes wrong, and a launch without them."""

from __future__ import annotations

import dataclasses
import math
import time

from kernels import Kernel
from kernels.errors import SimulatorError
from kernels.ptx.module import Instruction

from ..attempts import run_until_seen
from ..compile.compiler import compile_ptx
from ..cures import BarrierVerdict, judge_barriers
from ..execute.prepare import Prepared
from ..hazards.sources import Sources
from ..isa import Flow
from ..isa.roles import roles
from ..observe.observers import chosen
from ..run import Run, report
from .case import Case
from .change import Change

_STEPS = 3000
"""Basic blocks that a block may run for its barriers to be judged."""
_LEAST = 0.05
"""Share of the time without the launch's that all barriers have to take before they are judged."""


def barriers(case: Case) -> Change | None:
    """Barriers that order nothing, in one block."""
    launch = case.launch
    if not case.work.barriers or launch.cooperative or math.prod(launch.cluster) > 1:
        return None
    every = [
        ins
        for block in launch.program.blocks
        for ins in block.block.instructions
        if roles(ins).flow is Flow.BARRIER
    ]
    steps = sum(case.seen.sample.path.rounds.values()) / len(case.seen.sample.blocks)
    saved = case.took.total - _without(case, every).took.total
    if steps > _STEPS or saved < _LEAST * case.own:
        return None
    idle = {(v.source.file, v.source.line) for v in _judged(launch) if not v.needed}
    sources = Sources(launch.kernel.source_text)
    found = [ins for ins in every if (sources.of(ins).file, sources.of(ins).line) in idle]
    if not found:
        return None
    mended = _without(case, found)
    more = (case.work.barriers - mended.work.barriers) / case.shape.warps
    return Change(mended, found[0], {"count": more})


def _without(case: Case, some: list[Instruction]) -> Case:
    lines = {ins.line for ins in some}
    mended = case.without(lambda i: i.pipe == "barrier" and i.line in lines)
    there = case.work.issued.get("barrier", 0.0)
    share = mended.work.issued.get("barrier", 0.0) / there if there else 1.0
    work = dataclasses.replace(mended.work, barriers=case.work.barriers * share)
    return dataclasses.replace(mended, work=work)


def _judged(launch: Prepared) -> list[BarrierVerdict]:
    """What each barrier is there for, in one block; nothing if that runs for long."""
    small = dataclasses.replace(
        launch, grid=(1, 1, 1), step_limit=4 * _STEPS, schedule="lockstep", counted=False
    )

    def rerun(kernel: Kernel) -> Run:
        program = launch.program
        edited = compile_ptx(kernel.ptx, kernel.entry, program.arch, program.stack)
        began, checks = time.perf_counter(), chosen("all")
        again = dataclasses.replace(small, kernel=kernel, program=edited)
        return report(again, run_until_seen(again, checks, None, None).observers, checks, began)

    try:
        return judge_barriers(launch.kernel, rerun(launch.kernel), rerun)
    except SimulatorError:
        return []
