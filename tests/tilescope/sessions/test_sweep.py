"""``tilescope sweep``: cells become rows, on any executor, and rows stand for the same cells."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import library
from tests.support.command_line import error_of, tilescope
from tests.support.paths import ROOT
from tilescope import sweep as sweeps
from tilescope.sweep import Cell, cells, grid, sweep
from tilescope.text.sweep import table

SOURCE = """
__global__ void scale(float* x, float by) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < LAST) x[i] *= by;
}
"""


@pytest.fixture(scope="module")
def threads() -> Iterator[Executor]:
    """Cells that run here are cheap to test."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def scale(tmp_path: Path) -> Cell:
    """A file's kernel, whose blanks are filled in."""
    (tmp_path / "scale.cu").write_text(SOURCE)
    np.save(tmp_path / "x.npy", np.arange(100, dtype=np.float32))
    words = ("scale", f"f32[100]=@{tmp_path}/x.npy", "2")
    return Cell(
        str(tmp_path / "scale.cu"), words, "100", 32, grid="{size/tile}", block="{tile}",
        defines=("LAST={size}",),
    )  # fmt: skip


def test_grid() -> None:
    found = list(grid(["matmul_naive", "matmul_tiled:8"], ["32", "64"], [4, 16], seeds=(0, 1)))
    assert len(found) == len(set(found)) == 2 * 2 * 2 + 2 * 2
    assert {cell.tile for cell in found if cell.kernel == "matmul_tiled"} == {8}
    (one,) = grid(["spmv_warp"], schedules=("warps", 3), predict=True)
    assert one.gpu == "h200"


def test_rows_are_what_launches_say(threads: Executor) -> None:
    both = list(grid(["matmul_tiled", "matmul_missing_first_barrier"], ["33"], [16]))
    row, racing = sweep(both, threads)
    launch = library.get("matmul_tiled").launch((33, 33, 33), 16)
    kernel = library.get("matmul_tiled").kernel(16)
    counters = simulator.launch(kernel, launch.grid, launch.block, launch.args).counters
    assert row["global_sectors"] == counters.global_load.sectors + counters.global_store.sectors
    assert row["thread_instructions"] == counters.thread_instructions
    assert (row["status"], row["size"], row["right"], row["errors"]) == ("ok", "33", True, 0)
    assert racing["errors"] > 0
    assert "raw-race" in racing["hazards"]


def test_what_was_not_checked_is_not_none(threads: Executor) -> None:
    said = {"none": "not checked", ("memory",): "none of memory", "all": "2: raw-race"}
    for checks, words in said.items():
        (cell,) = grid(["matmul_missing_first_barrier"], ["32"], [16], checks=checks)
        (row,) = sweep([cell], threads)
        assert (row["hazards"] is None) == (checks == "none")
        assert words in table([row]).splitlines()[1]


def test_files_have_blanks(scale: Cell, threads: Executor) -> None:
    (row,) = sweep([scale], threads)
    assert row["error"] == ""
    target = scale.target()
    assert (target.grid[0], target.block[0]) == (4, 32)


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        (Cell("matmul_tiled", size="33", tile=7), "tile"),
        (Cell("matmul_tiled", size="a"), "a"),
        (Cell("no_such_kernel"), "no_such_kernel"),
        (Cell("spmv_warp", gpu="no_such_gpu"), "no_such_gpu"),
    ],
)
def test_a_failed_cell_is_a_row(cell: Cell, error: str, threads: Executor) -> None:
    failed, right = sweep([cell, Cell("spmv_warp", size="32")], threads)
    assert (failed["status"], right["status"]) == ("failed", "ok")
    assert error in failed["error"]
    assert "\n" not in failed["error"]


class _Ends(Cell):
    """Takes its process with it."""

    def target(self) -> Any:
        os._exit(3)


@pytest.mark.slow
def test_processes_of_this_machine() -> None:
    """One that dies does not take the others' rows with it."""
    rows = sweep([Cell("spmv_warp", size="32"), _Ends("spmv_warp"), Cell("transpose_tiled")])
    assert [row["status"] for row in rows] == ["ok", "failed", "ok"]
    assert rows[1]["error"] == "its process died"


def kept(cell: Cell, folder: Path, pool: Executor, resume: bool = True) -> bool:
    """Whether a row that was kept stood for a cell."""
    (row,) = sweep([cell], pool, folder, resume)
    assert row["status"] == "ok", row["error"]
    return bool(row.get("known"))


