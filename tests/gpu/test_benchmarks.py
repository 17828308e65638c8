"""The scripts that measure on a GPU, end to end, with stand-ins for GPU and profilers.

Their figures here mean nothing; that they run whole, and what their tables say, does.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import device
from benchmarks import counters, gflops, gpu, sanitizer
from simulator.gpus.table import find
from tilescope.gpu.ncu import METRICS
from tilescope.gpu.timing import Row


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that says its name and takes a thousandth of a second for everything."""

    @contextlib.contextmanager
    def context(index: int) -> Iterator[None]:
        yield

    def measure(kernel: Any, *rest: Any, launches: int = 5, **options: Any) -> device.Timing:
        out = device.Output(1.0, (1.0,), kernel.sha256, "Stand-in", "13.0", 24, 0, 0)
        return device.Timing((1.0,) * launches, False, out)

    def vendor(target: Any, index: int, launches: int) -> Row:
        return Row(target, (0.5,) * launches, False, gflops.work(target), label="cuBLAS (test)")

    for name, value in (
        ("available", lambda index=0: (True, "Stand-in")),
        ("device_name", lambda index=0: "Stand-in"),
        ("driver_release", lambda: "580.1"), ("driver_version", lambda: "13.0"),
        ("context", context), ("time_launches", measure),
    ):  # fmt: skip
        monkeypatch.setattr(device, name, value)
    monkeypatch.setattr(gflops, "vendor_row", vendor)


def printed(main: Any, words: list[str], patch: pytest.MonkeyPatch, capture: Any) -> list[str]:
    patch.setattr("sys.argv", ["benchmarks", *words])
    assert main() == 0
    return list(capture.readouterr().out.splitlines())


def cells(lines: list[str]) -> dict[str, list[str]]:
    """Rows of a Markdown table by their first cell; all have the same number of cells."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    assert len({len(row) for row in rows}) == 1
    return {row[0]: row[1:] for row in rows}


def test_gflops(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--sizes", "128", "--kernels", "matmul_naive,matmul_register_tiled:128"]
    lines = printed(gflops.main, words, monkeypatch, capsys)
    assert "Stand-in, driver 580.1 (CUDA 13.0)" in lines[0]
    rows = cells(lines)
    rate = f"{2 * 128**3 / 1e-3 / 1e9:,.0f}"
    for name in ("matmul_naive", "matmul_register_tiled:128"):
        assert rows[name] == ["128³", "1.0000", "1.0000 to 1.0000", rate, "50.0%", "24"]
    assert rows["cuBLAS (test)"][4:] == ["100.0%", "-"]


def test_what_beginning_takes_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """From times as a GPU would take them whose launches, starts and rate of blocks are known."""
    chip, clock, latency, start, launch, rate = find("h200"), 2e9, 300.0, 700.0, 6e-6, 0.5

    def seconds(entry: str, grid: int, block: int, args: Any, launches: int = 9, shared: int = 0):  # type: ignore[no-untyped-def]
        if entry == "nothing":
            return 4e-6 + grid / rate / clock
        own = args[0] if entry == "spin" else latency
        return launch + -(-grid // chip.sms) * (own + start) / clock

    monkeypatch.setattr(gpu, "seconds", seconds)
    found = gpu.launches(chip, clock, latency)
    assert found["launch_us"] == pytest.approx(6)
    assert found["block_start"] == pytest.approx(start)
    assert found["blocks_per_cycle"] == pytest.approx(rate, rel=1e-3)


def test_a_missing_vendor_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def vendor(target: Any, index: int, launches: int) -> Row:
        return Row(target, (), False, gflops.work(target), label="cuBLAS", error="no module torch")

    monkeypatch.setattr(gflops, "vendor_row", vendor)
    words = ["--sizes", "64", "--kernels", "matmul_naive"]
    lines = printed(gflops.main, words, monkeypatch, capsys)
    assert cells(lines)["cuBLAS"][1] == "not timed"
    assert cells(lines)["matmul_naive"][4] == "-"
    assert lines[-1] == "cuBLAS at 64³: no module torch"


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.slow
def test_sanitizer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program(
        tmp_path, "compute-sanitizer",
        'case "$*" in\n'
        '--version) echo "Version 2025.3.1.0";;\n'
        '*racecheck*shared_raw*) echo "========= RACECHECK SUMMARY: 2 hazards displayed '
        '(2 errors, 0 warnings)";;\n'
        '*racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed '
        '(0 errors, 0 warnings)";;\n'
        '*) echo "========= ERROR SUMMARY: 0 errors";;\nesac',
    )  # fmt: skip
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    names = ["faulty_shared_raw", "faulty_read_only"]
    out = tmp_path / "logs"
    words = ["--kernels", ",".join(names), "--out", str(out)]
    lines = printed(sanitizer.main, words, monkeypatch, capsys)
    rows = cells(lines)
    assert rows["faulty_shared_raw"][0] == "raw-race"
    assert rows["faulty_shared_raw"][2:] == ["2 errors, 0 warnings", "-", "-"]
    assert rows["faulty_read_only"][0] == "read-only"
    assert rows["faulty_read_only"][2:] == ["-", "-", "-"]
    text = "\n".join(lines)
    assert "compute-sanitizer 2025.3.1.0; device build" in text
    assert "Nothing reported by tilescope (0 of 2): none." in text
    assert "racecheck, memcheck, synccheck (1 of 2): faulty_read_only." in text
    assert len(list(out.glob("*.log"))) == 2 * 4


def test_sanitizer_out_of_time_judges_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program(tmp_path, "compute-sanitizer", "true")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    words = ["--kernels", "faulty_read_only", "--deadline", "-1"]
    text = "\n".join(printed(sanitizer.main, words, monkeypatch, capsys))
    assert "not run (out of time)" in text
    assert "Not judged, a run is missing: faulty_read_only." in text
    assert "synccheck (0 of 1): none." in text


def test_counters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An ncu whose every counter reads 7: none equals the simulator's, and the script says so."""
    head = ",".join(f'"{metric}"' for metric in METRICS.values())
    sevens = ",".join('"7"' for _ in METRICS)
    program(
        tmp_path, "ncu",
        f'case "$1" in --version) echo "Version 2025.3.1.0"; exit;; esac\n'
        f'while [ "$1" != --log-file ]; do shift; done\n'
        f"printf '%s\\n' '{head}' '{head}' '{sevens}' > \"$2\"",
    )  # fmt: skip
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("sys.argv", ["x", "--family", "transpose", "--out", str(tmp_path)])
    assert counters.main() == 1
    lines = capsys.readouterr().out.splitlines()
    rows = cells(lines)
    assert rows["transpose_naive"][:2] == ["256x192", f"0 of {len(METRICS)}"]
    assert "ncu Version 2025.3.1.0" in lines
    found = json.loads((tmp_path / "counters.json").read_text())
    assert found["transpose_naive 256x192"][0]["level0"] == 7
