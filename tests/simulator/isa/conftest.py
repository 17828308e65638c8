"""Every write to a register is checked; and the context of a GPU, where there is one, is kept.

(Made anew for each launch, it takes 0.3 s.)
"""

import contextlib
from collections.abc import Iterator

import pytest

import device


@pytest.fixture(scope="module", autouse=True)
def every_write_is_checked(checked_writes: None) -> None:
    """Here always."""


@pytest.fixture(autouse=True)
def undefined_reads_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of lanes that take no part; whether they matter is not tried out."""
    every = lambda program, reads, outcome: {line: min(r) for line, r in reads.items()}  # noqa: E731
    monkeypatch.setattr("simulator.rerun.driver.used", every)


@pytest.fixture(scope="session", autouse=True)
def context() -> Iterator[None]:
    """The context of the first GPU, if there is one."""
    with device.context(0) if device.available()[0] else contextlib.nullcontext():
        yield
