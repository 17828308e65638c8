"""What nvcc takes and NVRTC by itself does not: spellings, names that need no include, Thrust."""

from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import CompileError


@pytest.mark.slow
def test_what_nvcc_knows_without_an_include() -> None:
    """Other spellings of GCC, names in ``std``, the device's runtime."""
    source = r"""
typedef struct { __extension__ union { struct { short low, high; } parts; int whole; }; } Word;
static_assert(sizeof(Word) == 4, "a member was lost");
__global__ void k(float* x) {
    __const short low = 7;
    Word w{{low, 1}};
    __signed__ int lane;
    cudaGridDependencySynchronize();
    __asm__ __volatile__("mov.u32 %0, %%laneid;" : "=r"(lane));
    float a = 5.5f, b = std::fmod(a, 2.f);
    std::swap(a, b);
    std::memset(x + threadIdx.x, 0, sizeof(float));
    if (std::is_same<float, decltype(a)>::value && std::numeric_limits<int>::max() < LONG_MAX)
        x[threadIdx.x] += std::max(a, float(lane)) + std::pow(2.f, 3.f) + w.whole + DBL_MAX_EXP;
    cudaTriggerProgrammaticLaunchCompletion();
}
"""
    x = np.full(32, np.nan, np.float32)
    run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 32, [x])
    assert run.hazards == []
    assert x.tolist() == [max(1.5, lane) + 8 + 65543 + 1024 for lane in range(32)]


def test_the_host_s_compiler_as_nvcc_has_it(tmp_path: Path) -> None:
    """Its numbers, and directives of the user's files that ask for it; NVIDIA's find NVRTC."""
    (tmp_path / "align.h").write_text("""
#ifdef __NVCC__
#define BOTH __host__ __device__
#else
#define BOTH __host__
#endif
#if defined(__GNUC__) && \\
    __GNUC__ >= 5
#define ALIGN(n) __attribute__((aligned(n)))
#elif defined(_MSC_VER)
#define ALIGN(n) __declspec(align(n))
#else
#error "your compiler?"
#endif
""")
    (tmp_path / "k.cu").write_text("""
#include "align.h"
#include <cuda/std/limits>
#if defined(_WIN32) || !defined(__linux__) || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "your system?"
#endif
struct ALIGN(16) Three { float x, y, z; };
BOTH float last(Three t) { return t.z; }
__global__ void k(double* o) {
    o[0] = last({1, 2, 3}) + sizeof(Three);
    o[1] = cuda::std::numeric_limits<float>::max() == __FLT_MAX__;
    o[2] = __INT_MAX__;
}
""")
    o = np.zeros(3)
    simulator.launch(Kernel.from_cuda(tmp_path / "k.cu", "k"), 1, 1, [o])
    assert o.tolist() == [19, 1, 2**31 - 1]
    (tmp_path / "k.cu").write_text("#if __GNUC__ > 3 &&& 2\n#endif\n__global__ void k() {}\n")
    with pytest.raises(CompileError, match="\n  #if __GNUC__ > 3 &&& 2"):
        Kernel.from_cuda(tmp_path / "k.cu", "k")


def test_the_c_library_s_names_for_integers() -> None:
    source = r"""
#include <cinttypes>
#include <cstdint>
struct S { char a; int b; };
__global__ void k(int64_t* o, intmax_t m, std::uint_least8_t l, u_int d) {
    static_assert(offsetof(S, b) == 4 && UINT64_C(1) << 63 == ~INT64_MAX);
    register __const__ long top = SIZE_MAX == UINTMAX_MAX;
    printf("%" PRId64 " %04" PRIX16 "\n", m, uint16_t(0xab));
    *o = top + INTMAX_C(5000000000) + UINT32_C(7) + l + d;
}
"""
    o = np.zeros(1, np.int64)
    run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [o, -(1 << 40), 3, 2])
    assert o.tolist() == [5000000013]
    assert run.output == "-1099511627776 00AB\n"


