"""Every finding names the user's own line first, then the calls, in both builds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, KernelError
from simulator import Hazard, Run
from tests.support.paths import DEFECTS

BUILDS = ("device", "source")

CALLS = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ __noinline__ void put(int* a, int i) {
    a[i] = i;
}
__device__ __forceinline__ void quick(int* a, int i) {
    a[i] = i;
}
__device__ void deep(int* a, int i) {
    put(a, i + 1);
}
__global__ void k(int* a, int n) {
    put(a, threadIdx.x);
    put(a, threadIdx.x + n);
    quick(a, threadIdx.x + n);
    deep(a, threadIdx.x + n);
}
__global__ void once(int* a, int n) {
    if (threadIdx.x == 0)
        put(a, 3);
    put(a, threadIdx.x + n);
}
__global__ void atomics(int* a, int n) {
    atomicAdd(a, 1);
    if (threadIdx.x == 3)
        atomicAdd(a + n, 1);
    atomicAdd(a + 1, 1);
}
__global__ void sync(int* a, int n) {
    if (threadIdx.x < 64)
        cg::this_thread_block().sync();
    a[threadIdx.x] = 1;
    cg::this_thread_block().sync();
}
"""


def launch(source: str | Path, entry: str, build: str, args: list[Any], block: int = 32) -> Run:
    return simulator.launch(Kernel.from_cuda(source, entry, build=build), 1, block, args)


def only(run: Run, kind: str) -> list[Hazard]:
    return [h for h in run.hazards if h.kind == kind]


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", BUILDS)
def test_the_calls_that_led_to_a_line(build: str) -> None:
    run = launch(CALLS, "k", build, [np.zeros(32, np.int32), 100])
    put, quick = only(run, "out-of-bounds")
    assert (put.lines, quick.lines) == ((4,), (7,))
    [item] = put.involved
    assert [source.line for source in (*item.calls, *item.also)] == [14, 10]
    assert "called from kernel.cu:14  put(a, threadIdx.x + n);" in str(put)
    assert [source.line for source in quick.involved[0].calls] == [15]
    assert item.to_dict()["calls"] == [
        {"file": "kernel.cu", "line": 14, "code": "put(a, threadIdx.x + n);"}
    ]


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
def test_the_actual_caller_where_there_are_two(build: str) -> None:
    run = launch(CALLS, "once", build, [np.zeros(32, np.int32), 100])
    [hazard] = only(run, "out-of-bounds")
    [item] = hazard.involved
    assert [source.line for source in item.calls] == [21]
    assert item.also == ()


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", BUILDS)
def test_a_system_function_called_from_several_lines(build: str) -> None:
    run = launch(CALLS, "atomics", build, [np.zeros(32, np.int32), 100])
    [hazard] = run.hazards
    assert (hazard.kind, hazard.lines) == ("out-of-bounds", (26,))
    assert hazard.sources[0].code == "atomicAdd(a + n, 1);"
    atomics = {line.line: line.counters.global_atomic.accesses for line in run.by_line()}
    assert (atomics[24], atomics[27]) == (32, 32)


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
def test_the_users_line_before_the_header(build: str) -> None:
    run = launch(DEFECTS / "check" / "header_line.cu", "k", build, [np.zeros(32, np.int32)])
    [hazard] = run.hazards
    assert hazard.kind == "barrier-divergence"
    assert set(hazard.lines) == {4, 5}  # the branch and the barrier
    assert {Path(source.file).name for source in hazard.sources} == {"header_line.cu"}
    [inside] = [item.inside for item in hazard.involved if item.source.line == 5]
    assert inside is not None
    assert inside.file.startswith("cooperative_groups/")
    assert f"in {inside}" in str(hazard)


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
def test_line_tables_name_no_header(build: str) -> None:
    run = launch(CALLS, "sync", build, [np.zeros(96, np.int32), 0], block=96)
    assert {line.file for line in run.by_line()} == {"kernel.cu"}
    assert {31, 32, 33} <= {line.line for line in run.by_line()}


