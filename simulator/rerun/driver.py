"""Driver of a launch: execute it until every observer has enough precision.

Mostly one attempt suffices. The launch is repeated from the start if races need full shadow memory
(``EscalateCheck``), if blocks wait for blocks of another batch (``InterBlockWait``), and, with V
bits, if it reads uninitialised memory.
"""

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernels.errors import SimulatorError
from kernels.ptx.module import Instruction

from ..analysis.influence import ForwardSlices
from ..analysis.shuffle_perturbation import used
from ..compile.compiler import compile_shadowed
from ..compile.program import CompiledBlock
from ..core.geometry import Flat, Mask, UndefinedValueSource
from ..events import Dispatcher, Observer, Stall
from ..execute.batches import InterBlockWait, Progress, batch_size, batches, run_batches
from ..execute.prepare import PreparedLaunch
from ..memory.definedness import DefinednessMemory
from ..memory.event import BadAccess
from ..memory.site import PHASE
from ..memory.storage.layout import HEAP
from ..memory.storage.spaces import Allocation
from ..native.eligibility import is_one_warp
from ..native.selection import NATIVE, NUMPY, ChangeEngine, EngineChoice, arrays_in_place
from ..observe.checks.undefined_uses import UntypedArray, UseFinder
from ..observe.observers import Observers
from ..observe.trace.trace import Trace
from ..races.accesses import SHARED, EscalateCheck, PrecisionPlan
from ..workers.conflict_detection import RetrySharded, SerialFallback
from ..workers.parallel_launch import WAITS, ParallelLaunch, Watch, why_alone
from ..workers.pool import cores
from .left_out_lanes import look_for_masks
from .other_orders import find_races_in_other_orders
from .root_causes import look_for_causes
from .unused_reads import drop_idle_reads

_Users = list[Instruction]
"""Instructions that use a value after it was kept in memory; none: they did at once."""
_FOLLOWED = 8
"""Runs that follow undefined bits, at most: a short one counts for less."""
_SHORT = 512
"""Work of a run (``UseFinder``) that counts for a whole one; 64 KiB of arrays are a unit, too."""
_LEAST = 1 / 8
"""What the shortest run counts for."""


@dataclass(frozen=True)
class LaunchOutcome:
    """Outcome of the final attempt: its observers, and global memory.

    Attributes:
        workers: Number of processes that shared it.
        alone: Why it was one process, if more were requested.
        engine: Engine that executed it.
        engine_note: Why it was not the native one.
    """

    observers: Observers
    allocations: dict[int, Allocation]
    workers: int = 1
    alone: str = ""
    engine: str = NUMPY
    engine_note: str = ""


def run_to_verdict(
    launch: PreparedLaunch, checks: Collection[str], trace: Trace | None, progress: Progress | None,
    parts: int = 1, workers: int | str = 1, engine: str = NUMPY,
) -> LaunchOutcome:  # fmt: skip
    """Execute a launch until its observers have enough precision.

    ``trace``: records the final attempt. ``parts``: sets of observers that share the batches and
    are merged. ``workers``: number of processes; ``all``: as many as there are cores, if that pays.
    ``engine``: see ``native.selection``.
    """
    shared = parts > 1 or (workers != "all" and count_of(workers) > 1)
    choice = EngineChoice(launch, checks, engine, trace, shared)
    if (done := choice.run_at_once(progress)) is not None:
        return _judged(launch, checks, LaunchOutcome(*done, engine=NATIVE))
    precision = _read_and_written(launch) if "races" in checks else {}
    together = launch.cooperative
    count = count_of(workers)
    alone = why_alone(launch, bool(trace)) if count > 1 else ""
    said = alone if workers != "all" else ""
    while True:
        crew = ParallelLaunch(launch, checks, precision, count, workers != "all", choice.watch)
        try:
            if count > 1 and not alone and not together:
                first, allocations = crew.run(progress)
            else:
                first, allocations = _run(
                    launch, checks, precision, together, trace, progress, parts, choice.watch
                )
        except ChangeEngine:
            choice.ended()
            if (done := choice.run_instead(progress)) is not None:
                return _judged(launch, checks, LaunchOutcome(*done, engine=NATIVE))
        except EscalateCheck as suspicion:
            precision[suspicion.number] = suspicion.places
        except RetrySharded:
            pass
        except InterBlockWait:
            together = True
            said = said or WAITS * (count > 1)
        except SerialFallback as why:
            alone = said = str(why)
            precision.clear()
        else:
            if crew.shared == 1:  # else this process's time is that of a part
                choice.ended()
            outcome = LaunchOutcome(
                first, allocations, crew.shared, said or crew.alone, engine_note=choice.note
            )
            return _judged(launch, checks, outcome, precision, together)


