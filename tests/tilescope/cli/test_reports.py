"""How a report ends, what its lines are sorted by, and narrow terminals."""

import re
from pathlib import Path

import pytest

from tests.support.command_line import tilescope

REACH = "__global__ void reach(float* x, int by) { x[threadIdx.x + by] = 1.0f; }\n"


@pytest.mark.slow_but("reach.cu --grid 1...")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("matmul_missing_first_barrier --size 32", "1 error, 1 warning; right result; tilescope"),
        (
            "matmul_tiled --size 16 --checks races",
            "no hazards among races, the rest not",
        ),
        ("matmul_tiled --size 16 --checks none", "hazards not checked; right result"),
        ("reach.cu --grid 1 --block 8 f32[8] 0", "no hazards; result not checked (--expect"),
        ("reach.cu --grid 1 --block 8 f32[8] 0 --expect x=2", "x wrong; no hazards"),
        ("reach.cu --grid 1 --block 8 f32[8] 9", "1 error; result not checked (--expect"),
    ],
)
def test_a_run_ends_with_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reach.cu").write_text(REACH)
    result = tilescope("run", *words.split())
    told = result.stdout.partition("\n\nverdict: ")[2].replace("\n ", "")
    assert told.startswith(said), told
    assert result.exit_code == ("error" in said or "wrong" in said)


SORTED = """\
__global__ void sorted(float* x, int n) {
    __shared__ float s[2048];
    int t = threadIdx.x;
    for (int i = 0; i < n; ++i) t = t * t + i;
    s[threadIdx.x * 32] = t;
    __syncthreads();
    x[threadIdx.x * 4] = s[2016 - threadIdx.x * 32];
}
"""


@pytest.mark.slow_but("instr-4")
@pytest.mark.parametrize(
    ("by", "first"),
    [("cost", 7), ("instr", 4), ("sectors", 7), ("waves", 5), ("line", 1)],
)
def test_busiest_lines_are_sorted(tmp_path: Path, by: str, first: int) -> None:
    """By what costs most, or by what was asked for: each puts another line first."""
    (tmp_path / "s.cu").write_text(SORTED)
    words = ("run", tmp_path / "s.cu", "--grid", 1, "--block", 64, "f32[256]", 20, "--sort", by)
    shown = tilescope(*words).stdout
    rows = shown.partition("busiest lines by ")[2].splitlines()[3:]
    assert int(rows[0].split()[0]) == first, shown
    lines = tilescope(*words, "--by-line").stdout.partition("traffic of each line")[2]
    numbers = [int(n) for n in re.findall(r"^ +(\d+)  \S", lines, re.M)]
    assert numbers[0] == first
    beside = tilescope(*words, "--compare", "sorted").stdout.split("traffic of each line")[1:]
    assert [re.findall(r"^ +(\d+)  \S", part, re.M) for part in beside] == [
        [*map(str, numbers)]
    ] * 2


@pytest.mark.slow_but("list", "list --faulty", "run matmul_tiled --size...")
@pytest.mark.parametrize(
    "words",
    [
        "list", "list --faulty", "run matmul_tiled --size 16",
        "run matmul_tiled --size 16 --gpu h200 --registers 40",
        "run matmul_naive --size 16 --compare matmul_padded",
        "run matmul_tiled --size 16 --by-line",
        "check matmul_missing_first_barrier --size 32", "barriers matmul_tiled --size 16",
        "predict matmul_tiled --size 64 --gpu h100,h200", "run reduction_shuffle",
    ],
)  # fmt: skip
def test_a_narrow_terminal(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = tilescope(*words.split()).stdout.splitlines()
    assert shown
    assert [line for line in shown if len(line) > 40 and " " in line.strip()] == []


TWO = """
#include <cuda_bf16.h>
struct S { float* p; int n; };
__device__ float g[32], constant = 2, unused;
__device__ int taken;
__device__ int* where = &taken;
template <int N> __global__ void field(S s, float* y) { s.p[threadIdx.x] = N; y[threadIdx.x] = 1; }
template <int N> __global__ void variable(float* y) { g[threadIdx.x] = N; y[threadIdx.x] = 1; }
template <int N> __global__ void reader(float* y) { y[threadIdx.x] = constant; }
template <int N> __global__ void other(float*) { unused = N; *where = N; }
template <int N> __global__ void surface(cudaSurfaceObject_t s) {
    surf2Dwrite(float(N), s, threadIdx.x * 4, 0);
}
template <int N> __global__ void narrow(__nv_bfloat16* y) { y[threadIdx.x] = float(3 - 2 * N); }
"""
DIFFER = "32 of 32 elements differ, by {} at most"


@pytest.mark.slow_but("other-words4-not...")
@pytest.mark.parametrize(
    ("entry", "words", "said"),
    [
        ("field", ("struct(f32[32],32)", "f32[32]"), f"s.p: {DIFFER.format(1)}"),
        ("variable", ("f32[32]", "--symbol", "g=f32[32]"), f"g: {DIFFER.format(1)}"),
        ("variable", ("f32[32]",), "not compared, as no --symbol gives an array: g"),
        ("reader", ("f32[32]",), "arrays: both leave the same in every array given, bit for bit"),
        ("other", ("f32[32]",), "not compared, as no --symbol gives an array: taken, unused"),
        ("surface", ("surface:f32[1,32]",), f"s: {DIFFER.format(1)}"),
        ("narrow", ("bf16[32]",), f"y: {DIFFER.format(2)}"),
    ],
)
def test_all_that_two_kernels_leave_is_compared(
    tmp_path: Path, entry: str, words: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "two.cu"
    file.write_text(TWO)
    shape = ("--grid", 1, "--block", 32)
    done = tilescope("run", file, f"{entry}<1>", *shape, *words, "--compare", f"{entry}<2>")
    assert said in done.stdout.splitlines(), done.stdout
    assert ("no --symbol" in done.stdout) == ("no --symbol" in said)


def test_headers_of_one_name_are_told_apart_and_a_plot_may_go_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).mkdir()
        body = "{ x[threadIdx.x] *= 3; }"
        Path(name, "h.cuh").write_text(f"__device__ void {name}(float* x) {body}\n")
    calls = 'for (int i = 0; i < 21; i++) printf("x\\n"); a(x); b(x);'
    includes = '#include "a/h.cuh"\n#include "b/h.cuh"\n'
    Path("k.cu").write_text(f"{includes}__global__ void k(float* x) {{ {calls} }}\n")
    words = ("run", "k.cu", "--grid", 1, "--block", 1, "f32[1]")
    said = tilescope(*words).stdout
    assert "a/h.cuh:1" in said
    assert "b/h.cuh:1" in said
    assert "... and 1 more line: --json" in said
    drawn = tilescope(*words, "--gpu", "h200", "--registers", 16, "--plot", "-")
    assert drawn.stdout.startswith("<svg")
    assert not Path("-").exists()
