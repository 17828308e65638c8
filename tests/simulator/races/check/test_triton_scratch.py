"""Triton's reductions store totals from several threads: a note; other races there are errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import Kernel
from tests.support.command_line import tilescope
from tilescope import plugin
from tilescope.cli.main import main

triton = pytest.importorskip("triton", reason="the extra triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def squares(x, y, n, size: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, size)
    v = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + tl.program_id(0), tl.sum(v * v, axis=0))


@pytest.fixture(scope="module")
def of_triton() -> Kernel:
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32"}
    return Kernel.from_triton(squares, signature, {"size": 128}, num_warps=4)


def launched(kernel: Kernel, **how: Any) -> tuple[simulator.Run, Any, Any]:
    x = np.random.default_rng(0).standard_normal((4, 128)).astype(np.float32)
    y = np.zeros(4, np.float32)
    return simulator.launch(kernel, 4, 128, [x, y, 128], **how), x, y


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 1])
def test_a_total_from_all_lanes_is_a_note(of_triton: Kernel, schedule: str | int) -> None:
    run, x, y = launched(of_triton, schedule=schedule)
    assert [(h.kind, h.severity, h.space) for h in run.hazards] == [("waw-race", "note", "shared")]
    assert "no edit of the Python" in str(run.hazards[0])
    assert np.allclose(y, (x**2).sum(axis=1), rtol=1e-5)
    plugin.assert_clean(run)


def test_other_instructions_stay_an_error(of_triton: Kernel) -> None:
    """Without its barrier, what a warp stored is read by another one."""
    assert of_triton.ptx.count("bar.sync") == 1
    lines = of_triton.ptx.splitlines(keepends=True)
    text = "".join(line for line in lines if "bar.sync" not in line)
    full = Kernel.from_ptx(text)
    x, y = np.ones((4, 128), np.float32), np.zeros(4, np.float32)
    spare = [np.zeros(16, np.float32)] * (len(full.params) - 3)
    run = simulator.launch(full, 4, 128, [x, y, 128, *spare], shared_bytes=16)
    assert {(h.kind, h.severity) for h in run.hazards if h.severity == "error"} & {
        ("raw-race", "error"), ("war-race", "error")
    }  # fmt: skip


def test_an_array_of_that_name_in_cuda_is_the_users() -> None:
    text = """extern __shared__ float global_smem[];
        __global__ void k(float* out) {
            global_smem[threadIdx.x / 32] = threadIdx.x;
            __syncthreads();
            out[threadIdx.x] = global_smem[0];
        }"""
    kernel = Kernel.from_cuda(text, "k")
    run = simulator.launch(kernel, 1, 64, [np.zeros(64, np.float32)], shared_bytes=16)
    assert [(h.kind, h.severity) for h in run.hazards] == [("waw-race", "error")]


def test_commands_call_it_no_hazard(of_triton: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "squares.ptx"
    file.write_text(of_triton.ptx)
    shape = ("--grid", 4, "--block", 128, "--shared", 16)
    given = ("squares", *shape, "f32[512]=normal", "f32[4]", 128)
    spare = ["f32[16]"] * (len(of_triton.params) - 3)
    for options in ((), ("--fail-on", "warning")):
        result = tilescope("check", file, *given, *spare, *options)
        assert result.exit_code == 0, result.output
        assert result.output.startswith("no hazards, 1 note in squares")
    result = tilescope("run", file, *given, *spare)
    assert result.exit_code == 0
    assert "verdict: 1 note" in result.output
    quiet = tilescope("run", file, *given, *spare, "--quiet")
    assert quiet.output == ""


SCRIPT = """\
import numpy as np
import triton
import triton.language as tl

@triton.jit
def norms(x, y, n, size: tl.constexpr):
    at = tl.arange(0, size)
    v = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    tl.store(y + tl.program_id(0), tl.sqrt(tl.sum(v * v, axis=0)))

x = np.random.default_rng(0).standard_normal((4, 128)).astype(np.float32)
y = np.zeros(4, np.float32)
norms[(4,)](x, y, 128, size=128, num_warps=4)
assert np.allclose(y, np.sqrt((x**2).sum(axis=1)), rtol=1e-5)
"""


@pytest.mark.filterwarnings("ignore")
def test_scripts_do_not_fail_for_it(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    result = CliRunner().invoke(main, ["exec", "--fail-on", "warning", str(file)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("1 launch of 1 kernel; no hazards, 1 note\n")
