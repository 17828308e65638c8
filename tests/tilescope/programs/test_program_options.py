"""Options of ``exec`` for programs: predicted times, samples, registers, how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tilescope.programs.compile import compile_program

pytestmark = pytest.mark.slow  # nvcc takes seconds
SOURCE = Path(__file__).with_name("options.cu")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both PTX and machine code for an H200."""
    out = tmp_path_factory.mktemp("program") / "options"
    compile_program([SOURCE], ["-arch=sm_90"], out)
    return out


def command(program: Path, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    report = str(program.with_name("report.json"))
    return [sys.executable, "-m", "tilescope", "exec", "--json", report, *options, str(program),
            *words]  # fmt: skip


def run(program: Path, *words: str, options: tuple[str, ...] = ()) -> tuple[Any, dict[str, Any]]:
    line = command(program, *words, options=options)
    done = subprocess.run(line, capture_output=True, text=True, cwd=SOURCE.parent, timeout=120)
    return done, json.loads(program.with_name("report.json").read_text())


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)


def test_a_template_of_the_host_launches_at_its_line(program: Path) -> None:
    """nvcc gives such lines to a file of its own."""
    _, report = run(program, "template")
    last = report["launches"][3]
    assert (Path(last["file"]).name, last["line"]) == ("options.cu", line_of("// in a template"))


def test_a_launch_within_the_configuration_of_another(program: Path) -> None:
    _, report = run(program, "nested")
    lines = [(one["line"], one["grid"][0], one["block"][0]) for one in report["launches"][3:]]
    assert lines == [(line_of("// inside"), 2, 96), (line_of("// outside"), 3, 64)]


def test_each_kernel_has_a_time_and_the_program_a_sum(program: Path) -> None:
    done, report = run(program, "turn", options=("--predict", "h200"))
    assert done.returncode == 1
    times = [launch["predicted_ms"] for launch in report["launches"]]
    assert times[0] > 0
    assert times == [times[0]] * 3 + [None]  # a launch with a race is not predicted
    scale, turn = report["kernels"]
    assert scale["predicted_ms"] == report["predicted"]["ms"] == pytest.approx(3 * times[0])
    assert turn["predicted_ms"] is None
    assert report["predicted"]["not_predicted"] == {"it has hazards": 1}
    assert "3 launches, predicted " in done.stderr
    assert "the sum of 3 launches; 1 launch not predicted" in " ".join(done.stderr.split())


def test_events_have_predicted_times(program: Path) -> None:
    """Of launches in one stream with nothing else between them, where a prediction is requested."""
    done, report = run(program, "events", options=("--predict", "h200"))
    ms = dict(line.split() for line in done.stdout.splitlines()[:-1])
    one = report["launches"][0]["predicted_ms"]
    assert float(ms.pop("one")) == pytest.approx(one, rel=1e-6)
    assert float(ms.pop("three")) == pytest.approx(3 * one, rel=1e-6)
    assert ms == {"none": "nan", "copy": "nan", "streams": "nan", "race": "nan"}
    done, _ = run(program, "events")
    assert done.stdout.count("nan\n") == 6


def test_what_was_checked(program: Path) -> None:
    done, report = run(program, "turn", options=("--sample", "1"))
    checked = [launch["checked"] for launch in report["launches"]]
    assert checked == [True, "sampled", "sampled", True]
    assert any(note.startswith("device build only") for note in report["notes"])
    assert "device build only" in done.stderr
    done, report = run(program, "turn", options=("-k", "scale"))
    assert done.returncode == 0
    assert [launch["checked"] for launch in report["launches"]] == [True, True, True, False]
    assert report["launches"][0]["predicted_ms"] is None


def test_registers_are_the_programs_own(program: Path) -> None:
    done, report = run(program, "heavy")
    assert done.returncode == 1
    assert report["kernels"][1]["registers_source"] == "program"
    assert report["kernels"][1]["registers"] > 64
    assert [h["kind"] for h in report["launches"][3]["hazards"]] == ["too-many-resources"]