def count_of(workers: int | str) -> int:
    """Return how many processes may share a launch."""
    return cores() if workers == "all" else int(workers)


def _judged(
    launch: PreparedLaunch, checks: Collection[str], outcome: LaunchOutcome,
    precision: PrecisionPlan | None = None, together: bool = False,
) -> LaunchOutcome:  # fmt: skip
    """Decide what of the findings counts, by more runs where these are needed."""
    first, precision = outcome.observers, precision or {}
    _keep_used_reads(launch, first, together)
    _report_used_shuffles(launch, first, together)
    reads = launch.program.analysis(ForwardSlices).synchronising_reads if "races" in checks else ()
    if reads and not is_one_warp(launch):  # a schedule chooses among warps
        sites = launch.program.sites
        is_same_in_all = outcome.engine == NATIVE and not any(
            sites[n].access == "atomic" for n in reads
        )  # see docs/native.md
        find_races_in_other_orders(launch, first, precision, together, is_same_in_all)
    if launch.kernel.adapter and launch.kernel.adapter.repeats:
        drop_idle_reads(launch, first, together)
    if first.findings.found:
        look_for_causes(launch, first, checks, precision, together)
    if first.findings.control.has_left_out:
        look_for_masks(launch, first, checks, precision, together)
    return outcome


def _read_and_written(launch: PreparedLaunch) -> PrecisionPlan:
    """Return the precision plan that the first attempt would request anyway.

    It covers arrays that are read and written, and shared memory if mbarriers order accesses.
    """
    phases = any(site.operation == PHASE for site in launch.program.sites)
    arrays = arrays_in_place(launch)
    return dict.fromkeys([*arrays, *[SHARED] * phases], False)


def suspicious(launch: PreparedLaunch, checks: Collection[str], blocks: Sequence[int]) -> bool:
    """Whether one cheap check of some blocks reports anything or requests more precision."""
    allocations = launch.allocations()
    observers = Observers(launch, checks, None, allocations, {})
    try:
        run_batches(launch, allocations, observers.dispatcher, [np.array(blocks)])
        observers.end()
    except (EscalateCheck, InterBlockWait, SimulatorError):
        return True
    return bool(observers.findings.hazards())


def _run(
    launch: PreparedLaunch, checks: Collection[str], precision: PrecisionPlan, together: bool,
    trace: Trace | None, progress: Progress | None, parts: int, watch: Watch,
) -> tuple[Observers, dict[int, Allocation]]:  # fmt: skip
    """Execute one attempt in one process; return the observers and the final global memory.

    ``watch``: called with each set's dispatcher.
    """
    allocations, observer_sets = launch.allocations(), list[Observers]()
    for share in _shares(launch, together, 1 if together else parts):
        recorder = Trace(trace.wanted, trace.max_bytes) if trace and observer_sets else trace
        observer_sets.append(Observers(launch, checks, recorder, allocations, precision))
        watch(observer_sets[-1].dispatcher)
        run_batches(launch, allocations, observer_sets[-1].dispatcher, share, together, progress)
    first, *others = observer_sets
    for other in others:
        first.merge(other)
    first.end()
    return first, allocations