def test_resume_trusts_the_same_alone(
    scale: Cell, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, source = tmp_path / "rows", Path(scale.kernel)
    assert not kept(scale, folder, threads)
    assert kept(scale, folder, threads)
    assert not kept(scale, folder, threads, resume=False)
    for change in (
        {"seed": 1}, {"schedule": "warps"}, {"checks": "none"}, {"tile": 64}, {"size": "99"},
        {"words": (*scale.words[:2], "3")}, {"gpu": "h200"},
    ):  # fmt: skip
        assert not kept(dataclasses.replace(scale, **change), folder, threads), change
    source.write_text(SOURCE + "// the same PTX but for its lines\n")
    assert kept(scale, folder, threads)
    source.write_text(SOURCE.replace("*=", "+="))
    assert not kept(scale, folder, threads)
    np.save(tmp_path / "x.npy", np.ones(100, np.float32))
    assert not kept(scale, folder, threads)
    with monkeypatch.context() as patched:
        patched.setattr(cells, "code", lambda: "another")
        assert not kept(scale, folder, threads)
    for file in folder.iterdir():
        file.write_text(file.read_text()[:-9])
    assert not kept(scale, folder, threads)


def test_prediction_is_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweeps.sweeping, "_processes", lambda count: ThreadPoolExecutor(1))
    told = tilescope(
        "sweep", "transpose_naive", "transpose_padded", "--size", "256,32x", "--predict",
        "--json", "rows.json", "--svg", "plot.svg",
    )  # fmt: skip
    rows = json.loads(Path("rows.json").read_text())["rows"]
    good = sorted((row for row in rows if row["status"] == "ok"), key=lambda row: row["time_ms"])
    lines = told.stdout.splitlines()
    assert told.exit_code == 1
    assert [line.split()[0] for line in lines[1:3]] == [row["kernel"] for row in good]
    assert good[0]["kernel"] == "transpose_padded"
    assert "transpose_naive" in Path("plot.svg").read_text()
    again = tilescope("sweep", "transpose_naive", "--size", "256", "--predict", "--resume")
    assert again.exit_code == 0
    assert "kept" in again.stderr


def test_refusals() -> None:
    assert "--tile takes whole numbers" in error_of("sweep", "matmul_tiled", "--tile", "a")
    assert "--tile takes whole numbers" in error_of("sweep", "matmul_tiled", "--tile", "\u00b2")
    assert "no such option --bogus" in error_of("sweep", "matmul_tiled", "--size", "32", "--bogus")
    assert "--grid" in error_of("sweep", "matmul_tiled", "--grid", "4")
    assert "no_gpu" in error_of("sweep", "matmul_tiled", "--gpu", "no_gpu")


@pytest.mark.slow
def test_dask() -> None:
    """On a cluster of one worker."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = sweep([Cell("spmv_warp", size="32"), Cell("nothing")], client.get_executor())
    assert [row["status"] for row in rows] == ["ok", "failed"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster of one core, by the executor of ``docs/sweep.md``."""
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    names: dict[str, Any] = {}
    exec(
        (ROOT / "docs/sweep.md").read_text().split("```python")[2].split("```")[0],
        names,
    )
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        rows = sweep([Cell("spmv_warp", size="32"), Cell("nothing")], names["RayExecutor"]())
    finally:
        ray.shutdown()
    assert [row["status"] for row in rows] == ["ok", "failed"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are not listed there")
def test_who_interrupts_reads_one_line(tmp_path: Path) -> None:
    """At whatever moment, the processes' beginning included; none of them is left."""
    words = [sys.executable, "-m", "tilescope", "sweep", "matmul_naive", "--size", "3512,3600"]
    for seconds in (0.1, 0.8, 2.5):
        child = subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        )  # fmt: skip
        while not processes_of(child.pid):
            time.sleep(0.01)
        time.sleep(seconds)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
        _, said = child.communicate()  # to its end: all who could write are gone
        assert (child.returncode, said.strip()) == (130, "interrupted")


def processes_of(group: int) -> list[int]:
    """The processes that one has started for cells."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == group and b"spawn_main" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def test_schedules_have_commas_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweeps.sweeping, "_processes", lambda count: ThreadPoolExecutor(1))
    words = ("sweep", "matmul_naive", "--size", "8", "--json", "-", "--schedule")
    done = tilescope(*words, "lockstep,7")
    assert done.exit_code == 0
    assert [row["schedule"] for row in json.loads(done.stdout)["rows"]] == ["lockstep", 7]
    refused = tilescope(*words, "lockstep,other")
    assert (refused.exit_code, "unknown schedule 'other'" in refused.stderr) == (2, True)
