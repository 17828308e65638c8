"""Random programs carried to a GPU: what is carried is whole, and a difference is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.fuzz import gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    assert gpu.main(["make", str(made), "--count", "5", "--seed", "3"]) == 0
    return made


def content(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("module*.json.gz")
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def test_a_module_holds_its_programs(folder: Path) -> None:
    module = content(folder)
    assert len(module["programs"]) == 5
    assert {p["kind"] for p in module["programs"]} == {"ptx", "cuda"}
    for program in module["programs"]:
        kernel = Kernel.from_ptx(module["ptx"], program["entry"])
        args: list[Any] = []
        for param, arg in zip(kernel.params, map(gpu.given, program["args"]), strict=True):
            if not isinstance(arg, bytes) or param.is_struct:
                args.append(arg)
            else:
                args.append(
                    np.frombuffer(arg, f"{'f' if param.type[0] == 'f' else 'i'}{len(arg)}")[0]
                )
        simulator.launch(kernel, program["grid"], program["block"], args)
        arrays = [a.tobytes() for a in args if isinstance(a, np.ndarray)]
        assert gpu.digest(arrays) == program["hash"]


def test_a_gpu_that_does_nothing_differs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_driver.installed(monkeypatch) as fake:
        assert gpu.main(["run", str(folder)]) == 1
        assert fake.calls["cuLaunchKernel"] == 5
        assert not fake.leaks()
    said = capsys.readouterr().out
    assert said.count("DIFFERS: module000.json.gz k") == 5
    assert "5 programs" in said


def test_a_gpu_that_agrees(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = content(folder)["programs"]
    monkeypatch.setattr(gpu, "launched", lambda ptx, _: [(p, p["hash"]) for p in programs])
    with fake_driver.installed(monkeypatch):
        assert gpu.main(["run", str(folder)]) == 0


@pytest.mark.gpu
def test_on_a_gpu(folder: Path) -> None:
    assert gpu.main(["run", str(folder)]) == 0