def test_copies_of_a_function_share_its_local_memory_and_keep_results() -> None:
    """Each call has a copy of the function; what it computes does not change."""
    source = """
__device__ __noinline__ int pick(const int* from, int n) {
    int own[8];
    for (int i = 0; i < 8; i++) own[i] = from[(i * 3 + n) % 8];
    return own[n % 8] + own[(n + 5) % 8];
}
__global__ void k(int* a, const int* b) {
    int t = threadIdx.x;
    int sum = pick(b, t) * 3;
    if (t & 1) sum += pick(b + 8, t + 1);
    else sum -= pick(b + 16, t + 2);
    for (int i = 0; i < 3; i++) sum += pick(b + i, i + t);
    a[t] = sum;
}
"""
    b = (np.arange(40, dtype=np.int32) * 7) % 31

    def pick(at: int, n: int) -> int:
        own = [int(b[at + (i * 3 + n) % 8]) for i in range(8)]
        return own[n % 8] + own[(n + 5) % 8]

    expected = []
    for t in range(32):
        total = pick(0, t) * 3
        total += pick(8, t + 1) if t & 1 else -pick(16, t + 2)
        expected.append(total + sum(pick(i, i + t) for i in range(3)))
    for build in BUILDS:
        a = np.zeros(32, np.int32)
        run = launch(source, "k", build, [a, b])
        assert run.hazards == []
        assert a.tolist() == expected


@pytest.mark.slow
def test_calls_that_were_inlined_deep_in_a_library_lead_to_the_users_line() -> None:
    source = """\
#include <cub/block/block_scan.cuh>
__global__ void k(int* x) {
    using Scan = cub::BlockScan<int, 128>;
    __shared__ typename Scan::TempStorage store;
    int v = x[threadIdx.x];
    Scan(store).ExclusiveSum(v, v);
    x[threadIdx.x] = v;
}
"""
    run = launch(source, "k", "device", [np.ones(128, np.int32)], block=128)
    assert {line.file for line in run.by_line()} == {"kernel.cu"}
    assert run.data_dependence is None or run.data_dependence.file == "kernel.cu"
    shared = {line.line: line.counters.shared_store.accesses for line in run.by_line()}
    assert {line for line, n in shared.items() if n} == {6}


@pytest.mark.parametrize("name", ["é☃.cu", "a {b}%s'.cu", 'a"\\n\\"b.cu'])
@pytest.mark.parametrize("build", BUILDS)
def test_files_of_any_name_are_found_again(tmp_path: Path, name: str, build: str) -> None:
    """NVRTC names a file in PTX by octal digits where it is not ASCII; a brace makes no text."""
    folder = tmp_path / f"José's {{folder}} of {name}"
    folder.mkdir()
    (folder / "own.h").write_text("void host();\n__device__ int last(int* a) { return a[32]; }\n")
    (folder / name).write_text(
        '#include "own.h"\n__global__ void k(int* a) { a[threadIdx.x + 1] = last(a); }\n'
        "int main() { k<<<1, 32>>>(0); }\n"
    )
    kernel = Kernel.from_cuda(folder / name, "k", build=build)
    run = simulator.launch(kernel, 1, 32, [np.zeros(32, np.int32)], checks=["memory"])
    for hazard, file in zip(run.hazards, (folder / "own.h", folder / name), strict=True):
        source = hazard.involved[0].source
        assert source
        assert (Path(source.file), source.line) == (file, 2)
        assert source.code.startswith(("__device__ int last", "__global__ void k"))


@pytest.mark.parametrize("name", ["a\nb", "a\r\tb"])
def test_control_characters_of_a_name_are_not_told(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "own.h").write_text("void host();\n__device__ int last(int* a) { return a[32]; }\n")
    (folder / "k.cu").write_text(
        '#include "own.h"\n__global__ void k(int* a) { *a = last(a); }\nint main() { host(); }\n'
    )
    run = simulator.launch(Kernel.from_cuda(folder / "k.cu", "k"), 1, 1, [np.zeros(32, np.int32)])
    source = run.hazards[0].involved[0].source
    assert source
    assert Path(source.file).parent.name == "a" + "\ufffd" * (len(name) - 2) + "b"


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """Python holds such bytes of a file's name as lone surrogates."""
    file = tmp_path / "b\udcff.cu"
    try:
        file.write_text("__global__ void k(int* a) { a[threadIdx.x + 1] = 1; }")
    except OSError:
        pytest.skip("this file system has no such names")
    run = simulator.launch(Kernel.from_cuda(file, "k"), 1, 32, [np.zeros(32, np.int32)])
    source = run.hazards[0].involved[0].source
    assert source
    assert Path(source.file).name == "b?.cu"
    with pytest.raises(KernelError, match=r"no kernel 'k.*' in this source"):
        Kernel.from_cuda(file, "k\udcff")
    text = Kernel.from_cuda(file, "k").ptx + "// \ud800"
    assert len(Kernel.from_ptx(text).sha256) == 64
