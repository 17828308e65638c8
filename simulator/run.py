"""``Run``: what a launch did - counters, hazards, and both by source line."""

import functools
import importlib.metadata
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from kernels.errors import SimulatorError

from .analysis.taint import depends_on_data
from .compile.program import Program
from .execute.prepare import PreparedLaunch
from .hazards.hazard import Hazard, Source
from .hazards.kinds import CHECKS, EQUAL
from .isa.architectures import MEASURED
from .memory.site import Site
from .observe.counters.aggregate import SourcePlaces, collect
from .observe.counters.totals import Counters, Line
from .observe.counters.traffic_counter import COUNTED_SPACES
from .observe.observers import Observers
from .observe.trace.trace import Trace

SCHEMA = 1
"""Version of ``Run.to_dict``'s layout; it changes when a key changes its meaning."""
PAGES = "tilescope.page"
"""The group of entry points that name a page renderer."""
Renderer = Callable[["Run"], object]
"""Draws a run as a page."""


@dataclass(repr=False)
class Run:
    """The result of ``simulator.launch``.

    Attributes:
        kernel: The entry as the user wrote it; ``entry``: its PTX name.
        sha256: Of the PTX text that ran.
        grid: Blocks; ``block``: threads of a block; x first.
        shared_bytes: Shared memory of a block, static and dynamic.
        counters: Totals; zeros where ``counted`` is false.
        hazards: What was found, errors first; empty if nothing was.
        checked: Names of the checks that ran.
        seconds: Wall-clock time of the simulation.
        approximate: Whether an instruction ran whose bits PTX does not promise.
        find_dependence: Works out ``data_dependence``, which not every run is asked for.
        trace: Every step, if the launch was asked for it.
        notes: What the kernel did and this run does not show, a sentence each.
        warnings: What is likely a mistake in the arguments, a sentence each.
        output: What ``printf`` printed: block after block, thread after thread, under any
            schedule.
        arch: The architecture whose arithmetic tensor cores had, such as ``sm_90``; or nothing.
        cluster: Blocks of a cluster, x first; ones where there are none.
        counted: Whether anything was counted; ``workers``: how many processes shared the blocks.
        padding: Arrays in which bytes that no thread writes in any element were taken for padding,
            as nothing says which type the elements have.
        one_order: Why locks, tickets and counters were checked in the order of this run alone;
            empty if other orders were tried too, or the program has none.
        work, batch_steps: As ``WorkCounter`` has them: how long it took, the same everywhere;
            and a bound of the steps of a batch of blocks.
        engine: Which engine ran it, ``numpy`` or ``native``; ``engine_note``: why not the native
            one, where it was asked for or would have paid.
    """

    kernel: str
    entry: str
    build: str
    sha256: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    schedule: str
    counters: Counters
    lines: list[Line]
    hazards: list[Hazard]
    checked: tuple[str, ...]
    seconds: float
    approximate: bool
    find_dependence: Callable[[], Source | None] = field(repr=False)
    trace: Trace | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: str = ""
    arch: str = ""
    cluster: tuple[int, int, int] = (1, 1, 1)
    counted: bool = True
    workers: int = 1
    padding: tuple[str, ...] = ()
    one_order: str = ""
    work: int = 0
    batch_steps: int = 0
    engine: str = "numpy"
    engine_note: str = ""

    def __repr__(self) -> str:
        """In one line what ran and what was found; all of it is in ``to_dict``."""
        what = f"<Run {self.kernel}, grid {self.grid}, block {self.block}"
        if not self.checked:
            return f"{what}: not checked>"
        return f"{what}: {len(self.hazards)} hazard{'s' * (len(self.hazards) != 1)}>"

    @functools.cached_property
    def data_dependence(self) -> Source | None:
        """The line that makes addresses, branches or barriers depend on what an array holds."""
        return self.find_dependence()

    @property
    def holds_for_all_data(self) -> bool:
        """Whether the findings hold for every content of the arrays at this launch shape."""
        return self.data_dependence is None

    def by_line(self) -> list[Line]:
        """Counters per source line, in the order of the source."""
        return self.lines

    def show(self) -> Any:
        """The run as a page, drawn inline in Jupyter; its ``save(file)`` writes it.

        Raises:
            NoTrace: The launch was not asked for a trace.
            SimulatorError: No page renderer is registered or installed.
        """
        return _page_renderer()(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; ``schema`` says which layout."""
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "entry": self.entry,
            "build": self.build,
            "sha256": self.sha256,
            "grid": list(self.grid),
            "block": list(self.block),
            "cluster": list(self.cluster),
            "shared_bytes": self.shared_bytes,
            "schedule": self.schedule,
            "checks": list(self.checked),
            "seconds": self.seconds,
            "approximate": self.approximate,
            "arch": self.arch or None,
            "holds_for_all_data": self.holds_for_all_data,
            "data_dependence": str(self.data_dependence) if self.data_dependence else None,
            "notes": list(self.notes),
            "padding_assumed": list(self.padding),
            "one_order": self.one_order or None,
            "output": self.output,
            "argument_warnings": list(self.warnings),
            "counters": self.counters.to_dict() if self.counted else None,
            "lines": [line.to_dict() for line in self.lines],
            "hazards": [hazard.to_dict() for hazard in self.hazards],
        }


_renderers: list[Renderer] = []
"""The registered page renderer, if there is one."""


def set_page_renderer(render: Renderer) -> None:
    """Register the function that ``Run.show`` calls; ``tilescope.view`` does on import."""
    _renderers[:] = [render]


def _page_renderer() -> Renderer:
    """Return the registered page renderer, or else load the installed one.

    Raises:
        SimulatorError: There is none.
    """
    if not _renderers:
        for point in importlib.metadata.entry_points(group=PAGES):
            set_page_renderer(point.load())
    if not _renderers:
        raise SimulatorError(
            "no page renderer is installed: import tilescope.view, then call show() again"
        )
    return _renderers[0]


def report(launch: PreparedLaunch, seen: Observers, checks: Collection[str], began: float) -> Run:
    """What the observers of a launch saw that began at a time."""
    kernel, program, sources = launch.kernel, launch.program, seen.sources
    counters, lines = collect(program.analysis(_places), seen.ran, seen.traffic, sources)
    hazards, own = _without_libraries(seen.findings.hazards())
    own += kernel.notes + (kernel.adapter.notes if kernel.adapter else ())
    return Run(
        kernel.name, kernel.entry, kernel.build, kernel.sha256, launch.grid, launch.block,
        launch.shared_bytes, str(launch.schedule), counters, lines, hazards,
        tuple(check for check in CHECKS if check in checks),
        time.perf_counter() - began, program.approximate,
        functools.partial(_dependence, launch, seen), seen.trace,
        _notes(program, seen) + own, tuple(launch.arguments.warnings), seen.output.text(),
        f"sm_{program.arch}" if program.by_arch else "", launch.cluster, launch.counted,
        padding=tuple(sorted(seen.padding)), one_order=seen.one_order,
        work=seen.work.work, batch_steps=seen.work.most,
    )  # fmt: skip


def _places(program: Program) -> SourcePlaces:
    return SourcePlaces(program.blocks, program.arithmetic, program.sites)


def _without_libraries(hazards: list[Hazard]) -> tuple[list[Hazard], tuple[str, ...]]:
    """Hazards but for those that compilers and libraries make by themselves, and notes of these.

    Triton's reductions, say, leave a warp's result from each of its lanes, in the one array of
    shared memory, which is always called ``global_smem``. Where tiles of several warps meet,
    cooperative_groups tells by a shuffle that another lane has waited: NVIDIA's hardware keeps
    that order, though PTX does not promise it.
    """
    notes = list[str]()
    for ours, note in (
        (_by_triton, "Triton's own stores of the same value by several threads are no hazard"),
        (_by_groups, "cooperative_groups' own use of a tile's memory is not judged"),
    ):
        kept = [hazard for hazard in hazards if not ours(hazard)]
        notes += [note] * (len(kept) < len(hazards))
        hazards = kept
    return hazards, tuple(notes)


def _by_triton(hazard: Hazard) -> bool:
    return (hazard.case, hazard.space, hazard.variable) == (EQUAL, "shared", "global_smem")


def _by_groups(hazard: Hazard) -> bool:
    """A race of shared memory within the headers, but for copies: these are of the user's data."""
    files = [part.inside.file if part.inside else "" for part in hazard.involved]
    own = all("cooperative_groups" in f and not f.endswith(_COPIES) for f in files)
    return own and hazard.space == "shared" and bool(hazard.reach)


_COPIES = ("async.h", "memory.h")


def _notes(program: Program, seen: Observers) -> tuple[str, ...]:
    """What a run does not show or cannot promise."""
    notes = seen.output.notes()
    if program.by_arch and program.arch not in MEASURED:
        notes += (f"tensor cores as those of sm_{program.arch}: a model, not measured",)
    if program.flights and program.module.unoptimised:
        notes += ("wgmma: this build keeps its registers in memory: who touches them too soon, or "
                  "with no fence, is told by the device build alone",)  # fmt: skip
    if seen.idle_reads:
        notes += ("what several threads load for one to use is no race with those that do not",)
    return notes


def _dependence(launch: PreparedLaunch, seen: Observers) -> Source | None:
    def spaces(site: Site) -> set[str]:
        """The address spaces that a site reached; any it might, where nobody counted."""
        if launch.counted:
            return set(seen.traffic.traffic(site))
        return {site.space} if site.space != "generic" else set(COUNTED_SPACES)

    steered = depends_on_data(launch.program, spaces, seen.judged())
    return seen.sources.of(steered) if steered else None
