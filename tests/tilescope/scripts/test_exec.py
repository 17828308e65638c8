"""``tilescope exec`` and ``session``: scripts of GPU users run here as they are."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
import tilescope
from kernels import Kernel
from tests.support.gpu_scripts import DRIVER, NUMBA, SOURCE, STREAMS, TRITON
from tests.support.host_scripts import HOST_READS, NUMBA_NAMES
from tests.support.paths import ROOT
from tilescope.scripts.run import intercepted, run_script
from tilescope.scripts.virtual_device import VirtualDevice

SCRIPTS = ROOT / "examples" / "gpu_scripts"


def run(script: Path, *words: str, options: tuple[str, ...] = ()) -> Any:
    """The command in a process of its own, as a user runs it."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tilescope", "exec", *options, str(script), *words],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture
def driver_script(tmp_path: Path) -> Path:
    path = tmp_path / "some_script.py"
    path.write_text(DRIVER)
    return path


@pytest.mark.slow
def test_a_script_of_the_driver_api(driver_script: Path) -> None:
    done = run(driver_script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("right\n2 launches of 2 kernels; no hazards\n")
    line = DRIVER.splitlines().index(next(x for x in DRIVER.splitlines() if '(b"twice"), 4' in x))
    assert f"some_script.py:{line + 1}  1 launch" in done.stdout


@pytest.mark.slow
def test_the_driver_copies_what_cuda_core_allocates(tmp_path: Path) -> None:
    """And what a kernel prints is printed."""
    pytest.importorskip("cuda.core")
    path = tmp_path / "mixed.py"
    path.write_text("""
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, launch
source = r'extern "C" __global__ void k(int* x) { printf("%d\\n", x[threadIdx.x]++); }'
device = Device()
device.set_current()
stream = device.create_stream()
kernel = Program(source, "c++").compile("cubin").get_kernel("k")
x = np.arange(3, dtype=np.int32)
there = device.allocate(12, stream=stream)
print(driver.cuMemcpyHtoD(there.handle, x.ctypes.data, 12)[0].value)
launch(stream, LaunchConfig(grid=1, block=3), kernel, there)
stream.sync()
print(driver.cuMemcpyDtoH(x.ctypes.data, there.handle, 12)[0].value, *x)
""")
    assert run(path).stdout.startswith("0\n0\n1\n2\n0 1 2 3\n1 launch")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("--racy", "Missing barrier: shared `s` is read"),
        (
            "--freed",
            "parameter 1 points into memory freed at some_script.py:54",
        ),
        ("--unset", "uninitialised read of"),
    ],
)
def test_what_is_wrong_in_it(word: str, found: str, driver_script: Path) -> None:
    done = run(driver_script, word)
    assert found in " ".join(done.stdout.split())
    assert ("some_script.py:" if word == "--freed" else "some.cu:") in done.stdout
    assert done.returncode == (0 if "warning: " in done.stdout else 1)


@pytest.mark.slow
def test_what_has_no_stand_in_is_named(driver_script: Path) -> None:
    done = run(driver_script, "--missing")
    assert done.returncode == 2
    assert "no stand-in for cuda.bindings.driver.cuTensorMapEncodeTiled" in done.stderr
    assert "Traceback" in done.stderr
    assert "runpy" not in done.stderr


@pytest.mark.slow
def test_files_for_other_tools(driver_script: Path, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "a.sarif", "a.html")]
    options = ("-q", "--json", files[0], "--sarif", files[1], "--view", files[2], "-k", "racy")
    done = run(driver_script, "--racy", options=options)
    assert (done.returncode, done.stdout) == (1, "right\n")
    content = json.loads(Path(files[0]).read_text())
    assert content["schema"] == 1
    assert [k["kernel"] for k in content["kernels"]] == ["twice", "thrice", "racy"]
    said = {"file", "line", "kernel", "grid", "block", "counters", "hazards"}
    assert said <= set(content["launches"][2])
    assert [len(launch["hazards"]) for launch in content["launches"]] == [0, 0, 1]
    assert len(json.loads(Path(files[1]).read_text())["runs"][0]["results"]) == 1
    assert "racy" in Path(files[2]).read_text()


@pytest.mark.slow
def test_launches_can_be_few_or_none(driver_script: Path) -> None:
    done = run(driver_script, "--racy", options=("--max-launches", "2"))
    assert done.returncode == 0
    assert "stopped after 2 launches (--max-launches)" in done.stderr
    done = run(driver_script, "--racy", options=("-k", "twice"))
    assert done.returncode == 0
    assert "not checked: 1 of thrice, 1 of racy" in done.stdout
    assert "3 launches of 3 kernels; no hazards in the 1 checked" in done.stdout
    done = run(driver_script, options=("-k", "nope"))
    told = "error: -k nope: no launch was of that name; launched: twice, thrice\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert "2 launches of 2 kernels; not checked" in done.stdout


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


