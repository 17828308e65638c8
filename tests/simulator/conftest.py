"""Launches of these tests run in NumPy, on slow machines too, unless they name an engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.native import selection

_NATIVE = Path(__file__).with_name("native")


@pytest.fixture(autouse=True)
def numpy_by_default(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have ``auto`` stay in NumPy, whose parts these tests look at; not in ``native/``."""
    if _NATIVE in request.path.parents:
        yield
        return
    with selection.preferred(selection.NUMPY):
        yield
