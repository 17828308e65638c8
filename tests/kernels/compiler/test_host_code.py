"""Whole ``.cu`` files: what belongs to the host is left out, the kernels stay as they are."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.compiler.toolkit import toolkit_folders
from kernels.errors import CompileError
from kernels.host import host_code
from kernels.source.preprocessor import Macros

PROGRAM = r"""
#include <thrust/host_vector.h>
#include <cuda_runtime.h>
#include <vector>
#include "helper_cuda.h"
using namespace std;
#define HD __host__ __device__
#define CHECK(call) do { cudaError_t e = (call); \
    if (e != cudaSuccess) { printf("%s }", cudaGetErrorString(e)); exit(1); } } while (0)
typedef struct { int w, h; float* d; } Matrix;
static const char* usage = "usage: { not a brace";
HD inline float square(float x) { return x * x; }
template <typename T> struct Timer { std::vector<T> t; void go() { t.clear(); } };
struct Plus { __device__ float operator()(float a) const { return a + 1; } int f() { return 3; } };
float* host_buffer = nullptr;
int table[4] = {1, 2, 3, 4};
dim3 threads(16, 16);
__constant__ float weights[4] = {1, 2, 3, 4};
void fill(float* p, int n) { for (int i = 0; i < n; ++i) p[i] = rand() / (float)RAND_MAX; }
std::string label(int i);
namespace app {
enum Mode { slow, fast };
template <typename T> __global__ void scale(T* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = square(x[i]) * weights[i % 4] + Plus()(0.f);
}
template <typename T> void launch(T* x, int n) { scale<T><<<(n + 31) / 32, 32>>>(x, n); }
class Runner {
  public:
    void run() { launch<float>(0, n); cudaDeviceSynchronize(); }
  private:
    int n = 3;
};
}  // namespace app
extern "C" {
__global__ void largest(float* x) { x[threadIdx.x] = fmaxf(-INFINITY, FLT_MAX); }
int failed(void) { return cudaGetLastError(); }
}
int main(int argc, char** argv) {  // a comment with a brace: {
    auto f = [&](int a) { return a; };
    app::Runner r;
    r.run();
    std::string s = R"(a { b)"; char c = '{';
    cout << s << f(c) << endl;
}
"""


def test_kernels_of_a_whole_program_run() -> None:
    x = np.arange(64, dtype=np.float32)
    expected = x * x * np.tile(np.float32([1, 2, 3, 4]), 16) + 1
    kernel = Kernel.from_cuda(PROGRAM, "app::scale<float>")
    run = simulator.launch(kernel, 2, 32, [x, 64])
    assert run.hazards == []
    assert x.tolist() == expected.tolist()
    simulator.launch(Kernel.from_cuda(PROGRAM, "largest"), 1, 64, [x])
    assert (x == np.finfo(np.float32).max).all()


def cut(source: str, *options: str) -> str:
    """The source without what is the host's beyond doubt."""
    macros = Macros([source], options, host_code.MARKS)
    file = host_code.read("kernel.cu", source, macros)
    host_code.cut_host_code([file])
    return file.rest()


def test_lines_and_device_code_stay() -> None:
    before, after = PROGRAM.split("\n"), cut(PROGRAM).split("\n")
    assert len(before) == len(after)
    changed = {
        i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a.strip() != b.strip()
    }
    kept = (
        "__global__", "__device__", "HD inline", "__constant__", "x[i] =", "enum", "Matrix",
        "#", "using", "namespace", "typedef", "struct", "class",
    )  # fmt: skip
    assert [before[i] for i in changed if any(word in before[i] for word in kept)] == []
    gone = ("main", "fill", "<<<", "host_buffer", "table", "dim3", "failed")
    assert [line for line in after if any(word in line for word in gone)] == []


def test_instances_of_what_is_the_hosts() -> None:
    """They go with their function, whatever has its name; those of device code stay."""
    source = """
#include <vector>
namespace group { __device__ int all(int x) { return x; } }
template <typename T> std::vector<T> all(const std::vector<T>& x) { return x; }
template std::vector<int> all<int>(const std::vector<int>& x);
template <typename T> __global__ void twice(T* x) { *x = 2 * group::all(*x); }
template __global__ void twice<float>(float* x);
#define CASE(T) template std::vector<T> of<T>(const std::vector<T>& x)
#define STRUCT(name) struct name { float x; }
#define KERNEL(name, f) extern "C" __global__ void name(f* x) { x->x *= 2; }
template <typename T> std::vector<T> of(const std::vector<T>& x) { return x; }
extern CASE(float);
CASE(int);
STRUCT(One);
KERNEL(k, One)
int main() { of<int>({}); k<<<1, 1>>>(nullptr); }
"""
    x = np.float32([21])
    simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [x])
    simulator.launch(Kernel.from_cuda(source, "twice<float>"), 1, 1, [x])
    assert x[0] == 84


