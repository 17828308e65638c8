"""Memory, textures, graphs and queries of the runtime.

What is printed is what an H200 prints (2026-11-27, driver 580.159, CUDA 13.0).
"""

import resource
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.programs import found, run
from tilescope.cli.main import main
from tilescope.programs.compile import compile_program
from tilescope.programs.runtime.memory import allocation_calls
from tilescope.programs.shim.build import shims

pytestmark = pytest.mark.slow  # nvcc takes seconds


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    for name in ("memory", "graphs"):
        source = Path(__file__).with_name(f"{name}.cu")
        compile_program([source], ["-std=c++17"], made / name)
    return made


MEMORY = {
    "pool": "pool 3 6 9 12 15 18 21 24\n1048576\n",
    "pitched": "cudaSuccess\nbox 0 1 2 3 0 10 11 12 13 0 20 21 22 23 0 100 101 102 103 0 110 111"
    " 112 113 0 120 121 122 123 0\npart 0 0 111 112 0 0 0 121 122 0\nplane 1 2 16843009 5 6"
    " 16843009\n512 512 cudaErrorInvalidPitchValue\n",
    "texture": "point 0 1 4 9 0 16 25 36 49 0 64 81 100 121 0\nlinear 3.41406 6.21484 11.75 6.70703"
    " 4.89844 14.4141 24.4023 37.1562 22.5195 20.6484 53.5391 72.1211 93.5 67.3633 65.4922\n"
    "part 25 36 81 100\n",
    "linear": "fetch 1 2 3 4 5 6 7 8 0 0\npitch 1 2 3 4 5 6\n",
    "volume": "cudaSuccess\nvolume 9 -9 18 1 10 -10 20 1 11 -11 22 1\n",
    "surface": "surface 0 1 2 3 10 11 12 13 20 21 22 23\n32 4 3 0 2\n",
    "register": "cudaSuccess cudaErrorHostMemoryAlreadyRegistered\n4 39996 1 1 cudaSuccess"
    " cudaErrorHostMemoryNotRegistered 39996\ncudaSuccess 21 cudaSuccess 21\n",
    "mapped": "mapped 0 5 10 15 20 25 30 35\n3 1\n",
    "pointers": "2 0 1 0\n3 0 1 1\n2 0 1 0\n0 -2 0 1\ncudaSuccess cudaSuccess"
    " cudaErrorInvalidValue\n",
    "heap": "heap 2016\n",
    "symbols": "symbols 3 4 1 2\n16 cudaErrorInvalidValue\n",
}
GRAPHS = {
    "capture": "cudaSuccess 1 0 6 1\nhost hello\nhost hello\nsum 561 22 33 44 55 66 77 88\n",
    "race": "",
    "nodes": "0 2\nhost hello\nhost hello\nnodes 8 9 10 11 12 13 14 15\ncudaSuccess\nhost hello\n"
    "host hello\nchanged 18 18 18 18 18 18 18 18\ncudaSuccess cudaErrorGraphExecUpdateFailure 2\n",
    "mistakes": "cudaErrorStreamCaptureUnsupported cudaErrorStreamCaptureInvalidated 1"
    " cudaErrorStreamCaptureUnsupported\n"
    "cudaErrorCapturedEvent cudaErrorStreamCaptureInvalidated\n"
    "cudaErrorStreamCaptureUnmatched cudaErrorStreamCaptureInvalidated\n"
    "cudaErrorStreamCaptureUnsupported cudaErrorStreamCaptureInvalidated\n",
    "memory": "own 3 6 9 12 15 18 21 24\n",
    "launch": "cudaSuccess\nlaunch 10 0 10 0 3 3 3\ncudaErrorCooperativeLaunchTooLarge\n",
    "queries": "256 256 48896 1\n5 cudaSuccess 2 264 1024 cudaErrorInvalidValue\n49152 0 -5 -1 1\n"
    "cudaSuccess cudaErrorPeerAccessUnsupported cudaErrorPeerAccessNotEnabled"
    " cudaErrorInvalidDevice 0\n",
    "events": "0 cudaSuccess cudaErrorInvalidResourceHandle\n",
}
FINDINGS = {"pitched": ["bad-copy"], "symbols": ["bad-copy"], "race": ["host-order"],
            "launch": ["launch-error"]}  # fmt: skip


@pytest.mark.parametrize("word", [*MEMORY, *GRAPHS])
def test_calls_do_what_they_do_on_a_gpu(folder: Path, word: str) -> None:
    program = folder / ("memory" if word in MEMORY else "graphs")
    code, printed, report = run(program, word)
    assert printed == (MEMORY | GRAPHS)[word] + "no error\n"
    assert found(report) == FINDINGS.get(word, [])
    assert (code == 1) == (word in FINDINGS)


