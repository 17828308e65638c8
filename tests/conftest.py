"""Fixtures that several folders of tests share."""

import gc
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels.compiler import precompiled
from simulator.compile.compiler import CHECKED
from tests.support.command_line import KERNELS

WAYS = ("build", "schedule", "made_by")
"""Parameters by which tests of many programs run each of them in several ways."""
os.environ["COLUMNS"] = "80"  # of reports, whatever terminal the tests run in


def pytest_configure() -> None:
    """What a process that compiles and runs thousands of kernels spares itself.

    Garbage is looked for less often, and never in what the collection of tests left: it was a
    quarter of the suite's time. Headers are precompiled for the first who includes them.
    """
    gc.set_threshold(50_000, 20, 10)
    precompiled.PAYS_FROM = 1
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell's & has it ignored, also by processes started from here; tests send it.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before ``-m`` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow: tests of the page in the browser, and those that their function names.

    Tests of the page come first: at the end, what is left of them waits for one process.
    """
    functions: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in functions.values():
        _take_turns([case for case in cases if case.get_closest_marker("slow") is None])
    whole = not any("[" in word for word in config.args)
    for name, cases in functions.items():
        _mark_slow_cases(name, cases, whole)
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: "view" not in item.path.parts)


def _mark_slow_cases(name: str, cases: list[pytest.Function], whole: bool) -> None:
    """Mark the cases of one function that ``slow_cases`` names, or that ``slow_but`` does not.

    A key is one or several values of a case's id, from the first to the last of them; "..." in it
    stands for any text. A key of no case is an error if the ``whole`` function was collected.
    """
    for kind in ("slow_cases", "slow_but"):
        marker = cases[0].get_closest_marker(kind)
        named: set[pytest.Function] = set()
        for key in marker.args if marker else ():
            pattern = re.escape(key).replace(re.escape("..."), ".*")
            pattern = f"(^|-){pattern}(-|$)"
            found = {case for case in cases if re.search(pattern, case.callspec.id, re.DOTALL)}
            if whole and not found:
                raise pytest.UsageError(f"{name}: {kind} names {key!r}, which is no case of it")
            named |= found
        if marker:
            for case in cases:
                if (case in named) == (kind == "slow_cases"):
                    case.add_marker(pytest.mark.slow)


def _take_turns(items: list[pytest.Function]) -> None:
    """Mark all but one of the ways in which each program runs as slow; the ways take turns."""
    programs: dict[str, list[pytest.Function]] = {}
    for item in items:
        params = item.callspec.params
        program = [params[name] for name in params if name not in WAYS]
        programs.setdefault(repr(program), []).append(item)
    if len(programs) > 1:
        for number, some in enumerate(programs.values()):
            for item in set(some) - {some[number % len(some)]}:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    gc.freeze()


def pytest_unconfigure() -> None:
    """What pytest collects now, five times over, is all that the tests left: two seconds each."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each worker gets tests that stand together, which share programs and pages; then steals."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="module")
def checked_writes() -> Iterator[None]:
    """Generated code holds each register that it writes to its carrier's dtype."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECKED, "1")
        yield


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's own file, in the working folder."""
    (tmp_path / "my.cu").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return "my.cu"
