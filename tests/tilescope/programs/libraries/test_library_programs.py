"""Programs that are linked with cuBLAS, cuRAND, cuFFT and cuSPARSE."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tilescope.programs.compile import compile_program
from tilescope.programs.executable import FLAGS
from tilescope.programs.libraries.shims import library_stand_ins
from tilescope.programs.shim.build import shims

pytestmark = pytest.mark.slow  # nvcc takes seconds
SOURCE = Path(__file__).with_name("libraries.cu")
LIBRARIES = ["-lcublas", "-lcurand", "-lcufft", "-lcusparse"]
# 2 A A^T + C with A = [1 3; 2 4], C = [5 7; 6 8], and a half.
PRINTED = """0 1.5 2.5 3.5 4.5 25.5 34.5 35.5 48.5 
1000 1000 1000 1000 1000 1000 1000 1000 4000 4000
CUSPARSE_STATUS_INVALID_VALUE
"""  # noqa: W291 - as it is printed


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("program") / "libraries"
    compile_program([SOURCE], LIBRARIES, out)
    return out


def run(program: Path, *words: str) -> tuple[Any, dict[str, Any]]:
    report = program.with_name("report.json")
    command = [sys.executable, "-m", "tilescope", "exec", "--json", str(report), str(program)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=ROOT, timeout=120)
    return done, json.loads(report.read_text())


def test_calls_are_computed_on_the_host_and_said_to_be(program: Path) -> None:
    done, report = run(program)
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
    calls = {call["function"]: call for call in report["library_calls"]}
    assert list(calls) == ["cublasDgemm_v2", "curandGenerateNormalDouble", "cufftExecZ2Z"]
    gemm = calls["cublasDgemm_v2"]
    assert "cublasDgemm_v2(blas" in SOURCE.read_text().splitlines()[gemm["line"] - 1]
    said = "cuBLAS: 1 call computed on the host, not simulated: cublasDgemm_v2 at libraries.cu:"
    assert any(note.startswith(said) for note in report["notes"])
    assert said in " ".join(done.stderr.split())


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on PATH")
def test_a_program_of_cuda_12_has_the_same(tmp_path: Path) -> None:
    """Its stand-ins call the shim of its own version."""
    out = tmp_path / "old"
    names = ["libcublas.so.12", "libcurand.so.10", "libcufft.so.11", "libcusparse.so.12"]
    linked = [f"-Xlinker={library}" for library in (shims()[1], *library_stand_ins(names))]
    flags = FLAGS.replace("-cudart shared", "-cudart none").split()
    subprocess.run(["nvcc", *flags, *linked, "-o", str(out), str(SOURCE)], check=True)
    done, report = run(out)
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
    assert len(report["library_calls"]) == 3


def test_a_call_without_a_stand_in_is_refused_by_name_and_line(program: Path) -> None:
    done, report = run(program, "unsupported")
    assert (done.returncode, done.stdout) == (2, PRINTED)
    outcome = report["outcome"]
    assert outcome["how"] == "refused"
    assert outcome["message"].startswith(
        "tilescope: cusparseSgtsv2 has no stand-in at libraries.cu:"
    )
    assert outcome["place"].startswith("libraries.cu:")