def test_braces_that_do_not_match_leave_directives_and_device_code() -> None:
    source = (
        "void host(int x) {\n#ifdef A\n  if (x) {\n#endif\n    x++;\n#ifdef A\n  }\n#endif\n}\n"
        "#if defined(B)\nvoid both(float x) {\n#else\nvoid both(int x) {\n#endif\n  x++;\n}\n"
        "__global__ void k(int* x) { *x = 1; }\nint main() { k<<<1, 1>>>(0); }\n"
    )
    left = cut(source)
    assert [line for line in left.split("\n") if line.strip()] == [
        "#ifdef A", "#endif", "#ifdef A", "#endif", "#if defined(B)", "#else", "#endif",
        "__global__ void k(int* x) { *x = 1; }",
    ]  # fmt: skip


def test_a_function_ends_at_its_brace_where_the_grammar_gives_up() -> None:
    """A type given to a macro is nothing that it knows."""
    kernel = "__global__ void k(int* o) { o[threadIdx.x] = threadIdx.x; }"
    source = f"""{kernel}
int main() {{
    int* d;
    RESERVE(d, int, 32);
    {{
        dim3 g((32 + 31) / 32,
               (1 + 31) / 32),
            b(32, 1);
        k<<<g, b>>>(d);
    }}
    return 0;
}}
"""
    assert cut(source).strip() == kernel


def test_an_error_in_a_kernel_is_told_without_noise() -> None:
    """Of the program's own line, and not of the host's code."""
    wrong = PROGRAM.replace("weights[i % 4]", "weight[i % 4]")
    with pytest.raises(CompileError) as caught:
        Kernel.from_cuda(wrong, "app::scale<float>")
    text = str(caught.value)
    assert 'identifier "weight" is undefined' in text
    assert text.startswith("kernel.cu(25): error")
    assert "warning" not in text
    assert "main" not in text
    assert "helper_cuda.h" in text  # it may be what is missing


def test_macros_that_define_kernels_need_no_semicolon() -> None:
    """What follows them is read as it stands: a class of the host's may go."""
    source = """
#define DEFINE(name, op) __global__ void name##_kernel(int *a, int b) { \\
    a[threadIdx.x] = a[threadIdx.x] op b; \\
}
#define BOTH DEFINE(minus, -) DEFINE(over, /)
DEFINE(plus, +)
DEFINE(times, *)
BOTH
class Timer {
    std::chrono::steady_clock::time_point t;
  public:
    ~Timer() { cout << "done"; }
};
template <class V> void print(V &v) { for (auto &x : v) cout << x << endl; }
struct Config { int n; };
__global__ void k(Config c, int *a) { a[0] = c.n; }
"""
    for entry, expected in {"plus_kernel": 7, "times_kernel": 10, "over_kernel": 2}.items():
        a = np.full(1, 5, np.int32)
        simulator.launch(Kernel.from_cuda(source, entry), 1, 1, [a, 2])
        assert a[0] == expected
    simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [(9,), a])
    assert a[0] == 9


def test_headers_of_libraries_bring_their_number_types() -> None:
    source = """
#include <cublas_v2.h>
#include <cufft.h>
cublasHandle_t handle;
__global__ void k(__nv_bfloat16* x, half* y, cufftComplex* z) { *x = __half2float(*y) + z->x; }
int main() { cublasCreate(&handle); k<<<1, 1>>>(nullptr, nullptr, nullptr); }
"""
    assert "cvt.rn.bf16.f32" in Kernel.from_cuda(source, "k").ptx


