"""Every write to a register is checked; and the context of a GPU, where there is one, is kept.

(Made anew for each launch, it takes 0.3 s.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import device
from simulator.compiler import CHECKED


@pytest.fixture(scope="module", autouse=True)
def checked_writes() -> Iterator[None]:
    """Generated code holds each register that it writes to its carrier's dtype."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECKED, "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def context() -> Iterator[None]:
    """The context of the first GPU, if there is one."""
    with device.context(0) if device.available()[0] else contextlib.nullcontext():
        yield
