"""``exec --fix`` and ``--diff``: edits of a program's sources, verified on its own launches."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import error_of

pytestmark = pytest.mark.slow  # nvcc takes seconds

HEADER = """\
namespace ns {
template <typename T, int N>
__global__ void reverse(T **rows, const int *count) {
  __shared__ T s[N];
  for (int r = 0; r < *count; r++) {
    s[threadIdx.x] = rows[r][threadIdx.x];
    __syncthreads();
    rows[r][threadIdx.x] = s[N - 1 - threadIdx.x];
  }
}
}
"""
MAIN = """\
#include <cstdio>
#include <vector>
#include "part.cuh"
static __constant__ int steps = 0;
static __global__ void sum(float *x) {
  __shared__ float s[SIZE];
  s[threadIdx.x] = x[threadIdx.x];
  for (int i = 0; i < steps; i++) {
    int d = SIZE >> i + 1;
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) x[0] = s[0];
}
int main(int, char **words) {
  std::vector<float> ones(SIZE, 1);
  float *p, **rows, r;
  int *n, two = 2, seven = 7;
  cudaMalloc(&p, 4 * SIZE); cudaMalloc(&rows, 16); cudaMalloc(&n, 4);
  cudaMemcpy(p, ones.data(), 4 * SIZE, cudaMemcpyDefault);
  cudaMemcpy(n, &two, 4, cudaMemcpyDefault);
  float *table[2] = {p, p};
  cudaMemcpy(rows, table, 16, cudaMemcpyDefault);
  ns::reverse<float, SIZE><<<1, SIZE>>>(rows, n);
  cudaMemcpyToSymbol(steps, &seven, 4);
  sum<<<1, SIZE>>>(p);
  cudaMemcpy(&r, p, 4, cudaMemcpyDefault);
  std::printf("%s %g\\n", words[1], r);
  cudaFree(n); cudaMalloc(&n, 4); cudaMemcpy(&two, n, 4, cudaMemcpyDefault);
  cudaFree(p); cudaFree(rows); cudaFree(n);
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A template in a header that follows pointers, and a loop that a constant bounds."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "part.cuh").write_text(HEADER)
    (tmp_path / "main.cu").write_text(MAIN)
    return tmp_path / "main.cu"


def run(source: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tilescope", "exec", *options, "-I", "inc", "-DSIZE=128", "main.cu",
         "sum"],
        capture_output=True, text=True, cwd=source.parent, timeout=200,
    )  # fmt: skip


def test_fixes_are_shown_then_written_compiled_and_run(source: Path) -> None:
    done = run(source, "--diff")
    assert done.returncode == 1
    assert done.stdout.startswith("--- a/inc/part.cuh\n")
    added = [line for line in done.stdout.splitlines() if line.startswith("+ ")]
    assert added == ["+    __syncthreads();", "+  __syncthreads();"]
    assert "sum 128\n" in done.stderr  # what the program prints
    assert source.read_text() == MAIN
    done = run(source, "--fix", "--json", "r.json")
    assert (done.returncode, done.stdout) == (0, "sum 128\nsum 128\n")
    assert "written: inc/part.cuh, main.cu\n" in done.stderr
    assert "verified in the device and source builds" in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("note: device build only")
    number, text = re.findall(r"call +main.cu:(\d+) +(.+)", done.stderr)[-1]
    line = source.read_text().splitlines()[int(number) - 1]  # of the file as it is now
    assert "cudaMalloc(&n, 4); cudaMemcpy(&two" in line
    assert line.strip().startswith(text.removesuffix("..."))
    report = json.loads((source.parent / "r.json").read_text())
    assert report["fixed"] == {
        "files": ["inc/part.cuh", "main.cu"],
        "hazards_before": 3,
    }  # two races and a note
    assert sum(kernel["hazards"] for kernel in report["kernels"]) == 0


def test_where_there_is_nothing_to_edit(source: Path) -> None:
    program = source.with_name("main")
    program.write_bytes(b"\x7fELF")
    said = error_of("exec", "--fix", program)
    assert said == f"--fix and --diff edit CUDA C++: give the .cu files, not {program}"
