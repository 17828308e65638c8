"""The commands that need a GPU: what they say without one, and what they print with one.

Where a stand-in plays the GPU, it is the simulator: that shows the words, not the device.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import device
from tests.support.gpu_stand_in import VALIDATE, stand_in
from tilescope.cli.main import main

FOUND, WHY = device.available()


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.skipif(FOUND, reason="this machine has a GPU")
@pytest.mark.parametrize("command", ["validate", "time"])
def test_without_a_gpu_one_line_and_exit_code_2(command: str) -> None:
    result = run(command, "matmul_tiled", "--size", "64")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"error: {command} needs a GPU: {WHY}\n"


def test_counters_without_ncu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = run("counters", "matmul_tiled", "--size", "64")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: counters needs Nsight Compute: ncu is not on the PATH")
    assert result.stderr.count("\n") == 1


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The simulator plays the GPU; what is in the list changes its results."""
    changes: list[Any] = []
    stand_in(monkeypatch, changes)
    monkeypatch.setattr(device, "available", lambda index=0: (True, "Stand-in"))
    monkeypatch.setattr(device, "driver_release", lambda: "580.1")
    return changes


def test_validated(changes: list[Any]) -> None:
    result = run("validate", "matmul_tiled", "--size", "70x50x90", "--tile", "16")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "matmul_tiled"
    assert "(same bytes on both)   Stand-in, driver 580.1" in lines[2]
    table = {line.split()[0]: line for line in lines if line}
    assert " ".join(table["C"].split()) == (
        "C max error vs float64 of its bound equal to simulator"
    )
    assert table["simulator"].endswith(" -")
    assert table["device"].endswith("bit for bit (3,500 of 3,500)")
    assert table["numpy"].endswith("of 3,500)")
    assert lines[-1] == "validated: simulator and device agree bit for bit"
    assert max(map(len, lines)) <= 80


def test_a_difference_is_shown(changes: list[Any]) -> None:
    def nudge(args: Sequence[Any]) -> None:
        args[2][3, 4] = np.nextafter(args[2][3, 4], np.float32(np.inf))

    changes.append(nudge)
    result = run("validate", "matmul_tiled", "--size", "32")
    assert result.exit_code == 1
    assert "(1,023 of 1,024)" in result.stdout
    assert "farthest: 1 ulp apart, C[3, 4]: simulator " in result.stdout
    assert result.stdout.endswith("NOT validated: 1 element of C differs\n")


def test_a_racy_kernel_is_refused(changes: list[Any]) -> None:
    result = run("validate", "matmul_missing_first_barrier", "--size", "32")
    assert result.exit_code == 1
    assert "Missing barrier: shared" in result.stdout
    assert "NOT validated: not launched: Missing barrier: shared" in result.stdout
    assert "Stand-in" not in result.stdout
    assert "\nvalidated" not in result.stdout


def test_a_file_without_a_reference(changes: list[Any], tmp_path: Path) -> None:
    source = tmp_path / "twice.cu"
    source.write_text("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")
    words = [str(source), "--grid", "1", "--block", "32", "f32[32]=arange"]
    result = run("validate", *words)
    assert result.exit_code == 0, result.output
    assert "not checked" in result.stdout
    assert "bit for bit (32 of 32)" in result.stdout
    found = json.loads(run("validate", *words, "--json", "-").stdout)
    assert found["validated"] is True
    assert found["bit_for_bit"] is True
    assert found["arrays"][0]["simulator"] is None
    assert found["device"] == "Stand-in"


@pytest.mark.slow_cases("8.0")
@pytest.mark.parametrize("chip", ["8.0", "9.0"])
def test_approximations_are_told(
    changes: list[Any], monkeypatch: pytest.MonkeyPatch, chip: str
) -> None:
    monkeypatch.setattr(VALIDATE, "available", lambda: (True, "Stand-in"))
    monkeypatch.setattr(VALIDATE, "capability", lambda index: chip)
    result = run("validate", "softmax_rows", "--size", "8")
    assert result.exit_code == 0, result.output
    note = "note: bits are not promised for instructions with an error bound" in result.stdout
    assert note == (chip == "8.0")


