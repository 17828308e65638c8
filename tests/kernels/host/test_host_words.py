"""What a host compiler takes and NVRTC does not, and what is said of kernels that are left out."""

from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import CompileError

TAKES = "__global__ void k(int* x) { *x = 1; }\n"


def test_wide_integers_are_long_where_the_source_needs_it() -> None:
    source = """
#include <cstdint>
template <class T> struct Top;
template <> struct Top<long> { static const uint64_t value = INT64_MAX; };
template <> struct Top<long long> { static const uint64_t value = 1; };
__device__ int size(int64_t) { return 1; }
__device__ int size(long long) { return 2; }
__global__ void k(uint64_t* a, unsigned long* b) {
    b = a;
    *b = Top<int64_t>::value - size(INT64_C(0)) - size(0LL);
}
"""
    a = np.zeros(1, np.uint64)
    simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [a, a])
    assert a.tolist() == [2**63 - 4]
    mine = "#include <cstdint>\n__global__ void k(uint64_t* a) { atomicAdd(a, uint64_t(2)); }"
    simulator.launch(Kernel.from_cuda(mine, "k"), 1, 1, [a])  # as nvcc on Windows has it
    assert a.tolist() == [2**63 - 2]
    with pytest.raises(CompileError, match=r"types are: \(int64_t \*, int64_t\)"):
        Kernel.from_cuda(mine.replace("uint64_t", "int64_t"), "k")


def test_constants_of_the_host_may_have_a_parameter_s_name(tmp_path: Path) -> None:
    source = """
#include <vector>
#include "said.cuh"
const float cutoff = 1.5f, square = cutoff * cutoff;
const std::vector<int> sizes = {1, 2};
__global__ void k(float* x, float square, int sizes) { *x = square + sizes; }
int main() { SAID(k<<<1, 1>>>(0, square, sizes[0])); }
"""
    (tmp_path / "said.cuh").write_text("#define SAID(call) \\\n  call; \\\n")  # nvcc takes it
    (tmp_path / "a.cu").write_text(source)
    x = np.zeros(1, np.float32)
    simulator.launch(Kernel.from_cuda(tmp_path / "a.cu", "k"), 1, 1, [x, 4.0, 3])
    assert x.tolist() == [7.0]
    (tmp_path / "a.cu").write_text(source.replace(", int sizes)", ")"))
    with pytest.raises(CompileError, match="sizes is the host's: it is not marked __device__"):
        Kernel.from_cuda(tmp_path / "a.cu", "k")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (f"#ifdef GPU\n{TAKES}#endif\n",
         "k stands under #ifdef GPU (line 2); --option=-DGPU would define GPU"),
        (f"#ifndef A_H\n#define A_H\n#if CPU // not here\n#else\n# if defined(GPU)\n{TAKES}"
         "#endif\n#endif\n#endif",
         "k stands under #else (line 4), #if defined(GPU) (line 5); --option=-DGPU would"),
        (f"#if N > 3 && \\\n  M\n\n{TAKES}#endif\n", "k stands under #if N > 3 && M (line 1)"),
        ('#include "rest/k.cuh"\n', "functions: none\n(not found: rest/k.cuh; -I FOLDER says"),
        ("struct P { int a; };\n__global__ void k(int* x) { P p = {\n .a = 1 }; *x = p.a; }",
         "--option=-std=c++20"),
    ],
)  # fmt: skip
def test_what_leaves_a_kernel_out_is_told(source: str, words: str) -> None:
    with pytest.raises(CompileError) as told:
        Kernel.from_cuda("\n" + source if source.startswith("#ifdef") else source, "k")
    assert words in str(told.value)
    if "--option=" in words:
        option = words.split("--option=")[1].split()[0]
        assert Kernel.from_cuda(source, "k", options=[option]).name