def test_macros_before_what_is_cut_go_with_it() -> None:
    """Of qualifiers and attributes; left behind, they would be the next declaration's."""
    source = """
#include <fstream>
#define ONLY_HERE __host__
#define FROM_AFAR extern
#define LIMITS(threads, blocks)
#define AGAIN(threads) __launch_bounds__(threads)
FROM_AFAR std::ofstream log_of(int);
FROM_AFAR void both(int);
__attribute__((unused)) static std::ofstream file;
template <typename T> struct Table {
    T first;
    __device__ T at(int i) const { return first + i; }
    ONLY_HERE void check(int i) const { std::ofstream("log") << i; }
};
template <typename T>
__global__ void
LIMITS(64, 2)
other(std::ofstream x, T* y)
{
    y[0] = x;
}
template <typename T>
__global__ void
LIMITS(64, 2)
k(Table<T> t, T* y)
{
    y[threadIdx.x] = t.at(threadIdx.x);
}
AGAIN(64) __global__ void last(std::ofstream x) { }
"""
    y = np.zeros(8, np.float32)
    simulator.launch(Kernel.from_cuda(source, "k<float>"), 1, 8, [(np.float32(2),), y])
    assert y.tolist() == [2.0 + i for i in range(8)]


@pytest.mark.slow
def test_functions_of_mathematics_take_numbers_of_any_types() -> None:
    source = """
#include <cmath>
__device__ double half_of(int n) { return ceil(n / 2.f) + sqrt(n); }
__global__ void k(double* o, float f, int i, unsigned u, long long l, short h) {
    o[0] = pow(f, 2.5); o[1] = sqrt(i); o[2] = pow(i, u); o[3] = fmax(f, 1.5); o[4] = log(l);
    o[5] = atan2(f, 1.0); o[6] = fabs(i - 10); o[7] = fma(f, 2, 1.0); o[8] = std::pow(f, 0.5);
    o[9] = std::sqrt(h); o[10] = hypot(h, i); o[11] = half_of(i); o[12] = fmod(i, 2.5);
    o[13] = sizeof(pow(f, 2.0)) + 10 * sizeof(sqrt(f)) + 100 * sizeof(floor(h));
}
"""
    o = np.zeros(14)
    simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [o, 2.0, 3, 4, 5, 6])
    expected = [2**2.5, 3**0.5, 81, 2, np.log(5), np.arctan2(2, 1), 7, 5, 2**0.5, 6**0.5, 45**0.5,
                2 + 3**0.5, 0.5, 848]  # fmt: skip
    assert o.tolist() == pytest.approx(expected, rel=1e-15)
    with pytest.raises(CompileError, match='more than one instance of overloaded function "max"'):
        Kernel.from_cuda("__global__ void k(float* x) { *x = max(*x, 0); }", "k")


@pytest.mark.slow
def test_what_kernels_use_of_thrust() -> None:
    source = """
#include <thrust/complex.h>
#include <thrust/random.h>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
__global__ void k(float* x) {
    thrust::minstd_rand draw(threadIdx.x + 1);
    thrust::complex<float> z(threadIdx.x, 2);
    x[threadIdx.x] = (z * z).real() + 16 * (draw() % 4);
}
int main() { thrust::device_vector<float> v(8); thrust::sort(v.begin(), v.end()); k<<<1, 8>>>(0); }
"""
    x = np.zeros(8, np.float32)
    simulator.launch(Kernel.from_cuda(source, "k"), 1, 8, [x])
    assert x.tolist() == [i * i - 4 + 16 * (48271 * (i + 1) % 4) for i in range(8)]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("__global__ void k(int* x);\nint main() { k<<<1, 1>>>(0); }", "its body is elsewhere"),
        ("__global__ void k(int* x);\n", "its body is elsewhere"),
        (
            "texture<int, 1> table;\n__global__ void k(int* x) { *x = tex1Dfetch(table, 0); }\n",
            "table is a reference, as CUDA 11 had them: take a cudaTextureObject_t",
        ),
    ],
)
def test_what_is_not_there(source: str, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        Kernel.from_cuda(source, "k")