def test_time_takes_several_library_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(kernel: Any, *rest: Any, **more: Any) -> device.Timing:
        times = (0.5, 0.25, 0.75) if kernel.name == "naive" else (0.125,) * 3
        out = device.Output(0.5, times, kernel.sha256, "Stand-in", "13.0", 24, 0, 0)
        return device.Timing(times, kernel.name == "naive", out)

    monkeypatch.setattr(device, "time_launches", measure)
    monkeypatch.setattr(device, "available", lambda index=0: (True, "Stand-in"))
    monkeypatch.setattr(device, "driver_release", lambda: "580.1")
    result = run("time", "matmul_naive", "matmul_tiled", "--size", "100")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line}
    assert rows["matmul_naive"][1:] == ["0.5000", "0.3750", "to", "0.6250", "-", "4", "0"]
    assert rows["matmul_tiled"][1] == "0.1250"
    assert rows["matmul_tiled"][6] == "16"  # 2e6 FLOPs in 0.125 ms
    assert "matmul_tiled: not predicted (no GPU 'Stand-in' in the table" in result.stdout
    monkeypatch.setattr(device, "available", lambda index=0: (True, "NVIDIA H200"))
    known = run("time", "matmul_tiled", "--size", "100").stdout
    row = next(line.split() for line in known.splitlines() if line.startswith("matmul_tiled"))
    ahead = run("predict", "matmul_tiled", "--size", "100", "--registers", "24", "--json", "-")
    predicted = json.loads(ahead.stdout)["predictions"][0]
    assert row[5] == f"{predicted['time_ms']:.4f}"
    times = f"measured {0.125 / predicted['time_ms']:.2f} times that, outside"
    assert times in " ".join(known.split())
    monkeypatch.setattr(device, "available", lambda index=0: (True, "Stand-in"))
    assert "FLOPs: 2 M N K" in result.stdout
    assert "arrays put back before each launch: matmul_naive" in result.stdout
    found = json.loads(run("time", "matmul_tiled", "--size", "100", "--json", "-").stdout)
    assert found["rows"][0]["gflops"] == pytest.approx(16.0)
    assert found["rows"][0]["flops"] == 2_000_000
    counted = json.loads(run("time", "stencil_line", "--json", "-").stdout)["rows"][0]
    assert counted["flops_source"] == "counted by the simulator"
    assert counted["flops"] > 0
    assert run("time", "matmul_naive", "transpose_naive", "--size", "9x9x9").exit_code == 2
    assert run("time", "transpose_naive", "--vendor").exit_code == 2


# -- run --gpu --------------------------------------------------------------------------


def test_a_run_on_a_named_gpu() -> None:
    result = run("run", "matmul_tiled", "--size", "128", "--gpu", "h200", "--registers", "34")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "on H200 SXM: 132 multiprocessors, 67 TFLOP/s of FP32, 4,800 GB/s" in text
    assert (
        "occupancy: 75.0%, 48 of 64 warps, 6 blocks a multiprocessor; limited by registers" in text
    )
    assert "blocks 32, warps 8, registers 6, shared memory 76" in text
    assert "34 registers a thread, as given" in text
    assert "64 blocks in the grid, 792 at a time: 1 wave" in text
    assert "bound by shared memory, at most" in text
    assert "only 64 of 132 multiprocessors get a block" in text
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.skipif(FOUND, reason="this machine has a GPU, which would tell the registers")
def test_registers_come_from_machine_code() -> None:
    result = run("run", "matmul_tiled", "--size", "128", "--gpu", "h200", "--json", "-")
    found = json.loads(result.stdout)["gpu"]
    assert found["registers_source"] == "from machine code made here"
    assert found["occupancy"]["registers"] == 32, "the driver's, in tests/ground_truth"
    assert found["occupancy"]["complete"] is True


