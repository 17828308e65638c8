"""pytest plugin: launch kernels in tests, and fail with the hazard report.

The fixture ``simulate`` launches a kernel with all checks on and remembers the run;
``assert_clean(run)`` fails if it had a hazard; ``--tilescope-json FILE`` writes every run of
the session. NumPy and the simulator are imported when a test first launches something.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kernels import Kernel
    from simulator import Run

__all__ = ["Simulate", "assert_clean", "simulate"]

_RUNS = pytest.StashKey[list[dict[str, Any]]]()
_SIMULATE = pytest.StashKey["Simulate"]()
_FOLDER = pytest.StashKey[Path]()
_WORKER = "tilescope_runs"


def assert_clean(run: Run, allow_warnings: bool = False) -> None:
    """Fail with the hazard report if a run has hazards, or if it was not checked at all.

    The report comes with the line of the test, and with what is noted of the failure: the example
    that Hypothesis found. Hazards of lines with a comment ``tilescope: ignore[kind]`` do not count.

    Args:
        run: What ``simulator.launch`` or the fixture ``simulate`` returned.
        allow_warnings: Whether only errors count.
    """
    from simulator.hazards.folding import fold_causes  # here: importing the simulator takes time

    from .check.policy import ignored

    __tracebackhide__ = True
    if not run.checked:
        pytest.fail(f"{run.kernel} ran without checks: nothing says that it is clean")
    reported = fold_causes([h for h in run.hazards if not ignored(h)])
    wrong = ("error",) if allow_warnings else ("error", "warning")
    found = [h for h in reported if h.severity in wrong]
    if found:
        count = f"{len(found)} hazard{'s' if len(found) > 1 else ''}"
        head = f"{count} in {run.kernel}, grid {run.grid}, block {run.block}, {run.build} build"
        pytest.fail("\n\n".join([head, *(str(hazard) for hazard in found)]))


class Simulate:
    """Launcher for tests, around ``simulator.launch``.

    Attributes:
        runs: Runs of the current test.
        folder: Folder of the test's file, where kernel files are searched first.
    """

    assert_clean = staticmethod(assert_clean)

    def __init__(self, record: list[dict[str, Any]] | None = None) -> None:
        self.runs: list[Run] = []
        self.test = ""
        self.folder: Path | None = None
        self._record = record

    def __repr__(self) -> str:
        """Return the name of the fixture, for examples that Hypothesis prints."""
        return "simulate"

    def __call__(
        self,
        kernel: Kernel | str | os.PathLike[str],
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        entry: str | None = None,
        arch: str | int | None = None,
        options: Sequence[str] = (),
        build: str = "device",
        **launch: Any,
    ) -> Run:
        """Launch a kernel; outputs are written into the arrays among ``args``.

        Args:
            kernel: A ``Kernel``, or a ``.cu`` or ``.ptx`` file: a path from the test's own
                file, or else from the working folder.
            grid: Blocks, x first.
            block: Threads of a block, likewise.
            args: Arrays and numbers, as ``simulator.launch`` takes them.
            entry: The kernel of a file, as C++ writes it; may be left out where the file
                has one kernel.
            arch: Architecture to compile a ``.cu`` file for, ``compute_90`` if left out;
                of a ``Kernel`` or a ``.ptx`` file, whose numerics, as in ``simulator.launch``.
            options: Further options of NVRTC.
            build: ``device`` or ``source``.
            launch: All else that ``simulator.launch`` takes: ``shared_bytes``, ``schedule``,
                ``checks``, ``symbols``, ``cooperative``, ``stack_bytes`` ...
        """
        import simulator
        from kernels import Kernel

        __tracebackhide__ = True
        if not isinstance(kernel, Kernel):
            kernel = _beside(kernel, self.folder)
        made = _kernel(kernel, entry, arch or "compute_90", options, build)
        if isinstance(kernel, Kernel) or kernel.suffix == ".ptx":
            launch["arch"] = arch
        run = simulator.launch(made, grid, block, args, **launch)
        self.runs.append(run)
        if self._record is not None:
            self._record.append({"test": self.test} | run.to_dict())
        return run


def _beside(file: str | os.PathLike[str], folder: Path | None) -> Path:
    """Return the file that a test names: next to the test, or else as given."""
    __tracebackhide__ = True
    path = Path(file)
    if folder is not None and (folder / path).is_file():
        return folder / path
    if folder is not None and not path.is_file():
        raise FileNotFoundError(f"no file {str(file)!r} in {folder} or in {Path.cwd()}")
    return path


def _kernel(
    kernel: Kernel | str | os.PathLike[str],
    entry: str | None,
    arch: str | int,
    options: Sequence[str],
    build: str,
) -> Kernel:
    from kernels import Kernel

    from .cli.kernel_names import only_kernel

    __tracebackhide__ = True
    if isinstance(kernel, Kernel):
        if entry is not None:
            raise TypeError("entry belongs to a file; this is a Kernel, which has its own")
        return kernel
    if Path(kernel).suffix == ".ptx":
        return Kernel.from_ptx(kernel, entry)
    name = only_kernel(os.fspath(kernel), options) if entry is None else entry
    return Kernel.from_cuda(kernel, name, arch, options, build)


@pytest.fixture(scope="session")
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """Return the session's launcher with all checks on; ``simulate.runs``: this test's runs.

    Its session scope allows use in Hypothesis tests.
    """
    config = request.config
    made = Simulate(config.stash.get(_RUNS, None))
    made.test = _test_at_hand()
    made.folder = config.stash.get(_FOLDER, None)
    config.stash[_SIMULATE] = made
    return made


def _test_at_hand() -> str:
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--tilescope-json``."""
    group = parser.getgroup("tilescope")
    group.addoption(
        "--tilescope-json",
        metavar="FILE",
        help="Write counters and hazards of every launch of the session as JSON.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect runs only if they will be written."""
    if file := config.getoption("--tilescope-json"):
        try:
            with open(file, "a", encoding="utf-8"):
                pass
        except OSError as error:
            raise pytest.UsageError(f"--tilescope-json {file}: {error.strerror}") from None
        config.stash[_RUNS] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Clear the runs of the previous test."""
    item.config.stash[_FOLDER] = item.path.parent
    simulate = item.config.stash.get(_SIMULATE, None)
    if simulate is not None:
        simulate.runs = []
        simulate.test = item.nodeid
        simulate.folder = item.path.parent


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the runs; a pytest-xdist worker sends them to its controller."""
    runs = session.config.stash.get(_RUNS, None)
    if runs is None:
        return
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_WORKER] = json.dumps(runs)
        return
    content = {"schema": 1, "runs": runs}
    file = Path(session.config.getoption("--tilescope-json"))
    try:
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:  # since the start; the tests' findings are reported all the same
        session.config.get_terminal_writer().line(f"\nnot written: {file}: {error.strerror}")
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Collect the runs of a finished pytest-xdist worker."""
    runs = node.config.stash.get(_RUNS, None)
    output = getattr(node, "workeroutput", {})
    if runs is not None and _WORKER in output:
        runs.extend(json.loads(output[_WORKER]))
