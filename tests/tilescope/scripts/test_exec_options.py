"""The options of ``tilescope exec``: what they say holds for all that is printed and written."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import error_of, tilescope

SCRIPT = """
from cuda.bindings import driver, nvrtc
source = rb'extern "C" __global__ void same(float *x) { x[0] = 1; }'
program = nvrtc.nvrtcCreateProgram(source, b"same.cu", 0, [], [])[1]
nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_90"])
text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
nvrtc.nvrtcGetPTX(program, text)
driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
kernel = driver.cuModuleGetFunction(driver.cuModuleLoadData(text)[1], b"same")[1]
there = driver.cuMemAlloc(4)[1]
driver.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, 0, ((there,), (None,)), 0)
driver.cuMemFree(there)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "same.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize(
    ("choice", "code", "levels"),
    [("error", 1, ["error"] * 2), ("warning", 0, ["warning"] * 2), ("ignore", 0, [])],
)
def test_a_policy_holds_for_all_that_is_told(
    choice: str, code: int, levels: list[str], script: Path
) -> None:
    """Lanes of a warp and warps write the same: two hazards, of which a report makes one."""
    files = ("--json", "a.json", "--sarif", "a.sarif")
    done = tilescope("exec", "--equal-writes", choice, *files, script)
    assert done.exit_code == code
    assert f"1 kernel; {'1 hazard' if levels else 'no hazards'}\n" in done.stdout
    told = json.loads(Path("a.json").read_text())
    assert [h["severity"] for h in told["launches"][0]["hazards"]] == levels
    assert told["kernels"][0]["hazards"] == len(levels)
    (log,) = json.loads(Path("a.sarif").read_text())["runs"]
    assert [result["level"] for result in log["results"]] == levels


def test_one_thing_on_standard_output(script: Path) -> None:
    script.write_text("open('ran', 'w')")
    said = error_of("exec", "--json", "-", "--sarif", "-", script)
    assert said == "--json - and --sarif - cannot both have standard output"
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("nope", "unknown schedule 'nope'; there are lockstep, warps, reverse, or a seed"),
        ("--5", "unknown schedule '--5'; there are lockstep, warps, reverse, or a seed"),
        ("-5", "a schedule's seed cannot be negative: -5"),
    ],
)
def test_what_is_no_schedule_is_told_at_once(schedule: str, said: str, script: Path) -> None:
    script.write_text("open('ran', 'w')")
    assert error_of("exec", f"--schedule={schedule}", script) == said
    assert not Path("ran").exists()
    for command in ("check", "run", "barriers"):
        assert error_of(command, "matmul_naive", f"--schedule={schedule}") == said


def test_what_comments_leave_out_is_counted(script: Path) -> None:
    body = "x[0] = 1;  // tilescope: ignore[waw-race] all write 1"
    source = f"__global__ void same(float *x) {{\n    {body}\n}}\n"
    script.write_text(
        "import numpy as np, simulator\nfrom kernels import Kernel\n"
        f"kernel = Kernel.from_cuda({source!r}, 'same')\n"
        "for _ in 'twice':\n    simulator.launch(kernel, 1, 64, [np.zeros(1, np.float32)])\n"
    )
    done = tilescope("exec", "--json", "a.json", "--fail-on", "warning", script)
    assert done.exit_code == 0
    assert "5 launches of 1 kernel; no hazards but 2 ignored\n" in done.stdout
    assert "ignored by comments: 2 hazards\n" in done.stdout
    told = json.loads(Path("a.json").read_text())
    assert (told["set_aside"], told["left_out"]) == (2, 0)
    done = tilescope("exec", "--json", "a.json", "--equal-writes", "ignore", script)
    assert json.loads(Path("a.json").read_text())["set_aside"] == 2
    script.write_text(script.read_text().replace("tilescope: ignore", "nothing"))
    done = tilescope("exec", "--json", "a.json", "--equal-writes", "ignore", script)
    assert "left out by the policy chosen: 2 hazards\n" in done.stdout
    assert json.loads(Path("a.json").read_text())["left_out"] == 2


def test_a_program_that_launches_nothing_is_not_called_clean(script: Path) -> None:
    text = "".join(line for line in SCRIPT.splitlines(True) if "LaunchKernel" not in line)
    script.write_text(text.replace("driver.cuMemFree(there)", ""))
    done = tilescope("exec", script)
    assert done.exit_code == 3
    assert done.stdout.startswith("no kernel was launched, so none was checked; 1 note\n")
    assert "no hazards" not in done.stdout


def test_an_interrupted_program_may_have_launched_something(script: Path) -> None:
    script.write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    done = tilescope("exec", script)
    assert done.exit_code == 130
    assert done.stdout.startswith("no launch ended, so none was checked")


def test_an_option_behind_the_program_is_the_programs_and_noted(script: Path) -> None:
    script.write_text("import sys; print(sys.argv[1:])")
    words = ["--fix", "--json=a.json", "--size", "9"]
    done = tilescope("exec", "--allow-none", script, *words)
    assert done.stdout.splitlines()[0] == str(words)
    notes = [part.split()[0] for part in done.stderr.split("note: ")[1:]]
    assert notes == ["--fix", "--json"]
    assert not Path("a.json").exists()
    script.write_text("import sys; '--fix' in sys.argv")
    assert "note" not in tilescope("exec", "--allow-none", script, "--fix").stderr
    assert "note" not in tilescope("exec", "--allow-none", "-q", script, "--json").stderr
