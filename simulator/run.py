"""``Run``: the result of a launch, with counters and hazards by source line."""

import functools
import importlib.metadata
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernels.errors import SimulatorError

from .analysis.taint import DataDependentVerdicts, depends_on_data
from .compile.program import Program
from .core.html_table import html_table
from .execute.prepare import PreparedLaunch
from .hazards.hazard import Hazard, Source
from .hazards.hazard_list import HazardList
from .hazards.kinds import CHECKS, EQUAL
from .hazards.races.certainty import with_certainty
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
    """Result of ``simulator.launch``.

    Attributes:
        kernel: The entry as the user wrote it.
        entry: The entry's (mangled) name in the PTX.
        sha256: SHA-256 of the PTX text that was executed, in hex.
        grid: Grid extents in blocks, x first.
        block: Block extents in threads, x first.
        shared_bytes: Shared memory of a block in bytes, static and dynamic.
        counters: Totals of the launch; zeros if ``counted`` is false.
        hazards: Findings, errors first.
        checked: Names of the checks that were enabled.
        seconds: Wall-clock time of the simulation.
        approximate: Whether an instruction was executed whose result bits PTX does not specify.
        find_dependence: Function that computes ``data_dependence`` on demand.
        trace: Every recorded step, if a trace was requested.
        notes: Effects of the kernel that this run does not show, a sentence each.
        warnings: Likely mistakes in the arguments, a sentence each.
        output: Text printed by ``printf``, ordered by block and thread under every schedule.
        arch: Architecture of the tensor-core arithmetic, such as ``sm_90``; empty if none was used.
        cluster: Cluster extents in blocks, x first; ones without clusters.
        counted: Whether counters were collected.
        workers: Number of processes that shared the blocks.
        padding: Arrays of unknown element type in which bytes that no thread writes in any element
            were treated as padding.
        one_order: Why races on locks, tickets and counters were checked in this run's order only;
            empty if other orders were tried or the program has none.
        inactive_reads: Source lines whose shuffles read lanes that do not run, used or not, if
            uninitialised reads were checked.
        work: Machine-independent cost of the simulation (``WorkCounter``).
        batch_steps: Upper bound of the basic blocks that one batch executed.
        engine: Engine that executed the launch, ``numpy`` or ``native``.
        engine_note: Why it was not the native one, where that was requested or would have paid.
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
    inactive_reads: tuple[Source, ...] = ()
    work: int = 0
    batch_steps: int = 0
    engine: str = "numpy"
    engine_note: str = ""

    def __post_init__(self) -> None:
        self.hazards = HazardList(self.hazards)

    def _repr_html_(self) -> str:
        """Return tables of the hazards and counters for Jupyter."""
        about = html_table(("kernel", "grid", "block", "build", "checked"), [(
            self.kernel, self.grid, self.block, self.build, ", ".join(self.checked) or "no",
        )])  # fmt: skip
        found = (
            HazardList(self.hazards)._repr_html_()
            if self.checked
            else "<p>hazards: not checked</p>"
        )
        counted = self.counters._repr_html_() if self.counted else "<p>counters: not counted</p>"
        return "\n".join([about, found, counted])

    def __repr__(self) -> str:
        """Return a one-line summary; ``to_dict`` has everything."""
        what = f"<Run {self.kernel}, grid {self.grid}, block {self.block}"
        if not self.checked:
            return f"{what}: not checked>"
        return f"{what}: {len(self.hazards)} hazard{'s' * (len(self.hazards) != 1)}>"

    @functools.cached_property
    def data_dependence(self) -> Source | None:
        """Source line by which addresses, branches or barriers depend on array contents, if any."""
        return self.find_dependence()

    @property
    def holds_for_all_data(self) -> bool:
        """Whether the findings hold for all array contents at this launch shape."""
        return self.data_dependence is None

    def by_line(self) -> list[Line]:
        """Return the counters of each source line, in source order."""
        return self.lines

    def show(self) -> Any:
        """Return the run as an HTML page, which Jupyter draws inline; its ``save(file)`` writes it.

        Raises:
            NoTrace: The launch did not record a trace.
            SimulatorError: No page renderer is registered or installed.
        """
        return _page_renderer()(self)

    def to_dict(self, by_line: bool = True) -> dict[str, Any]:
        """Return the run as JSON-ready values; ``schema`` is the version of the layout.

        ``by_line``: whether ``lines`` has counters by line; else it is ``None``.
        """
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
            "lines": [line.to_dict() for line in self.lines] if by_line else None,
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


def report(
    launch: PreparedLaunch, observers: Observers, checks: Collection[str], began: float
) -> Run:
    """Build the ``Run`` from a launch's observers; ``began``: when the simulation started."""
    kernel, program, sources = launch.kernel, launch.program, observers.sources
    counters, lines = collect(program.analysis(_places), observers.ran, observers.traffic, sources)
    hazards, own = _without_libraries(observers.findings.hazards())
    steered = functools.partial(_dependence, launch, observers, False)
    hazards = with_certainty(hazards, steered, observers.one_order)
    inactive_reads = tuple(sources.of(read[0]) for read in observers.shuffles.reads.values())
    own += _unused_reads(hazards, inactive_reads)
    own += kernel.notes + (kernel.adapter.notes if kernel.adapter else ())
    return Run(
        kernel.name, kernel.entry, kernel.build, kernel.sha256, launch.grid, launch.block,
        launch.shared_bytes, str(launch.schedule), counters, lines, hazards,
        tuple(check for check in CHECKS if check in checks),
        time.perf_counter() - began, program.approximate,
        functools.partial(_dependence, launch, observers, True), observers.trace,
        _notes(program, observers) + own, tuple(launch.arguments.warnings), observers.output.text(),
        f"sm_{program.arch}" if program.by_arch else "", launch.cluster, launch.counted,
        padding=tuple(sorted(observers.padding)), one_order=observers.one_order,
        inactive_reads=inactive_reads,
        work=observers.work.work, batch_steps=observers.work.max_batch_steps,
    )  # fmt: skip


