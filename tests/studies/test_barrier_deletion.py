"""Every barrier of the library is needed, or proved not to be; and one that is lost is given back.

``pytest -s`` shows the table.
"""

import functools

import pytest

from kernels import library
from tests.studies.barrier_deletion import given_back, in_ptx, in_source, noticed, outputs

CORRECT = [name for name in library.names() if not library.get(name).twin]


@functools.cache
def has_barriers(name: str) -> bool:
    """Whether it has any; asked by each test, as to compile them all takes seconds."""
    return bool(in_ptx(library.get(name).kernel(build="source")))


@pytest.mark.slow
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("name", CORRECT)
def test_a_barrier_taken_out_is_noticed(name: str, build: str) -> None:
    if not has_barriers(name):
        pytest.skip("it has no barrier")
    entry = library.get(name)
    kernel = entry.kernel(build=build)
    found = in_ptx(kernel)
    assert found
    whole, wanted = outputs(entry, kernel, "lockstep", "all")
    assert whole.hazards == []
    verdicts = [noticed(entry, kernel, barrier.line, wanted) for barrier in found]
    print()
    for barrier, text in zip(found, verdicts, strict=True):
        line = barrier.location.line if barrier.location else "-"
        print(f"{name:<33} {build:<6} line {line:>3}, of the PTX {barrier.line:>4}  {text}")
    assert [text for text in verdicts if text.startswith("MISSED")] == []


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("matmul_naive", 0),
        ("matmul_tiled", 2),
        ("scan_blelloch", 3),
        ("faulty_lanes_war_fixed", 1),  # one __syncwarp(), called from three places
    ],
)
def test_the_barriers_are_seen(name: str, count: int) -> None:
    """Of the source build, which inlines none."""
    assert len(in_ptx(library.get(name).kernel(build="source"))) == count


GIVEN_BACK = {
    "histogram_shared": [19, 22], "reduction_shared": [15], "matmul_tiled": [18, 21],
    "stencil_line": [18], "transpose_tiled": [29],
    "divergent_around": [9], "one_line": [3, 3, 4], "macros": [9, 11],
    "device_functions": [12, 14], "header": [6, 6], "lambda": [10, 12, 14],
    "early_continue": [8, 10], "single_body": [5, 8],
}  # fmt: skip
"""Kernels, and after which lines their fixes go; ``python -m tests.studies.barrier_deletion`` does
all."""


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN_BACK)
def test_a_lost_barrier_is_given_back(name: str) -> None:
    found = [given_back(lost) for lost in in_source(name)]
    assert [verdict.lines for verdict in found] == [(line,) for line in GIVEN_BACK[name]]
    assert {verdict.word for verdict in found} <= {"same place", "equivalent"}
    assert all(verdict.proof.count("seed 1") == 1 for verdict in found)