def test_a_plain_mistake_is_told_as_before() -> None:
    with pytest.raises(CompileError, match='identifier "y" is undefined') as caught:
        Kernel.from_cuda("__global__ void k(int* x) { *x = y; }", "k")
    assert "left out" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("struct S { static const int n = WIDHT; };", r'\(1\): .*"WIDHT" is undefined$'),
        ('#include "k.cu"', '"k.cu" includes itself'),
        ("template <int N> __global__ void t() {}", "do not fit: they are as in 't<32>'$"),
    ],
)
def test_what_is_wrong_is_told_as_it_is_written(tmp_path: Path, source: str, words: str) -> None:
    """Not what follows from a member that was left out, nor our name of a header."""
    file = tmp_path / "k.cu"
    entry = "t<float>" if "template" in source else "k"
    file.write_text(
        f"{source}\n__global__ void k(int* x) {{ *x = {'S::n' if 'S' in source else 1}; }}\n"
    )
    with pytest.raises(CompileError) as raised:
        Kernel.from_cuda(file, entry)
    assert re.search(words, str(raised.value).splitlines()[0])


def test_a_brace_that_is_missing_at_the_end_is_told_alone() -> None:
    with pytest.raises(CompileError, match="expected a") as caught:
        Kernel.from_cuda("__global__ void k(int* x) {\n  for (;;) {\n  *x = 1;\n}\n", "k")
    assert "to match this" in str(caught.value)
    assert "warning" not in str(caught.value)


def test_a_macro_that_begins_with_a_long_name_is_read_once() -> None:
    text = f"#define RUN {'A_LONG_NAME_' * 9}(32)\n"  # trying each way to split it never ends
    code = f"from kernels.source.preprocessor import Macros; Macros([{text!r}], (), frozenset())"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_headers_of_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a toolkit is installed, its headers are behind those of the wheels."""
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "only_there.h").write_text("#define FIVE 5\n")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    toolkit_folders.cache_clear()
    try:
        source = "#include <only_there.h>\n__global__ void k(int* x) { *x = FIVE; }\n"
        x = np.zeros(1, np.int32)
        simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [x])
        assert x[0] == 5
    finally:
        toolkit_folders.cache_clear()


LIBRARY = {
    "lib/config.h": """
        #if defined(__NVCC__) || defined(__CUDACC__)
        #define HD __forceinline__ __device__ __host__
        #else
        #define HD inline
        #endif
        """,
    "lib/small.h": """
        #include <cuda_fp8.h>
        #include "config.h"
        struct Small { __nv_fp8_e4m3 held; HD Small(float x) : held(x) {} };
        """,
    "lib/cuda_fp8.h": '#include <cuda_fp8.h>\n#include "small.h"\n',  # as tilelang has it
    "other/config.h": "#define OTHER 7\n",
    "other/other.h": '#include "config.h"\n',
    "lib/all.h": """
        #include "config.h"
        #include "cuda_fp8.h"
        #include "../other/other.h"
        #ifndef __CUDACC_RTC__
        #include <type_traits>
        #endif
        void on_the_host() { std::vector<int> held; }
        HD
        int
        twice(int x) { return 2 * x; }
        template <class T> struct Of { using Type = std::remove_extent_t<T>; };
        """,
}
EXTENSION = """
#include <torch/extension.h>
#include <lib/all.h>
template <typename T> __global__ void rows(torch::PackedTensorAccessor32<T, 2> x) { x[0][0] = 1; }
template <typename T> __global__ void k(T* x) {
    Of<int[3]>::Type two = twice(OTHER);
    *x = two + float(Small(1.5f).held);
}
torch::Tensor forward(torch::Tensor x) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "k", ([&] {
        k<scalar_t><<<1, 1>>>(x.data_ptr<scalar_t>());
    }));
    return x;
}
struct Module : torch::nn::Module { torch::Tensor w; torch::Tensor go() { return w; } };
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
"""


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", pytest.param("include/", marks=pytest.mark.slow)])
def test_an_extension_with_a_library_s_headers(tmp_path: Path, folder: str) -> None:
    """A macro of two definitions, headers of one name, and kernels that nobody asks for."""
    for name, text in LIBRARY.items():
        file = tmp_path / (folder or "source") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "source").mkdir(exist_ok=True)
    main = tmp_path / "source" / "k.cu"
    main.write_text(EXTENSION)
    options = [f"-I{tmp_path / folder}"] if folder else []
    x = np.zeros(1, np.float32)
    kernel = Kernel.from_cuda(main, "k<float>", options=options, cache=False)
    simulator.launch(kernel, 1, 1, [x])
    assert x[0] == 15.5
    with pytest.raises(CompileError, match="torch"):
        Kernel.from_cuda(main, "rows<float>", options=options, cache=False)