def _places(program: Program) -> SourcePlaces:
    return SourcePlaces(program.blocks, program.arithmetic, program.sites)


def _without_libraries(hazards: list[Hazard]) -> tuple[list[Hazard], tuple[str, ...]]:
    """Drop hazards that compilers and libraries cause by design.

    Returns the other hazards, and notes on the dropped ones. Triton's reductions store a warp's
    result from every lane, always in the shared array ``global_smem``. Tiles of several warps in
    cooperative_groups learn by a shuffle that another lane has waited; NVIDIA hardware preserves
    that order, although PTX does not guarantee it.
    """
    notes = list[str]()
    for ours, note in (
        (_by_triton, "Triton's own stores of the same value by several threads are no hazard"),
        (_by_groups, "cooperative_groups' own use of a tile's memory is not judged"),
    ):
        reported = [hazard for hazard in hazards if not ours(hazard)]
        notes += [note] * (len(reported) < len(hazards))
        hazards = reported
    return hazards, tuple(notes)


def _by_triton(hazard: Hazard) -> bool:
    return (hazard.case, hazard.space, hazard.variable) == (EQUAL, "shared", "global_smem")


def _by_groups(hazard: Hazard) -> bool:
    """Whether a shared-memory race lies inside CUDA's headers.

    Copies are excluded, as they move user data.
    """
    files = [part.inside.file if part.inside else "" for part in hazard.involved]
    own = all("cooperative_groups" in f and not f.endswith(_COPIES) for f in files)
    return own and hazard.space == "shared" and bool(hazard.reach)


_COPIES = ("async.h", "memory.h")


def _notes(program: Program, observers: Observers) -> tuple[str, ...]:
    """Return sentences on what the run does not show or cannot guarantee."""
    notes = observers.output.notes()
    if program.by_arch and program.arch not in MEASURED:
        notes += (f"tensor cores as those of sm_{program.arch}: a model, not measured",)
    if program.flights and program.module.unoptimised:
        notes += ("wgmma: this build keeps its registers in memory: who touches them too soon, or "
                  "with no fence, is told by the device build alone",)  # fmt: skip
    if observers.idle_reads:
        notes += ("what several threads load for one to use is no race with those that do not",)
    return notes


def _unused_reads(hazards: Sequence[Hazard], reads: Sequence[Source]) -> tuple[str, ...]:
    """Return a note on shuffles that read inactive lanes without a hazard."""
    found = {source for hazard in hazards for source in hazard.sources}
    places = [str(source) for source in reads if source not in found]
    if not places:
        return ()
    return (f"shuffles read lanes that do not run, and no result depends on it: {places[0]}",)


def _dependence(launch: PreparedLaunch, observers: Observers, with_verdicts: bool) -> Source | None:
    """Return the source line that ``depends_on_data`` finds, if any.

    ``with_verdicts``: whether verdicts that values decide count, such as equal writes.
    """

    def spaces(site: Site) -> set[str]:
        """Return the address spaces that a site accessed; all it may, if nothing was counted."""
        if launch.counted:
            return set(observers.traffic.traffic(site))
        return {site.space} if site.space != "generic" else set(COUNTED_SPACES)

    judged = observers.judged() if with_verdicts else DataDependentVerdicts()
    if judged:
        steered = depends_on_data(launch.program, spaces, judged)
    else:  # a program that launches again and again: up to a third of a short launch's time
        accessed = tuple(tuple(sorted(spaces(site))) for site in launch.program.sites)
        known = launch.program.memo("steered", accessed)
        if not known:
            known["by"] = depends_on_data(launch.program, spaces)
        steered = known["by"]
    return observers.sources.of(steered) if steered else None