def test_unknown_registers_are_not_checked() -> None:
    """NVRTC no longer makes machine code for sm_70."""
    result = run("run", "matmul_tiled", "--size", "128", "--gpu", "v100", "--json", "-")
    found = json.loads(result.stdout)["gpu"]
    assert found["occupancy"]["limits"]["registers"] is None
    assert found["occupancy"]["complete"] is False
    assert found["registers_source"] is None
    text = run("run", "matmul_tiled", "--size", "128", "--gpu", "v100").stdout
    assert "registers: not checked (no such GPU here, and no --registers)" in text
    assert "occupancy: at most 100.0%" in text


@pytest.mark.gpu
def test_registers_come_from_the_driver(gpu: None) -> None:
    try:
        chip = device.find_gpu(device.device_name())
    except device.UnknownGpu as error:
        pytest.skip(str(error))
    words = ("run", "matmul_tiled", "--size", "64", "--gpu", chip.key, "--json", "-")
    found = json.loads(run(*words).stdout)["gpu"]
    assert found["registers_source"] == "from the driver"
    assert found["occupancy"]["complete"] is True


def test_both_kernels_of_a_comparison_are_placed(tmp_path: Path) -> None:
    file = tmp_path / "roofline.svg"
    words = ("run", "matmul_naive", "--size", "64", "--compare", "matmul_tiled", "--gpu", "a100")
    result = run(*words, "--plot", str(file))
    assert result.exit_code == 0, result.output
    assert "matmul_naive on A100 SXM 80 GB" in result.stdout
    assert "matmul_tiled on A100 SXM 80 GB" in result.stdout
    assert file.read_text().startswith("<svg")
    assert "matmul_tiled" in file.read_text()
    found = json.loads(run(*words, "--json", "-").stdout)
    naive, tiled = found["gpu"]["roofline"], found["compare"]["gpu"]["roofline"]
    assert naive["intensity_no_caches"] < tiled["intensity_no_caches"]
    assert naive["bound_by_no_caches"] == "memory, no caches"


def test_a_block_that_does_not_fit() -> None:
    result = run("run", "matmul_naive", "--size", "64", "--tile", "32", "--gpu", "h200",
                 "--registers", "80")  # fmt: skip
    assert "occupancy: a block does not fit, for registers" in result.stdout
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--gpu", "h20"), "no GPU 'h20' in the table; did you mean h200?"),
        (("--plot", "x.svg"), "--registers and --plot belong to --gpu"),
        (("--registers", "32"), "--registers and --plot belong to --gpu"),
        (("--registers", "256", "--gpu", "h200"), "not in the range 1<=x<=255"),
    ],
)
def test_wrong_words(words: tuple[str, ...], error: str) -> None:
    result = run("run", "matmul_naive", "--size", "16", *words)
    assert result.exit_code == 2
    assert error in result.stderr


def test_a_kernel_without_flops_has_no_figure(tmp_path: Path) -> None:
    words = ("run", "transpose_naive", "--size", "64", "--gpu", "h200")
    assert "bound by memory" in run(*words).stdout
    result = run(*words, "--plot", str(tmp_path / "x.svg"))
    assert result.exit_code == 2
    assert "no kernel here has both FLOPs and bytes" in result.stderr


# -- on a GPU ---------------------------------------------------------------------------


@pytest.mark.gpu
def test_validate_on_a_gpu(gpu: None) -> None:
    result = run("validate", "matmul_tiled", "--size", "70x50x90", "--tile", "16")
    assert result.exit_code == 0, result.output
    assert "bit for bit (3,500 of 3,500)" in result.stdout


@pytest.mark.gpu
def test_time_on_a_gpu(gpu: None) -> None:
    result = run("time", "matmul_naive", "matmul_tiled", "--size", "256", "--json", "-")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in rows] == ["matmul_naive", "matmul_tiled"]
    assert all(row["gflops"] > 1 for row in rows)
