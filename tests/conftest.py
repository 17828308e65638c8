"""Fixtures that several folders of tests share."""

import gc
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import KERNELS
from dear import DEAR, LOST

from kernels import precompiled
from simulator.compile.compiler import CHECKED

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


@pytest.hookimpl(tryfirst=True)  # before ``-m`` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Those of the browser, which no package brings, are of the second stage, and the dear ones.

    They come first: at the end, what is left of them waits for one process.
    """
    names = {item.nodeid for item in items}
    files = {name.partition("::")[0] for name in names}
    config.stash[LOST] = [name for name in DEAR - names if name.partition("::")[0] in files]
    for some in _functions(items):
        _take_turns(some)
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()) or item.nodeid in DEAR:
            item.add_marker(pytest.mark.second)
    items.sort(key=lambda item: "view" not in item.path.parts)


def _functions(items: list[pytest.Item]) -> Iterable[list[pytest.Function]]:
    """The tests of the first stage that a function makes of its parameters, of each function."""
    found: dict[str, list[pytest.Function]] = {}
    for item in items:
        first = item.get_closest_marker("second") is None
        if first and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return found.values()


def _take_turns(items: list[pytest.Function]) -> None:
    """Of many programs in several ways the first stage runs each in one way, which take turns.

    The second stage runs the rest.
    """
    programs: dict[str, list[pytest.Function]] = {}
    for item in items:
        params = item.callspec.params
        program = [params[name] for name in params if name not in WAYS]
        programs.setdefault(repr(program), []).append(item)
    if len(programs) > 1:
        for number, some in enumerate(programs.values()):
            for item in set(some) - {some[number % len(some)]}:
                item.add_marker(pytest.mark.second)


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
