"""One run of a script or program under ``tilescope exec``."""

import contextlib
import functools
import gc
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator import Source
from simulator.gpus.table import Gpu
from simulator.host_order import Order

from ..cli.progress import WaitBar
from ..gpu.launch_forecasts import LaunchForecasts
from ..scripts.run import run_script
from ..scripts.virtual_device import VirtualDevice
from ..sessions.recording import Session
from .compile import SOURCES, CompilationError, compile_program, split_sources
from .executable import ProgramRefusedError, check, executable, is_elf
from .fixes import LaunchKeeper
from .run_program import ProgramRun
from .shim.build import ShimError

DEVICE_ONLY = "device build only: tilescope check compares both builds of a kernel"
"""Note on what is not checked in programs."""
_NO_HOST_LINES = "the host's lines are unknown: compile with -g, and install binutils (addr2line)"
_LISTED = 4
"""Calls of a library that a note names."""
_STANDARD_ERROR = 2
"""File descriptor."""


@dataclass(frozen=True)
class ExecSettings:
    """How launches are simulated, and what is compiled how.

    Attributes:
        only, max_launches, sample, schedule, traced, quiet, gpu: As for ``VirtualDevice``.
        predicted: GPU whose times are predicted, if any.
        nvcc: Words for nvcc.
        is_apart: Whether standard output has a report: what the program prints goes to standard
            error.
        keeper: Keeps launches for a search for fixes, if there is one.
    """

    only: tuple[str, ...]
    max_launches: int
    sample: int
    schedule: str | int
    traced: bool
    quiet: bool
    gpu: Gpu
    predicted: Gpu | None
    nvcc: tuple[str, ...]
    is_apart: bool = False
    keeper: LaunchKeeper | None = None

    def machine(self, made: Session, order: Order) -> VirtualDevice:
        """Return a device that records launches in a session."""
        return VirtualDevice(
            self.only, self.max_launches, self.sample, self.schedule, self.traced, self.quiet,
            order=order, gpu=self.gpu, on_launch=made.annotate,
            forecasts=LaunchForecasts(self.predicted) if self.predicted else None,
            printed=(sys.stderr if self.is_apart else sys.stdout).write, keeper=self.keeper,
        )  # fmt: skip


@dataclass
class ExecOutcome:
    """Outcome of a script or program.

    Attributes:
        code: Its own exit code, or the signal's number.
        how, place: As in JSON (``ScriptEnd``, ``ProgramEnd``).
        text: For the report: what ended it, if it did not end by itself.
        notes: For the report, a sentence each.
        unchecked: Launches that were made without checks, by kernel.
        library_calls: Calls computed on the host: library, function, file, line, number.
    """

    code: int = 0
    text: str = ""
    how: str = "exit"
    place: str = ""
    notes: tuple[str, ...] = ()
    unchecked: dict[str, int] = field(default_factory=dict)
    library_calls: list[dict[str, Any]] = field(default_factory=list)

    def exit_code(self, wrong: bool, as_wanted: bool) -> int:
        """Return the exit code: of a refusal, else of hazards, the program, or too few launches."""
        if self.how == "refused":
            return 2
        if self.how == "signal":
            return 1 if wrong else 128 + self.code
        return int(wrong) or self.code or (0 if as_wanted else 3)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"how": self.how, "code": self.code, "message": self.text, "place": self.place}


def is_program(path: Path) -> bool:
    """Whether a file is a program or source that is run natively, and no path."""
    return path.suffix in SOURCES or is_elf(path)


def execute(
    path: Path, arguments: Sequence[str], settings: ExecSettings, made: Session
) -> ExecOutcome:
    """Run a script, or a program from its file or its sources, and record it in a session."""
    if is_program(path):
        return _run_program(path, arguments, settings, made)
    machine = settings.machine(made, made.order)
    with contextlib.redirect_stdout(sys.stderr if settings.is_apart else sys.stdout):
        end = run_script(path, arguments, machine)
    notes: list[str] = []
    calls: list[dict[str, Any]] = []
    if machine.extensions is not None:
        runtime = machine.extensions.runtime
        notes, calls = _runtime_notes(made, runtime.libraries.calls, runtime.errors)
    return ExecOutcome(*end, notes=tuple(notes), unchecked=machine.unchecked, library_calls=calls)


@contextlib.contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collect garbage less often: for 10 % of the time of 2,000 tiny launches instead of 28 %."""
    before = gc.get_threshold()
    gc.set_threshold(5000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run_program(
    path: Path, arguments: Sequence[str], settings: ExecSettings, made: Session
) -> ExecOutcome:
    first = settings.machine(made, made.order)
    with tempfile.TemporaryDirectory(prefix="tilescope-") as folder:
        try:
            program, rest = path.resolve(), list(arguments)
            sources, rest = split_sources(path, rest)
            if sources:
                program = Path(folder) / path.stem
                with WaitBar(f"nvcc {path.name}", settings.quiet, hint=""):
                    compile_program(sources, settings.nvcc, program)
            built = executable(program)
            check(built)
            run = ProgramRun(
                [str(program), *rest], first, functools.partial(settings.machine, made),
                [Path.cwd(), path.parent],
                _STANDARD_ERROR if settings.is_apart else None, built.needed,
            )  # fmt: skip
            with _fewer_collections():
                end = run.run()
        except (ProgramRefusedError, CompilationError, ShimError) as error:
            return ExecOutcome(2, f"error: {error}", "refused")
    made.order.hazards += run.checks.hazards()
    text = end.message
    if end.how == "signal" and not text:
        text = f"the program was ended by signal {end.code}"
    elif end.how == "refused":
        text = f"tilescope: {end.message}"
    elif end.how == "signal" and end.place:
        text = f"{end.message} at {end.place}"
    notes, calls = _runtime_notes(made, end.library_calls, end.errors)
    return ExecOutcome(end.code, text, end.how, end.place, tuple(notes), first.unchecked, calls)


def _runtime_notes(
    made: Session, library_calls: Counter[tuple[str, str, Source]], errors: Counter[str]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return notes on the runtime's calls, and those that libraries computed, JSON-ready."""
    notes = [DEVICE_ONLY] * bool(made.launches)
    if made.launches and not any(launch.place[1] for launch in made.launches):
        notes.append(_NO_HOST_LINES)
    calls = [
        {"library": library, "function": function, "file": source.file, "line": source.line,
         "calls": count}
        for (library, function, source), count in library_calls.items()
    ]  # fmt: skip
    notes += _library_notes(calls)
    for what, count in errors.items():
        notes.append(f"{what}{f', {count} times' if count > 1 else ''}")
    return notes, calls


def _library_notes(calls: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each library: which calls were computed, and where."""
    notes = []
    for library in dict.fromkeys(call["library"] for call in calls):
        own = [call for call in calls if call["library"] == library]
        total = sum(call["calls"] for call in own)
        what = [f"{call['function']}{_at(call)}" for call in own]
        listed = ", ".join(what[:_LISTED]) + (", ..." if what[_LISTED:] else "")
        word = f"{total:,} call{'s' * (total != 1)}"
        notes.append(f"{library}: {word} computed on the host, not simulated: {listed}")
    return notes


def _at(call: dict[str, Any]) -> str:
    return f" at {Path(call['file']).name}:{call['line']}" if call["line"] else ""