def _shares(launch: PreparedLaunch, together: bool, parts: int) -> Iterator[Iterator[Flat]]:
    """Split batches into ``parts``, lazily, as far as there are enough."""
    clusters = math.prod(launch.grid) // math.prod(launch.cluster)
    count = -(-clusters // batch_size(launch, together))
    each = -(-count // parts)
    todo = batches(launch, together)
    for _ in range(0, count, each):
        yield itertools.islice(todo, each)


def _keep_used_reads(launch: PreparedLaunch, observers: Observers, together: bool) -> None:
    """Drop uninitialised reads whose values are not used.

    Compilers copy whole structures with padding and uninitialised members, or set a bit field in an
    uninitialised word. A read counts if its value controls a branch, an address or a barrier, or
    reaches a result. This is determined by runs with V bits.
    """
    sites, reads = launch.program.sites, observers.findings.uninitialised_read_sites()
    observers.uninitialised = reads
    users_by_site: dict[int, _Users] = {
        n: [] for n in reads if sites[n].is_image
    }  # fetches use texels
    reads = [n for n in reads if n not in users_by_site]
    if not reads:
        return
    kernel, old = launch.kernel, launch.program
    shadowed = compile_shadowed(kernel.ptx, kernel.entry, old)
    launch = dataclasses.replace(launch, program=shadowed)
    budget: float = _FOLLOWED
    untyped = set[int]()
    undefined: dict[int, Flat] = {}

    def uses(sites: list[int]) -> _Users | None:
        """Return the instructions that use the values which some sites read."""
        nonlocal budget
        allocations = launch.allocations()
        layout = launch.program.layout
        memory = DefinednessMemory(layout, allocations, launch.shared_space, sites, untyped)
        finder = UseFinder(launch.program, memory)
        todo = batches(launch, together)
        run_batches(launch, allocations, Dispatcher([finder]), todo, together, undefined=memory)
        try:
            users = finder.uses(launch, undefined)
        except UntypedArray as array:
            untyped.add(array.number)
            return uses(sites)
        observers.padding |= finder.assumed
        arrays = sum(allocation.nbytes for allocation in allocations.values())
        budget -= min(1, max(_LEAST, (finder.work + (arrays >> 16)) / _SHORT))
        return (users if memory.returned else []) if users else None

    def each(sites: list[int], users: _Users) -> dict[int, _Users]:
        """Return those of some sites whose values are used."""
        if len(sites) == 1 or budget < 2:
            return dict.fromkeys(sites, users)
        half = len(sites) // 2
        found: dict[int, _Users] = {}
        for some in (sites[:half], sites[half:]):
            mine = uses(some)
            if mine is not None:
                found |= each(some, mine)
        return found or dict.fromkeys(*without_idle(sites, users))

    def without_idle(sites: list[int], users: _Users) -> tuple[list[int], _Users]:
        """Return sites whose values are used only together, although neither half's are.

        In an array of unknown type, bits count as padding if they are undefined everywhere.
        """
        for site in sites if budget >= 2 else ():
            rest = [other for other in sites if other != site]
            mine = uses(rest)
            if mine is not None:
                sites, users = rest, mine
        return sites, users

    users = uses(reads)
    observers.findings.keep_used(users_by_site | ({} if users is None else each(reads, users)))


class _Ending(Observer):
    """Observable end of a run, besides array contents; and its cost."""

    def __init__(self) -> None:
        self.steps, self.faults, self.texts = 0, set[object](), list[str]()

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        self.steps += 1

    def printed(self, count: int, texts: Iterator[tuple[int, int, str]]) -> None:
        """See ``Observer``."""
        self.texts += [text for _, _, text in texts]

    def bad_access(self, bad: BadAccess) -> None:
        """See ``Observer``."""
        self.faults.add((bad.kind, bad.site.number))

    def event(self, name: str, block: CompiledBlock, lanes: Mask | None, text: str = "") -> None:
        """See ``Observer``."""
        self.faults.add((name, block.number))

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        self.faults.add(stall.why)


def _report_used_shuffles(launch: PreparedLaunch, observers: Observers, together: bool) -> None:
    """Report reads of inactive lanes that change the outcome, judged in one schedule."""
    findings = observers.findings
    wrong = findings.control.bad_masks()  # which says it all
    reads = {
        line: outputs for line, outputs in observers.shuffles.reads.items() if line not in wrong
    }
    if not reads:
        return
    launch = dataclasses.replace(launch, schedule="lockstep")

    def outcome(instead: UndefinedValueSource | None) -> object:
        """Return the observable outcome of a run."""
        nonlocal launch
        allocations, ending = launch.allocations(), _Ending()
        todo = batches(launch, together)
        try:
            run_batches(launch, allocations, Dispatcher([ending]), todo, together, instead=instead)
        except InterBlockWait:  # which they did not before
            return None
        if instead is None:  # others may loop for as long as a value says
            limit = min(launch.step_limit, 2 * ending.steps + 1000)
            launch = dataclasses.replace(launch, step_limit=limit)
        outputs = [a for n, a in allocations.items() if a.writable and n != HEAP]
        contents = [a.content().tobytes() for a in outputs]
        return contents, ending.faults, ending.texts

    lines = {line: blocks for line, (_, blocks, _) in reads.items()}
    for line, read in used(launch.program, lines, outcome).items():
        ins, blocks, count = reads[line]
        findings.shuffled(ins, read, blocks[read], count)
