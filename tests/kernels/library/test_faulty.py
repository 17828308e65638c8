"""Each kind of hazard is found in the kernel that commits it, and not in its twin.

``kernels/faulty`` marks the lines that a report must name with ``<-``. The reports' texts
stand in ``tests/golden``; ``TILESCOPE_GOLDEN=write pytest tests/kernels/library/test_faulty.py``
writes them anew.
"""

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import simulator
from kernels import library
from kernels.library import LibraryKernel
from simulator.hazards.hazard import SEVERITIES
from tests.support.paths import ROOT, TESTS

GOLDEN = TESTS / "golden"
BUILDS = ("device", "source")


@dataclass(frozen=True)
class Row:
    """A faulty kernel and the one kind of hazard that it has, in both builds."""

    name: str
    kind: str
    severity: str
    space: str = ""


TABLE = (
    # Shared memory, between warps.
    Row("shared_raw", "raw-race", "error", "shared"),
    Row("shared_war", "war-race", "error", "shared"),
    Row("shared_waw", "waw-race", "error", "shared"),
    Row("shared_same_value", "waw-race", "warning", "shared"),
    Row("warp_sync_for_block", "raw-race", "error", "shared"),
    Row("named_barrier", "raw-race", "error", "shared"),
    Row("producer_consumer", "raw-race", "error", "shared"),
    Row("missing_in_reduction", "raw-race", "error", "shared"),
    Row("missing_in_stencil", "raw-race", "error", "shared"),
    # Asynchronous copies, and mbarriers.
    Row("missing_wait", "raw-race", "error", "shared"),
    Row("missing_commit", "raw-race", "error", "shared"),
    Row("stage_reuse", "war-race", "error", "shared"),
    Row("missing_proxy_fence", "raw-race", "error", "shared"),
    Row("wrong_phase", "livelock", "error"),
    # Shared memory of the other blocks of a cluster.
    Row("missing_cluster_barrier", "raw-race", "error", "shared"),
    Row("missing_last_cluster_barrier", "exited-block", "error", "shared"),
    # Global memory, between warps of a block, and between blocks.
    Row("global_raw", "raw-race", "error", "global"),
    Row("global_war", "war-race", "error", "global"),
    Row("global_waw", "waw-race", "error", "global"),
    Row("blocks_raw", "raw-race", "error", "global"),
    Row("blocks_war", "war-race", "error", "global"),
    Row("blocks_waw", "waw-race", "error", "global"),
    Row("blocks_same_value", "waw-race", "warning", "global"),
    Row("last_block", "raw-race", "error", "global"),
    # Lanes of one warp.
    Row("lanes_raw", "raw-race", "warning", "shared"),
    Row("lanes_war", "war-race", "warning", "shared"),
    Row("lanes_waw", "waw-race", "error", "shared"),
    Row("half_warp_sync", "raw-race", "warning", "shared"),
    # Barriers.
    Row("barrier_skipped", "deadlock", "error"),
    Row("barrier_count", "deadlock", "error"),
    Row("endless_wait", "livelock", "error"),
    Row("barrier_elsewhere", "barrier-divergence", "error"),
    Row("barrier_rounds", "barrier-divergence", "warning"),
    Row("barrier_after_exit", "barrier-divergence", "warning"),
    Row("shuffle_mask", "bad-mask", "error"),
    Row("warp_sync_mask", "bad-mask", "error"),
    # Memory.
    Row("no_guard", "out-of-bounds", "error", "global"),
    Row("neighbour", "out-of-bounds", "error", "global"),
    Row("null_pointer", "out-of-bounds", "error", "global"),
    Row("past_shared", "out-of-bounds", "error", "shared"),
    Row("misaligned", "misaligned", "error", "global"),
    Row("read_only", "read-only", "error", "global"),
    Row("read_only_load", "read-only-path", "error", "global"),
    Row("wrong_space", "address-space", "error", "global"),
    Row("uninitialised_shared", "uninitialised", "error", "shared"),
    Row("uninitialised_local", "uninitialised", "error", "local"),
    Row("unset_constant", "unset-constant", "warning", "const"),
    Row("assertion", "assert", "error"),
    Row("trap", "trap", "error"),
)

TESTED = TABLE


@functools.cache
def run(
    entry: LibraryKernel, build: str, schedule: str | int = "lockstep"
) -> tuple[simulator.Run, bool]:
    """A run at the default size, and whether the output was what the twin gives."""
    launch = entry.launch()
    expected = launch.expected()
    kernel = entry.kernel(build=build)
    result = simulator.launch(kernel, launch.grid, launch.block, launch.args, schedule=schedule)
    return result, all(output.within for output in launch.compare(expected))


