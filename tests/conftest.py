"""Fixtures that several folders of tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator.compile.compiler import CHECKED


@pytest.fixture(scope="module")
def checked_writes() -> Iterator[None]:
    """Generated code holds each register that it writes to its carrier's dtype."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECKED, "1")
        yield