def test_memory_that_this_machine_has_not_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    free_bytes = (1 << 30) - 1
    monkeypatch.setattr(allocation_calls, "available_bytes", lambda: free_bytes)
    done = CliRunner().invoke(main, ["exec", str(folder / "memory"), "large"])
    assert (done.exit_code, capfd.readouterr().out) == (2, "")
    why = "an allocation of 268,435,456 bytes: simulating them takes 4 times as many"
    assert why in " ".join(done.stderr.split())


def test_nodes_of_a_list_are_managed_allocations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    code, printed, report = run(folder / "memory", "list", "700")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (code, printed, found(report)) == (0, "list 244650\nno error\n", [])


def test_more_managed_allocations_than_there_are_addresses(folder: Path) -> None:
    done = CliRunner().invoke(main, ["exec", str(folder / "memory"), "list", "1377"])
    assert done.exit_code == 2
    why = "1,376 managed and pinned allocations are alive, as many as can be"
    assert why in " ".join(done.stderr.split())


def test_a_graph_allocates_again_what_was_freed_outside_of_it(folder: Path) -> None:
    """As NVIDIA's sample graphMemoryNodes asserts it."""
    code, printed, report = run(folder / "graphs", "outside")
    assert (code, printed) == (0, "cudaSuccess " * 6 + "\nno error\n")
    assert found(report) == []
    code, _, report = run(folder / "graphs", "outside", "used")
    assert (code, found(report)) == (1, ["use-after-free"])


def test_a_kernel_prints_when_the_host_waits(folder: Path) -> None:
    code, printed, _ = run(folder / "graphs", "printed")
    assert printed == "before\ndevice 1\nafter\ndevice 2\ncalled 0 hello\ndevice 3\n"
    assert code == 0


def test_files_of_relocatable_device_code_share_their_symbols(tmp_path: Path) -> None:
    sources = [Path(__file__).with_name(f"{name}_unit.cu") for name in ("one", "other")]
    compile_program(sources, ["-rdc=true"], tmp_path / "linked")
    code, printed, report = run(tmp_path / "linked")
    assert (code, printed.split("\n")[:2]) == (1, ["first 98", "98"])
    (hazard,) = [h for launch in report["launches"] for h in launch["hazards"]]
    assert hazard["kind"] == "waw-race"
    assert Path(hazard["involved"][0]["file"]).name == "other_unit.cu"


CUDA_12 = """
#include <cstdio>
#include <cstring>
extern "C" int cudaGetDeviceProperties_v2(void *, int), cudaRuntimeGetVersion(int *);
extern "C" int cudaStreamCreate(void **), cudaStreamBeginCapture(void *, int);
extern "C" int cudaStreamGetCaptureInfo_v2(void *, int *, long *, void **, void ***, size_t *);
extern "C" int cudaMemsetAsync(void *, int, size_t, void *), cudaMalloc(void **, size_t);
extern "C" int cudaFree(void *);
int main() {
  char properties[1032];
  int version, status, clock;
  void *stream, *memory, *graph, **nodes;
  long id;
  size_t count;
  cudaGetDeviceProperties_v2(properties, 0);
  std::memcpy(&clock, properties + 348, 4);  // CUDA 13 has no clockRate
  cudaRuntimeGetVersion(&version);
  cudaMalloc(&memory, 4);
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, 2);
  cudaMemsetAsync(memory, 0, 4, stream);
  cudaStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count);
  std::printf("%s %d %d %d %zu\\n", properties, clock, version / 1000, status, count);
  cudaFree(memory);
}
"""


def test_a_program_of_cuda_12_gets_its_layouts(tmp_path: Path) -> None:
    source, program = tmp_path / "old.cpp", tmp_path / "old"
    source.write_text(CUDA_12)
    library = str(shims()[1])
    subprocess.run(["g++", "-o", str(program), str(source), library], check=True)
    code, printed, report = run(program)
    assert (code, printed) == (3, "NVIDIA H200, simulated by tilescope 1980000 12 1 1\n")
    assert found(report) == []


@pytest.mark.parametrize("options", [[], ["-DLINKED", "-lcuda"]])
def test_a_tensor_map_of_the_driver_is_one_of_the_simulator(
    tmp_path: Path, options: list[str]
) -> None:
    source = Path(__file__).with_name("tensor.cu")
    compile_program([source], options, tmp_path / "tensor")
    code, printed, report = run(tmp_path / "tensor")
    assert (code, printed) == (0, "0 0\n216 223 0 249\n1\n")
    assert found(report) == []
