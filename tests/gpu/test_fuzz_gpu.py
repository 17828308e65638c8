"""Random programs carried to a GPU: what is carried is whole, and a difference is said."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from device import DeviceError
from kernels import Kernel
from tests.fuzz import compare, gpu, gpu_programs
from tests.fuzz.compare import Launch
from tests.support import fake_driver


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    assert gpu.main(["make", str(made), "--count", "5", "--seed", "3"]) == 0
    return made


def content(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("module*.json.gz")
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_gpu_that_does_nothing_differs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_driver.installed(monkeypatch) as fake:
        assert gpu.main(["run", str(folder)]) == 1
        assert fake.calls["cuLaunchKernel"] == 10
        assert not fake.leaks()
    said = capsys.readouterr().out
    assert said.count("DIFFERS: module000.json.gz k") == 10
    assert "10 launches" in said


@pytest.mark.slow
def test_a_gpu_that_agrees(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = content(folder)["programs"]
    monkeypatch.setattr(gpu, "launched", lambda *_: [(p, [p["hash"].encode()]) for p in programs])
    monkeypatch.setattr(gpu, "digest", lambda arrays: arrays[0].decode())
    with fake_driver.installed(monkeypatch):
        assert gpu.main(["run", str(folder)]) == 0


@pytest.mark.slow
def test_a_program_that_fails_is_the_only_one_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another process goes on behind it: here the same one, at both levels."""
    ran: list[str] = []
    broken = content(folder)["programs"][2]["entry"]

    def launched(module: Any, programs: list[dict[str, Any]]) -> Any:
        for p in programs:
            if p["entry"] == broken:
                raise DeviceError("misaligned address")
            ran.append(p["entry"])
            yield p, [p["hash"].encode()]

    def again(command: list[str], check: bool) -> None:
        gpu.main(command[command.index("tests.fuzz.gpu") + 1 :])

    monkeypatch.setattr(gpu, "launched", launched)
    monkeypatch.setattr(gpu, "digest", lambda arrays: arrays[0].decode())
    monkeypatch.setattr(gpu.subprocess, "run", again)
    with fake_driver.installed(monkeypatch):
        assert gpu.main(["run", str(folder)]) == 1
    others = [p["entry"] for p in content(folder)["programs"] if p["entry"] != broken]
    assert ran == others * 2
    assert capsys.readouterr().out.count("FAILS: module000.json.gz, level") == 2


NANS = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p0)
{
.reg .b64 %l<4>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b32 %r<2>;
ld.param.u64 %l0, [p0]; ld.global.f64 %d0, [%l0]; ld.global.f32 %f0, [%l0+4];
add.rn.f64 %d1, %d0, %d0; mul.rn.f64 %d1, %d1, %d1; add.rn.f32 %f1, %f0, %f0;
mov.b32 %r0, %f1; shr.u32 %r0, %r0, 31;
st.global.f64 [%l0+8], %d1; st.global.u32 [%l0+16], %r0; st.global.u32 [%l0+20], 7;
ret;
}
"""


def test_bytes_that_hang_on_a_nan() -> None:
    """A NaN itself, though two instructions made it; and what an integer takes of one."""
    array = np.array([0xFFF8000000000001, 0, 0], np.uint64)
    launch = Launch(NANS, "k", (1,), (1,), [array])
    wanted = compare.expected(launch)
    but = gpu.nan_bytes(launch, wanted)
    program = {
        "hash": gpu.digest(wanted), "but": but, "hash_but": gpu.digest(wanted, but),
    }  # fmt: skip
    words = np.frombuffer(wanted[0], np.uint32)
    for at, verdict in enumerate(["differs", "differs", "nan", "nan", "nan", "differs"]):
        other = words.copy()
        other[at] ^= 1
        assert gpu.judged(program, [other.tobytes()], 4) == verdict
        assert gpu.judged(program, [other.tobytes()], 0) == "differs"
    assert gpu.judged(program, wanted, 4) == gpu.judged(program, wanted, 0) == "same"


@pytest.mark.parametrize(
    ("line", "left_out"),
    [
        ("@%p1 set.lt.f32.u32 %f2, %r1, %r5;", True),
        ("@!%p1\ttestp.number.f32 %p3, %f1;", True),
        ("set.lt.f32.u32 %f2, %r1, %r5;", False),
        ("@%p1 setp.lt.u32 %p2, %r1, %r5;", False),
        ("bfe.s32 %r0, %r6, 63, 1;", True),
        ("bfe.s32 %r0, %r6, 31, 64;", False),
        ("bfe.s32 %r0, %r6, 63, %r1;", False),
        ("bfe.s64 %l0, %l1, 33, 1;", False),
        ("bfi.b32 %r5, %r2, %r7, 5, 33;", True),
        ("bfi.b32 %r5, %r2, %r7, 33, 5;", False),
        ("bfi.b32 %r5, %r2, %r7, %r1, 33;", False),
    ],
)
def test_what_a_program_for_a_gpu_is_without(line: str, left_out: bool) -> None:
    assert any(re.search(pattern, line) for pattern in gpu_programs.OPEN) == left_out


@pytest.mark.gpu
def test_on_a_gpu(folder: Path) -> None:
    assert gpu.main(["run", str(folder)]) == 0
