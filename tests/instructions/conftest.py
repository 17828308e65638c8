"""Where there is a GPU, its context is kept: made anew for each launch, it takes 0.3 s."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import device


@pytest.fixture(scope="session", autouse=True)
def context() -> Iterator[None]:
    """The context of the first GPU, if there is one."""
    with device.context(0) if device.available()[0] else contextlib.nullcontext():
        yield
