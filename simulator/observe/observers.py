"""The observers of a launch: counters, the enabled checks, and the trace.

Two checks consist of a single event each and are defined here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from typing import cast

from kernels.errors import LaunchError

from ..analysis.influence import ForwardSlices
from ..analysis.pointer_bases import Bases
from ..analysis.taint import DataDependentVerdicts
from ..core.geometry import WARP
from ..events import BarrierDivergence, Dispatcher, Observer
from ..execute.batches import batch_size
from ..execute.prepare import PreparedLaunch
from ..hazards.findings import Findings
from ..hazards.kinds import CHECKS
from ..hazards.races.races import RaceHazards
from ..hazards.sources import Sources
from ..hazards.traps import compiler_inserted_reason
from ..hazards.wording.array_shapes import Shapes
from ..hazards.wording.naming import variable_at
from ..hazards.wording.race_places import RacePlaces
from ..memory.event import BadAccess
from ..memory.site import Granules
from ..memory.storage.spaces import Allocation
from ..races.accesses import PrecisionPlan
from ..races.check import exited_blocks
from ..races.check.barrier_intervals import Memo
from ..races.check.detector import RaceCheck
from ..races.check.syscall_accesses import CallCheck, called_sites
from ..races.check.uninitialised_shared import Report
from ..races.in_flight.async_copies import AsyncCopyCheck
from ..races.in_flight.bulk_stores import BulkStoreCheck, sends
from ..races.in_flight.proxy_fences import ProxyCheck
from ..races.report.pairs import MAX_PAIRS
from ..races.report.program_order import ProgramOrder
from ..races.report.race_log import RaceLog
from ..races.representative.block_projection import may_be_alike
from ..races.representative.representative_check import RepresentativeBlockCheck
from .checks.array_footprint import TouchRecorder
from .checks.printed_output import PrintCollector
from .checks.read_only_path import ReadOnlyPathCheck
from .checks.uninitialised import ConstantCheck, GlobalCheck, LocalCheck, ShuffleCheck
from .checks.wgmma_registers import ProductCheck
from .counters.totals import InstructionCounter, RaceWorkCounter, WorkCounter
from .counters.traffic_counter import TrafficCounter
from .trace.trace import Trace


class MemoryCheck(Observer):
    """Check of invalid accesses: out of bounds, misaligned, wrong address space, read-only."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def bad_access(self, bad: BadAccess) -> None:
        """See ``Observer``."""
        self.findings.memory(*bad[:-1])


_ALL = 1 << 20
"""Pairs of threads of one race that are kept where ``idle_reads`` goes through them."""