OTHERS = {
    "cupy.py": "",
    "cutlass/cute.py": "",
    "tilelang/jit/kernel.py": "class JITKernel: ...",
    "warp/_src/context.py": "class Runtime:\n    def get_device(self, ident): return ident",
}
"""What is there of front ends that have no stand-in."""


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no data')", 1, "no data"),
        ("import sys; assert sys.argv[1:] == ['--a', '-k']", 0, ""),
        ("x = 1\nraise ValueError('wrong')", 1, "line 2, in <module>"),
        ("import math, beside; assert beside.NUMBER == 3", 0, ""),
        ("import cupy", 1, "no stand-in for CuPy"),
        ("import cutlass.cute", 1, "CUTE_DSL_KEEP_PTX=1"),
        ("import tilelang.jit.kernel as t; t.JITKernel()(1)", 1, "get_kernel_source()"),
        ("import warp._src.context as c; assert c.Runtime().get_device('cpu') == 'cpu'", 0, ""),
        ("import warp._src.context as c; c.Runtime().get_device('cuda:0')", 1, "use_ptx=True"),
    ],
)
def test_a_script_ends_as_it_would(text: str, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NUMBER = 3")
    for name, content in OTHERS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    before = list(sys.path), list(sys.argv), list(sys.meta_path)
    found, end, *_ = run_script(write(tmp_path, text), ["--a", "-k"], VirtualDevice())
    assert found == code
    assert said in end
    assert (sys.path, sys.argv, sys.meta_path) == before
    for name in [*sys.modules]:
        if name.split(".")[0] in ("beside", "cupy", "cutlass", "tilelang", "warp"):
            del sys.modules[name]


def test_everything_is_put_back() -> None:
    from cuda.bindings import driver, nvrtc

    before = dict(vars(driver)), dict(vars(nvrtc))
    with intercepted(VirtualDevice()):
        assert driver.cuInit is not before[0]["cuInit"]
    assert (dict(vars(driver)), dict(vars(nvrtc))) == before


def test_a_session_collects_launches() -> None:
    kernel = Kernel.from_cuda(SOURCE, "racy")
    x = np.zeros(64, np.float32)
    with tilescope.session() as s:
        for _ in range(2):
            simulator.launch(kernel, 1, 64, [x])
    simulator.launch(kernel, 1, 64, [x])
    assert len(s.launches) == 2
    assert {h.kind for h in s.hazards} == {"raw-race"}
    ((name, file, _),) = s.places()
    assert (name, file) == ("racy", __file__)
    assert s.to_dict()["kernels"][0]["launches"] == 2


FRONT_ENDS = [
    ("cuda_core_saxpy.py", "cuda.core", 1),
    ("numba_pipeline.py", "numba_cuda", 2),
    ("triton_softmax.py", "triton", 1),
    ("torch_triton.py", "torch", 4),
]


@pytest.mark.slow_cases("cuda_core_saxpy.py-cuda.core-1")
@pytest.mark.parametrize(("name", "needs", "launches"), FRONT_ENDS)
def test_the_examples(name: str, needs: str, launches: int, tmp_path: Path) -> None:
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    done = run(SCRIPTS / name)
    assert done.returncode == 0, done.stderr
    told = next(line for line in done.stdout.splitlines() if " launch" in line)
    assert told.startswith(f"{launches} launch")
    assert "no hazards" in told


def test_a_race_of_numbas(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda", reason="the extra numba")
    done = run(SCRIPTS / "numba_pipeline.py", "--racy")
    assert done.returncode == 1
    assert "cuda.atomic.add(mine, va" in done.stdout


def test_numbas_host_side(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda", reason="the extra numba")
    done = run(write(tmp_path, NUMBA))
    assert done.returncode == 0, done.stderr
    assert "no stand-in for numba.cuda.external_stream" in done.stdout


def test_numbas_names(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda", reason="the extra numba")
    done = run(write(tmp_path, NUMBA_NAMES))
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("error: ") == done.stdout.count("uninitialised read of") == 1


def test_tritons_host_side(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="the extra triton")
    done = run(write(tmp_path, TRITON))
    assert done.returncode == 0, done.stderr
    assert "3 launches of 2 kernels; no hazards" in done.stdout


@pytest.mark.slow_but("numba", "words1")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("words", [(), ("--faulty",)])
@pytest.mark.parametrize("name", STREAMS)
def test_order_of_streams(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip({"numba": "numba_cuda"}.get(name, name), reason=f"{name} is not installed")
    script = write(tmp_path, STREAMS[name])
    with tilescope.session() as made:
        assert run_script(script, words, VirtualDevice(order=made.order))[:2] == (0, "")
    assert {h.kind for h in made.hazards} == ({"host-order"} if words else set())
    assert bool(made.launches[1].run.hazards) == bool(words)
    calls = ("twice", "launch", "copy", "close", "ones")
    lines = [i.source.code for hazard in made.hazards for i in hazard.involved]
    assert all(any(call in line for call in calls) for line in lines)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("words", [(), ("--faulty",)])
@pytest.mark.parametrize("name", HOST_READS)
def test_the_host_waits_for_pinned_memory(name: str, words: Any, tmp_path: Path) -> None:
    pytest.importorskip({"numba": "numba_cuda"}.get(name, name), reason=f"{name} is not installed")
    with tilescope.session() as made:
        script = write(tmp_path, HOST_READS[name])
        assert run_script(script, words, VirtualDevice(order=made.order))[:2] == (0, "")
    assert [h.kind for h in made.hazards] == (["host-order"] if words else [])
    for hazard in made.hazards:
        assert hazard.message.startswith("the host reads its array[0], which")
        assert "== 2" in hazard.involved[0].source.code or "sum" in hazard.involved[0].source.code


def test_the_notebooks_cells_run(capsys: pytest.CaptureFixture[str]) -> None:
    cells = json.loads((ROOT / "examples" / "notebook.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for text in code[:-1]:
        exec(text, names)
    assert "Missing barrier: shared `s` is read" in capsys.readouterr().out
    assert "<iframe" in eval(code[-1], names)._repr_html_()
