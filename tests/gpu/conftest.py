"""A GPU if there is one; and an account of what ran on it, at the end of the session."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import device

FOUND, WHY = device.available()
_WORKER = "tilescope-gpu"
SCORE: Counter[str] = Counter()
"""How many examples ended how; see ``test_paths.py``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that are marked ``gpu`` are skipped, with the reason, where there is none."""
    for item in items:
        if item.get_closest_marker("gpu") and not FOUND:
            item.add_marker(pytest.mark.skip(reason=f"no GPU: {WHY}"))


@pytest.fixture(scope="session")
def gpu() -> Iterator[None]:
    """Keeps the GPU's context between launches, which makes them quick."""
    with device.context(0):
        yield


@pytest.fixture(scope="session")
def score() -> Counter[str]:
    """Where examples are counted."""
    return SCORE


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and "no GPU" in str(report.longrepr):
        SCORE["tests skipped"] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its counts to the controller."""
    if hasattr(session.config, "workeroutput"):
        # Skips are reported to the controller as well, which counts them itself.
        counts = {name: count for name, count in SCORE.items() if name != "tests skipped"}
        session.config.workeroutput[_WORKER] = json.dumps(counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    SCORE.update(json.loads(getattr(node, "workeroutput", {}).get(_WORKER, "{}")))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was measured, and what was not."""
    write = terminalreporter.write_line
    if FOUND:
        name = device.device_name()
        write(
            f"device: {SCORE['bit for bit']:,} examples bit for bit between simulator and "
            f"{name}, driver {device.driver_release()}"
        )
        write(
            f"device: {SCORE['special']:,} of these with NaN, infinities, subnormals or all "
            "magnitudes; "
            f"{SCORE['within bounds']:,} more within error bounds (.approx, float atomics), "
            f"{SCORE['within bounds, same bits']:,} of those with the same bits as well"
        )
    else:
        write(f"device: {SCORE['tests skipped']} tests skipped (no GPU: {WHY})")