@pytest.fixture(scope="module", autouse=True)
def _folder() -> Iterator[None]:
    """Reports name files from where one is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield


def marked_lines(entry: LibraryKernel) -> set[int]:
    """The lines of the kernel's template that are marked in the source."""
    lines = entry.path.read_text().splitlines()
    name = entry.entry.partition("<")[0]
    start = next(i for i, line in enumerate(lines) if line.startswith(f"__global__ void {name}("))
    end = next(i for i, line in enumerate(lines) if i > start and line == "}")
    return {i + 1 for i in range(start, end) if "// <-" in lines[i]}


@pytest.mark.slow_cases("endless_wait", "missing_cluster_barrier", "missing_last_cluster_barrier")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("row", TESTED, ids=lambda row: row.name)
def test_the_fault_is_found(row: Row, build: str) -> None:
    entry = library.get(f"faulty_{row.name}")
    hazards = run(entry, build)[0].hazards
    found = {(h.kind, h.severity, h.space) for h in hazards}
    if row.kind.endswith("-race"):  # neighbours within a warp may race as well
        found -= {(row.kind, "warning", row.space)} - {(row.kind, row.severity, row.space)}
    assert found == {(row.kind, row.severity, row.space)}
    assert {line for h in hazards for line in h.lines} == marked_lines(entry)
    assert {Path(source.file).name for h in hazards for source in h.sources} == {entry.path.name}


@pytest.mark.slow_cases("missing_cluster_barrier", "missing_last_cluster_barrier", "wrong_space")
@pytest.mark.parametrize("build", ["device", pytest.param("source", marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", TESTED, ids=lambda row: row.name)
def test_the_twin_has_none(row: Row, build: str) -> None:
    twin = library.get(library.get(f"faulty_{row.name}").twin)
    for schedule in ("lockstep", "warps", "reverse", 1):
        result, right = run(twin, build, schedule)
        assert result.hazards == [], schedule
        assert right, schedule


def test_the_table_is_complete() -> None:
    # Of launches and of the host's code: test_order.py, test_resources.py, test_differing.py,
    # test_host_calls.py.
    between = {"host-order", "too-many-resources", "builds-differ", "host-pointer", "leak",
               "use-after-free", "bad-copy", "launch-error", "host-unset"}  # fmt: skip
    assert {row.kind for row in TABLE} == set(SEVERITIES) - between
    faulty = {n for n in library.names() if n.startswith("faulty_") and library.get(n).twin}
    assert {f"faulty_{row.name}" for row in TABLE} == faulty


SCHEDULES = ("lockstep", "warps", "reverse", *range(20))
BLOCKS = ("blocks_raw", "blocks_war", "blocks_waw", "last_block", "missing_cluster_barrier")

IN_STEP = ("lanes_waw", "missing_wait", "missing_commit", "missing_proxy_fence")
"""Lanes of one instruction go in step; a copy's bytes are there at once, the last written."""


@pytest.mark.slow_but("missing_commit", "missing_wait")
@pytest.mark.parametrize(
    "row",
    [
        row
        for row in TESTED
        if library.get(f"faulty_{row.name}").racy
        and (row.kind.endswith("-race") and row.severity == "error")
        and row.name not in BLOCKS  # blocks of one batch go in step
    ],
    ids=lambda row: row.name,
)
def test_a_race_is_found_under_every_schedule_and_goes_wrong_under_some(row: Row) -> None:
    entry = library.get(f"faulty_{row.name}")
    right, found = [], []
    for schedule in SCHEDULES:
        result, good = run(entry, "device", schedule)
        races = [h for h in result.hazards if h.kind.endswith("-race")]
        found.append({(h.kind, h.severity, h.space, h.lines, h.count) for h in races})
        right.append(good)
    assert (row.kind, row.severity, row.space) in {race[:3] for race in found[0]}
    assert all(races == found[0] for races in found)
    assert not all(right) or row.name in IN_STEP


def test_a_wrong_phase_is_a_race_where_it_is_no_hang() -> None:
    entry = library.get("faulty_wrong_phase")
    kinds = {tuple(h.kind for h in run(entry, "source", seed)[0].hazards) for seed in range(6)}
    assert kinds == {("livelock",), ("raw-race",)}


# -- report texts -----------------------------------------------------------------------


@pytest.mark.slow_cases(
    "endless_wait", "missing_cluster_barrier", "missing_last_cluster_barrier", "wrong_phase"
)
@pytest.mark.parametrize("row", TESTED, ids=lambda row: row.name)
def test_report_text(row: Row) -> None:
    entry = library.get(f"faulty_{row.name}")
    parts = []
    for build in BUILDS:
        parts += [f"{build} build:", *map(str, run(entry, build)[0].hazards), ""]
    text = "\n".join(parts)
    file = GOLDEN / f"{row.name}.txt"
    if os.environ.get("TILESCOPE_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80


def test_no_report_text_is_left_over() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {row.name for row in TESTED}
