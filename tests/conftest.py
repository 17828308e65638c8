"""Fixtures that several folders of tests share."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import KERNELS

from simulator.compile.compiler import CHECKED

os.environ["COLUMNS"] = "80"  # of reports, whatever terminal the tests run in


def pytest_configure() -> None:
    """Garbage is looked for less often, among two million new objects at the latest.

    It was a sixth of the suite's time.
    """
    gc.set_threshold(50_000, 10, 4)


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
