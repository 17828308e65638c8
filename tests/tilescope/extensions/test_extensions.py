"""``load_inline`` under ``tilescope exec``, run where PyTorch, nvcc and g++ are.

The gate does not install PyTorch, as for test_torch.py.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.programs import found

pytest.importorskip("torch", reason="PyTorch brings 3 GB of CUDA: not installed")
pytestmark = pytest.mark.slow  # a build takes a minute
SCRIPT = Path(__file__).with_name("extension_script.py")


def run(folder: Path, *words: str) -> tuple[Any, dict[str, Any]]:
    report = folder / "report.json"
    command = [sys.executable, "-m", "tilescope", "exec", "--json", str(report), str(SCRIPT)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=ROOT, timeout=900)
    return done, json.loads(report.read_text())


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SCRIPT.read_text().splitlines(), 1) if text in line)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension in the cache, built by a first run."""
    folder = tmp_path_factory.mktemp("extension")
    done, report = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("done\n")
    assert len(report["launches"]) == 6
    assert not any(launch["hazards"] for launch in report["launches"])
    return folder


def test_a_race_is_found_at_the_lines_of_the_script(built: Path) -> None:
    done, report = run(built, "racy")
    assert done.returncode == 1
    last = report["launches"][-1]
    assert (Path(last["file"]), last["line"]) == (SCRIPT, line_of("AT_DISPATCH"))  # a macro's
    assert last["counters"]["global_load"]["requests"] == 2
    race = next(h for h in last["hazards"] if h["kind"] == "raw-race" and h["severity"] == "error")
    lines = {line_of("// the write"), line_of("// the read")}
    assert {one["line"] for one in race["involved"]} == lines


def test_what_a_stream_of_the_script_orders(built: Path) -> None:
    done, report = run(built, "unordered")
    assert done.returncode == 1
    assert found(report) == ["host-order"]


def test_a_launch_that_a_gpu_refuses_is_an_exception(built: Path) -> None:
    done, report = run(built, "launch")
    assert done.returncode == 1
    assert report["outcome"]["how"] == "exception"
    assert "CUDA error: invalid" in report["outcome"]["message"]
    assert f"{SCRIPT.name}:" in report["outcome"]["place"]


def test_a_further_run_compiles_nothing(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that refuses everything but to give its version."""
    for name in ("nvcc", "g++"):
        real = subprocess.run(["which", name], capture_output=True, text=True, check=True)
        fake = built / "bin" / name
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(f'#!/bin/sh\ntest "$1" = --version && exec {real.stdout.strip()} "$1"\n')
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(built / "bin"), prepend=":")
    done, _ = run(built)
    assert done.returncode == 0, done.stdout + done.stderr
