"""The way of a launch through the house: ``launch.py`` once, and few files after it.

Followed is what is handed on: the kernel, the launch made ready of it, and the program. A file
is passed where a function in it is called with one of them. ``pytest -s`` shows the way.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from simulator.compile.program import Program
from simulator.execute.prepare import PreparedLaunch

HOUSE = Path(simulator.__file__).parent
TABLE = (HOUSE.parent / "docs/architecture.md").read_text().partition("to its race report")[2]
TRACE = re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", TABLE, re.M)
"""File and function of each row of the documented trace."""
SOURCE = """
extern "C" __global__ void way(float* out, const float* in)
{
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
"""


@contextmanager
def followed(stops: list[str]) -> Iterator[None]:
    """Note down the files that are entered with what a launch hands on."""

    def called(frame: FrameType, event: str, argument: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event != "call" or HOUSE not in file.parents:
            return
        given = inspect.getargvalues(frame)
        names = [*given.args, *filter(None, (given.varargs, given.keywords))]
        if any(isinstance(given.locals[n], Kernel | PreparedLaunch | Program) for n in names):
            at = file.relative_to(HOUSE).as_posix()
            if stops[-1:] != [at]:
                stops.append(at)

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_way() -> None:
    kernel = Kernel.from_cuda(SOURCE, "way")
    given, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    stops: list[str] = []
    with followed(stops):
        run = simulator.launch(kernel, 1, 64, [out, given], engine="numpy")
    way = " -> ".join(stops)
    print(way)
    assert out.all()
    assert not run.hazards
    assert stops.count("launch.py") == 1, way
    assert len(set(stops)) <= 11, way


def test_the_documented_trace_of_a_race_is_the_way() -> None:
    """Each row's function is entered after that of the row before."""
    kernel = Kernel.from_cuda(SOURCE.replace("__syncthreads();", ""), "way")
    calls: list[tuple[str, str]] = []

    def called(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call":
            calls.append((code.co_filename, code.co_qualname))

    sys.setprofile(called)
    try:
        run = simulator.launch(kernel, 1, 64, [np.zeros(64, np.float32)] * 2, engine="numpy")
    finally:
        sys.setprofile(None)
    assert [hazard.kind for hazard in run.hazards] == ["raw-race"]
    assert len(TRACE) > 10
    at = 0
    for file, function in TRACE:
        path = str(HOUSE.parent / file if file.startswith("kernels/") else HOUSE / file)
        assert (path, function) in calls[at:], (file, function)
        at = calls.index((path, function), at)
