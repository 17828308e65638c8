"""``Run``: what a launch did - counters, hazards, and both by source line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .hazards.hazard import Hazard, Source
from .observe.counters import Traffic
from .observe.trace import Trace

SCHEMA = 1
"""Version of ``Run.to_dict``'s layout; it changes when a key changes its meaning."""

_SPACES = ("global", "shared", "local", "const")
_OPERATIONS = ("load", "store", "atomic")
TRAFFIC = tuple(
    f"{space}_{operation}"
    for space in _SPACES
    for operation in _OPERATIONS
    if space != "const" or operation == "load"
)
"""Names of the memory counters: space and operation."""
ARITHMETIC = ("fma_f32", "add_f32", "mul_f32", "fma_f64", "add_f64", "mul_f64")
"""Names of the arithmetic counters, in thread instructions."""


@dataclass
class Counters:
    """Counts of a launch, or of one source line.

    Memory counters are ``Traffic``; ``fma_f32`` ... and ``flops`` count threads;
    ``thread_instructions`` are PTX instructions by thread, ``warp_instructions`` by warp.
    """

    global_load: Traffic = field(default_factory=Traffic)
    global_store: Traffic = field(default_factory=Traffic)
    global_atomic: Traffic = field(default_factory=Traffic)
    shared_load: Traffic = field(default_factory=Traffic)
    shared_store: Traffic = field(default_factory=Traffic)
    shared_atomic: Traffic = field(default_factory=Traffic)
    local_load: Traffic = field(default_factory=Traffic)
    local_store: Traffic = field(default_factory=Traffic)
    local_atomic: Traffic = field(default_factory=Traffic)
    const_load: Traffic = field(default_factory=Traffic)
    fma_f32: int = 0
    add_f32: int = 0
    mul_f32: int = 0
    fma_f64: int = 0
    add_f64: int = 0
    mul_f64: int = 0
    flops: int = 0
    thread_instructions: int = 0
    warp_instructions: int = 0
    divergent_branches: int = 0
    barriers: int = 0

    def _traffic(self, space: str) -> Traffic:
        total = Traffic()
        for operation in _OPERATIONS:
            total += getattr(self, f"{space}_{operation}")
        return total

    @property
    def global_bytes(self) -> int:
        """Bytes that threads asked of global memory: what a textbook counts."""
        return self._traffic("global").bytes

    @property
    def global_sector_bytes(self) -> int:
        """Bytes of the 32-byte sectors that global requests touch."""
        return self._traffic("global").sectors * 32

    @property
    def intensity(self) -> float | None:
        """FLOP per byte asked of global memory."""
        return self.flops / self.global_bytes if self.global_bytes else None

    @property
    def sector_intensity(self) -> float | None:
        """FLOP per byte of the sectors touched."""
        return self.flops / self.global_sector_bytes if self.global_sector_bytes else None

    @property
    def coalescing(self) -> float | None:
        """Distinct bytes asked for over bytes of sectors touched, loads and stores."""
        total = self._traffic("global")
        return total.coalescing if total.sectors else None

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of shared memory that bank conflicts added."""
        return self._traffic("shared").bank_conflicts

    @property
    def lane_utilisation(self) -> float | None:
        """Share of a warp's 32 lanes that are on, over all instructions."""
        if not self.warp_instructions:
            return None
        return self.thread_instructions / (32 * self.warp_instructions)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        plain = {
            name: value.to_dict() if isinstance(value, Traffic) else value
            for name, value in self.__dict__.items()
        }
        derived = ("intensity", "sector_intensity", "coalescing", "lane_utilisation")
        return plain | {name: getattr(self, name) for name in derived}


@dataclass
class Line:
    """What one source line did.

    Attributes:
        file: Path as the PTX gives it.
        line: Number from 1; 0 where the PTX has no line information.
        code: The line's text, stripped; ``""`` if the source is not at hand.
    """

    file: str
    line: int
    code: str
    counters: Counters = field(default_factory=Counters)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "file": self.file,
            "line": self.line,
            "code": self.code,
            "counters": self.counters.to_dict(),
        }


@dataclass
class Run:
    """The result of ``simulator.launch``.

    Attributes:
        kernel: The entry as the user wrote it; ``entry``: its PTX name.
        sha256: Of the PTX text that ran.
        grid: Blocks; ``block``: threads of a block; x first.
        shared_bytes: Shared memory of a block, static and dynamic.
        counters: Totals.
        hazards: What was found, errors first; empty if nothing was.
        checked: Names of the checks that ran.
        seconds: Wall-clock time of the simulation.
        approximate: Whether an instruction ran whose bits PTX does not promise.
        find_dependence: Works out ``data_dependence``, which not every run is asked for.
        trace: Every step, if the launch was asked for it.
        notes: What the kernel did and this run does not show, a sentence each.
        warnings: What is likely a mistake in the arguments, a sentence each.
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
        """
        # The one import that goes against docs/architecture.md's arrows, and only when called:
        # whoever holds a run should not need to know which room draws it.
        from tilescope.view import show

        return show(self)

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
            "shared_bytes": self.shared_bytes,
            "schedule": self.schedule,
            "checks": list(self.checked),
            "seconds": self.seconds,
            "approximate": self.approximate,
            "holds_for_all_data": self.holds_for_all_data,
            "data_dependence": str(self.data_dependence) if self.data_dependence else None,
            "notes": list(self.notes),
            "argument_warnings": list(self.warnings),
            "counters": self.counters.to_dict(),
            "lines": [line.to_dict() for line in self.lines],
            "hazards": [hazard.to_dict() for hazard in self.hazards],
        }