class BarrierCheck(Observer):
    """Check of barriers that the threads of a block do not reach together."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def barrier_divergence(self, divergence: BarrierDivergence) -> None:
        """See ``Observer``."""
        self.findings.control.barrier_divergence(divergence)


class Observers:
    """The observers of one attempt at a launch, or of some of its batches.

    ``precision``: precision of the race checks. ``first``: a further observer, which is called and
    merged first.

    Attributes:
        dispatcher: The observers' callbacks, by event.
        idle_reads: Whether races were dropped because nothing uses the values read.
        uninitialised: Numbers of the ``sites`` that read uninitialised memory, used or not.
        padding: Arrays whose undefined bytes count as padding although their type is unknown.
        one_order: Why locks, tickets and counters were checked in the order of one run only; empty
            if they were not.
    """

    def __init__(
        self, launch: PreparedLaunch, checks: Collection[str], trace: Trace | None,
        allocations: dict[int, Allocation], precision: PrecisionPlan, first: Observer | None = None,
    ) -> None:  # fmt: skip
        program, layout, granules = launch.program, launch.program.layout, launch.granules
        steering = program.analysis(ForwardSlices)
        self.idle_reads = False
        self.uninitialised: Collection[int] = ()
        self.padding = set[str]()
        self.one_order = ""
        self.sites, self.blocks = program.sites, program.blocks
        self.sources = sources = Sources(launch.kernel.source_text)
        self.traffic = TrafficCounter(len(program.sites), program.memo("patterns", launch.block))
        self.ran = InstructionCounter(len(program.blocks), len(program.arithmetic))
        order = functools.partial(program.analysis, ProgramOrder)
        calls = called_sites(program.blocks, len(program.sites), granules.array)
        sites = [*program.sites, *calls]
        adapter = launch.kernel.adapter
        max_pairs = (
            _ALL if adapter and adapter.repeats else MAX_PAIRS
        )  # whose readers are all asked about
        race_log = RaceLog(sites, order, functools.partial(variable_at, layout), max_pairs)
        shapes = functools.partial(Shapes, launch)
        places = RacePlaces(layout, shapes, granules)
        races = RaceHazards(race_log, sources, steering, places, launch.kernel.scratch)
        own = functools.partial(compiler_inserted_reason, launch.kernel)
        functions = program.module.functions
        self.findings = findings = Findings(sources, layout, functions, races, own, shapes)
        self.trace, self.output = trace, PrintCollector()
        warps = -(-math.prod(launch.block) // WARP) * math.prod(launch.cluster)
        self.work = (RaceWorkCounter if "races" in checks else WorkCounter)(
            warps * batch_size(launch)
        )
        counters = [self.traffic, self.ran] if launch.counted else []
        first_of_all = [first] if first else []
        all_of_them: list[Observer] = [*first_of_all, *counters, self.work, self.output, findings]
        if "memory" in checks:
            all_of_them.append(MemoryCheck(findings))
        if "barriers" in checks:
            all_of_them.append(BarrierCheck(findings))
        if {"races", "uninitialised"} & set(checks):
            asked = tuple(sorted(checks))
            memo = program.memo("intervals", launch.block, launch.shared_space, asked)
            make = functools.partial(
                _race_checks, launch, granules, steering, precision, asked, memo, findings.exited
            )
            uninitialised = functools.partial(findings.uninitialised, "shared")
            race_check, *others = make(race_log, uninitialised)
            race_check = cast(RaceCheck, race_check)
            if "races" in checks and may_be_alike(steering, precision, launch.clustered):
                all_of_them.append(RepresentativeBlockCheck(make, race_log, [race_check, *others]))
            else:
                all_of_them += [race_check]
                if calls:
                    all_of_them.append(CallCheck(calls, race_check))
                all_of_them += others
        if "races" in checks and program.flights:
            all_of_them.append(ProductCheck(program.flights, program.blocks, findings))
        self.read_only = ReadOnlyPathCheck(
            findings, program.sites, granules.array, math.prod((*launch.grid, *launch.block)),
            launch.pointers,
            Bases(program, launch.pointers.arrays) if launch.pointers.arrays else None, precision,
        )  # fmt: skip
        if "races" in checks and not self.read_only.idle:
            all_of_them.append(self.read_only)
        self.shuffles = ShuffleCheck(findings)
        if "uninitialised" in checks:
            all_of_them.append(self.shuffles)
            if layout.local_bytes:
                all_of_them.append(LocalCheck(findings, granules.local, layout.local_bytes))
            if any(allocation.unfilled for allocation in allocations.values()):
                all_of_them.append(ConstantCheck(findings))
            if any(allocation.missing is not None for allocation in allocations.values()):
                all_of_them.append(GlobalCheck(findings))
        self.touches = TouchRecorder(granules.array, len(launch.arguments.arrays))
        if launch.followed:
            all_of_them.append(self.touches)
        if trace:
            trace.begin(
                launch.kernel, program, (launch.grid, launch.block), allocations,
                launch.arguments,
            )  # fmt: skip
            all_of_them.append(trace)
        self.observers = all_of_them
        self.dispatcher = Dispatcher(all_of_them)

    def merge(self, other: Observers) -> None:
        """Merge the observers of later batches.

        Raises:
            EscalateCheck: Together they cannot rule out a race.
        """
        for mine, theirs in zip(self.observers, other.observers, strict=True):
            mine.merge(theirs)

    def judged(self) -> DataDependentVerdicts:
        """Return the verdicts that depend on data.

        Equal writes, silent atomics, uninitialised values, string ends.
        """
        atomics = {site.number for site in self.sites if site.access == "atomic"}
        numbers = set(self.read_only.silent)
        for group in self.findings.races.race_log.groups.values():
            racing = group.sides[0] | group.sides[1]
            numbers |= racing & atomics if group.reads else racing
        uninitialised = [
            site.instruction for site in self.sites if site.number in self.uninitialised
        ]
        written = [site for site in self.sites if site.number in numbers]
        texts = [(self.blocks[n].block.instructions[-1], s) for n, s in self.output.read]
        return DataDependentVerdicts(written, uninitialised, self.shuffles.reads, texts)

    def end(self) -> None:
        """End the launch.

        Raises:
            EscalateCheck: A check needs another attempt.
        """
        for callback in self.dispatcher.end:
            callback()


def _race_checks(
    launch: PreparedLaunch, granules: Granules, steering: ForwardSlices, precision: PrecisionPlan,
    checks: Collection[str], memo: Memo, exited: exited_blocks.Report, race_log: RaceLog,
    uninitialised: Report,
) -> list[Observer]:  # fmt: skip
    """Return the checks for races and uninitialised shared memory, ``RaceCheck`` first."""
    sites, races, shared = launch.program.sites, "races" in checks, launch.shared_space
    race_check = RaceCheck(
        precision, granules, shared, race_log, steering, uninitialised, exited, races,
        "uninitialised" in checks, memo,
    )  # fmt: skip
    found: list[Observer] = [race_check]
    if races and any(site.asynchronous for site in sites):
        found.append(AsyncCopyCheck(race_log, granules.shared, race_check))
    if races and any(map(sends, sites)):
        found.append(BulkStoreCheck(race_log, granules.array, race_check))
    if races and any(s.asynchronous and s.access == "load" for s in sites):
        found.append(ProxyCheck(race_log, granules.shared, shared, race_check))
    return found


def chosen(checks: str | Collection[str]) -> frozenset[str]:
    """Return the checks that a caller of ``launch`` selects.

    Raises:
        LaunchError: There is no such check.
    """
    if checks == "all":
        return frozenset(CHECKS)
    if checks == "none":
        return frozenset()
    wanted = frozenset({checks} if isinstance(checks, str) else checks)
    unknown = wanted - set(CHECKS)
    if unknown:
        raise LaunchError(f"unknown check {sorted(unknown)[0]!r}; there are: {', '.join(CHECKS)}")
    return wanted