def test_files_for_other_tools(program: Path, tmp_path: Path) -> None:
    options = ("--sarif", str(tmp_path / "a.sarif"), "--view", str(tmp_path / "a.html"))
    run(program, "turn", options=options)
    (log,) = json.loads((tmp_path / "a.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in log["results"]] == ["raw-race"]
    assert log["invocations"][0]["executionSuccessful"]
    page = (tmp_path / "a.html").read_text()
    assert "scale" in page
    assert "turn" in page


@pytest.mark.parametrize(("count", "code"), [("3", 0), ("4", 3)])
def test_launches_that_are_expected(program: Path, count: str, code: int) -> None:
    done, _ = run(program, options=("--expect-launches", count))
    assert done.returncode == code
    assert ("3 launches, not 4 (--expect-launches)" in done.stderr) == bool(code)


def test_as_many_launches_as_are_wanted(program: Path) -> None:
    done, report = run(program, options=("--max-launches", "2"))
    assert (done.returncode, done.stdout, len(report["launches"])) == (0, "", 2)
    assert report["outcome"] == {
        "how": "exit", "code": 0, "message": "stopped after 2 launches (--max-launches)",
        "place": f"options.cu:{line_of('i < 3; i++) scale<<<8')}",
    }  # fmt: skip
    assert report["copies"] == []  # it had no time to free its memory


def test_ctrl_c_reports_what_is_known(program: Path) -> None:
    started = subprocess.Popen(
        command(program, "spin"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline() == "waits\n"
    os.killpg(started.pid, signal.SIGINT)
    _, said = started.communicate(timeout=60)
    report = json.loads(program.with_name("report.json").read_text())
    assert started.returncode == 130
    assert report["outcome"]["how"] == "signal"
    assert report["outcome"]["code"] == signal.SIGINT
    assert len(report["launches"]) == 3
    assert "3 launches of 1 kernel; no hazards" in said


def test_a_refusal_before_the_start_is_an_outcome(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cu"
    source.write_text("int main() { return missing; }\n")
    sarif = str(tmp_path / "a.sarif")
    done, report = run(source, options=("--sarif", sarif))
    assert done.returncode == 2
    assert done.stderr.startswith("error: nvcc refuses it:\n")
    assert report["outcome"]["how"] == "refused"
    assert "missing" in report["outcome"]["message"]
    (log,) = json.loads(Path(sarif).read_text())["runs"]
    assert not log["invocations"][0]["executionSuccessful"]


def test_a_name_that_cuda_dropped_gets_its_replacement(tmp_path: Path) -> None:
    source = tmp_path / "old.cu"
    source.write_text("int main() { cudaThreadSynchronize(); }\n")
    done, _ = run(source)
    assert "cudaThreadSynchronize is now cudaDeviceSynchronize" in done.stderr


def test_headers_of_libraries_come_from_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "random.cu"
    source.write_text("#include <of_a_wheel.h>\nint main() { return OF_A_WHEEL; }\n")
    wheels = tmp_path / "wheels"
    (wheels / "nvidia/cu13/include").mkdir(parents=True)
    (wheels / "nvidia/cu13/include/of_a_wheel.h").write_text("#define OF_A_WHEEL 7\n")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{wheels}")
    done, _ = run(source, options=("--allow-none",))
    assert done.returncode == 7
    source.write_text("#include <missing/cusparse.h>\n")
    done, _ = run(source)
    assert "pip install nvidia-cusparse" in done.stderr


def test_a_kernel_alone_is_for_check(tmp_path: Path) -> None:
    source = tmp_path / "alone.cu"
    source.write_text("__global__ void k(int *x) { x[0] = 1; }\n")
    done, _ = run(source)
    assert done.returncode == 2
    assert f"tilescope check {source} runs a kernel alone" in done.stderr


def test_options_of_exec_behind_the_program_are_pointed_out(program: Path) -> None:
    done, _ = run(program, "--predict", "h200")
    assert "note: --predict stands behind the program" in done.stderr
    assert "--predict" not in run(program, "--other")[0].stderr


def test_further_options_of_nvcc(tmp_path: Path) -> None:
    source = tmp_path / "closure.cu"
    source.write_text(
        "template <class F> __global__ void go(F f) { f(threadIdx.x); }\n"
        "int main() { go<<<1, 32>>>([] __device__(int) {}); cudaDeviceSynchronize(); }\n"
    )
    done, _ = run(source)
    assert done.returncode == 2
    assert "--nvcc '--extended-lambda'" in done.stderr
    done, report = run(source, options=("--nvcc", "--extended-lambda -O1"))
    assert done.returncode == 0
    assert [kernel["kernel"] for kernel in report["kernels"]] == ["go"]


def test_a_program_without_debug_information_says_so(program: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["strip", "-g", "-o", bare, program], check=True)
    done, _ = run(bare)
    assert done.returncode == 0
    assert "\n  scale  3 launches\n" in done.stderr
    assert "the host's lines are unknown: compile with -g" in done.stderr
    assert "the host's lines" not in run(program)[0].stderr


def test_a_makefile_may_name_libraries_that_are_not_installed(tmp_path: Path) -> None:
    """``-lcuda`` is in many, and needs a driver; ``-lcublas`` needs a toolkit."""
    (tmp_path / "Makefile").write_text("main: main.cu\n\tnvcc -o main main.cu -lcuda -lcublas\n")
    (tmp_path / "main.cu").write_text(
        'extern "C" int cuCtxDestroy_v2(void *);\n'
        "int main(int n, char **) { return n > 1 ? cuCtxDestroy_v2(0) : cudaDeviceSynchronize(); }"
    )
    tool = [sys.executable, "-m", "tilescope", "exec"]
    asked = subprocess.run([*tool, "--nvcc-flags"], capture_output=True, text=True, cwd=ROOT)
    environment = os.environ | {"NVCC_APPEND_FLAGS": asked.stdout.strip()}
    subprocess.run(["make"], cwd=tmp_path, env=environment, check=True)
    line = [*tool, "--allow-none", str(tmp_path / "main")]
    assert subprocess.run(line, cwd=ROOT).returncode == 0
    done = subprocess.run([*line, "driver"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "cuCtxDestroy_v2 has no stand-in at main.cu:2" in done.stderr
    assert "driver API" in done.stderr


LINKED = """
__device__ int twice(int x);
__global__ void masks(int* a) {
    if (threadIdx.x < 16)
        a[threadIdx.x] = __shfl_sync(0xffff0000u, TWICE(a[threadIdx.x]), 3);
}
__global__ void fine(int* a) { a[threadIdx.x] = TWICE(a[threadIdx.x]); }
int main() {
    int* a;
    cudaMalloc(&a, 128);
    cudaMemset(a, 0, 128);
    masks<<<1, 32>>>(a);
    fine<<<1, 32>>>(a);
    cudaFree(a);
}
"""


@pytest.mark.parametrize(("called", "is_offered"), [("twice", False), ("-", True)])
def test_a_kernel_is_offered_alone_where_its_file_has_all_of_it(
    called: str, is_offered: bool, tmp_path: Path
) -> None:
    main, other = tmp_path / "main.cu", tmp_path / "other.cu"
    main.write_text(LINKED.replace("TWICE", called))
    other.write_text("__device__ int twice(int x) { return 2 * x; }\n")
    sources = [str(main), *[str(other)] * (not is_offered)]
    words = [sys.executable, "-m", "tilescope", "exec", "-k", "fine", "--nvcc", "-rdc=true"]
    done = subprocess.run([*words, *sources], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr  # masks has a bad mask, and is not checked
    assert "no hazards in the 1 checked" in done.stderr
    assert ("fine alone, with arrays" in " ".join(done.stderr.split())) == is_offered
    assert "masks alone" not in done.stderr
