"""The launches of a CUDA program's host code, as commands."""

from pathlib import Path

import pytest

from kernels.host.host_launches import host_launches
from tests.support.command_line import tilescope

SOURCE = """#include <cstdio>
#define TPB (32 * 8)
constexpr int K = 3;
#ifdef SMALL
#define TWO 16
#else
#define TWO 64
#endif
__global__ void k(float *a, int n, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= s;
}
template <int T> __global__ void t(double *a, float *out) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = a[0];
    out[threadIdx.x] = tile[threadIdx.x];
}
static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }
namespace util { template <typename T> constexpr T twice(T a) { return a * 2; } }
float halve(float a) { return a / 2; }
int longer(int a) { a += 1; return a; }
int forever(int a) { return forever(a); }
int over(int a) { return a; }
float over(float a) { return a; }
struct Gpu { float *A, *B; int n; };
int main(int argc, char **argv) {
    const int n = 1 << 12;
    int m;
    m = atoi(argv[1]);
    size_t bytes = n * sizeof(float);
    dim3 block(16, K + 1);
    dim3 grid((n + 15) / 16, 4);
    float *d, *o;
    double *e;
    cudaMalloc(&d, bytes);
    cudaMalloc((void **)&e, 64 * sizeof(double));
    cudaMalloc(&o, m * 4);
    k<<<(n + TPB - 1) / TPB, TPB>>>(d, n, 1.5f);
    for (int i = 0; i < 3; ++i) {
        t<16><<<dim3(2), block, 64 * sizeof(float)>>>(e, o);
        k<<<grid, i>>>(d, m, 2.0);
    }
    LAST
}
"""


def commands(last: str = "") -> list[str]:
    return [" ".join(one.words("a.cu")) for one in host_launches(SOURCE.replace("LAST", last))]


def test_what_is_known_is_folded() -> None:
    assert commands() == [
        "a.cu k --grid 16 --block 256 f32[4096] 4096 1.5",
        "a.cu t<16> --grid 2 --block 16,4 --shared 256 f64[64] ?",
        "a.cu k --grid 256,4 --block ? f32[4096] ? 2.0",
    ]


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("int q = 4; k<<<q, 32>>>(d, q, 0);", "--grid 4 --block 32 f32[4096] 4 0"),
        ("int q = 4; q += 1; k<<<q, 32>>>(d, q, 0);", "--grid ? --block 32 f32[4096] ? 0"),
        ("int q = 4; q = 5; k<<<q, 32>>>(d, 1, 0);", "--grid ? --block 32 f32[4096] 1 0"),
        ("int q = 4; q++; k<<<q, 32>>>(d, 1, 0);", "--grid ? --block 32 f32[4096] 1 0"),
        ("int q = 4; scan(&q); k<<<q, 32>>>(d, 1, 0);", "--grid ? --block 32 f32[4096] 1 0"),
        ("int q = q; k<<<q, 32>>>(d, 1, 0);", "--grid ? --block 32 f32[4096] 1 0"),
        ("k<<<1 / 0, 32>>>(d, -3, 7 % 4);", "--grid ? --block 32 f32[4096] -3 3"),
        ("k<<<dim3{2, 3}, dim3(4, 5, 6)>>>(d, 0x10u, 1e3f);",
         "--grid 2,3 --block 4,5,6 f32[4096] 16 1000.0"),
        ("k<<<1, 32, n>>>(d + 1, 1, (float)2);", "--grid 1 --block 32 --shared 4096 ? 1 2"),
        ("dim3 g(K, TPB), b(TPB, m); k<<<g, b>>>(d, 1, 1);",
         "--grid 3,256 --block ? f32[4096] 1 1"),
        ("enum { ROWS = K + 2, MORE }; k<<<ROWS, MORE>>>(d, int(n), unsigned(2.5));",
         "--grid 5 --block ? f32[4096] 4096 2"),
        ("k<<<0, 32>>>(d, 1, 1);", "--grid ? --block 32 f32[4096] 1 1"),
        ("cudaMalloc(&d, 8); k<<<1, 32>>>(d, 1, 1);", "--grid 1 --block 32 ? 1 1"),
        ("cudaMalloc(&d, 2 * sizeof(*d)); k<<<1, 32>>>(d, 1, 1);", "--grid 1 --block 32 ? 1 1"),
        ("float* f; cudaMalloc(&f, 2 * sizeof *f); k<<<1, 32>>>(f, 1, 1);",
         "--grid 1 --block 32 f32[2] 1 1"),
        ("float f[9]; k<<<1, sizeof(f)>>>(d, 1, 1);", "--grid 1 --block 36 f32[4096] 1 1"),
        ("float f[2][K], *p; cudaMalloc(&p, sizeof f); k<<<1, 9>>>(p, sizeof(f[0]), 1);",
         "--grid 1 --block 9 f32[6] 12 1"),
        ("float f[9]; k<<<1, sizeof(f) / sizeof(*f)>>>(d, 1, 1);",
         "--grid 1 --block ? f32[4096] 1 1"),
        ("float f[] = {1}; k<<<1, sizeof(f)>>>(d, 1, 1);", "--grid 1 --block ? f32[4096] 1 1"),
        ("float f[9]; { float f[8]; } k<<<1, sizeof(f)>>>(d, 1, 1);",
         "--grid 1 --block ? f32[4096] 1 1"),
        ("k<<<1, TWO>>>(d, 1, 1);", "--grid 1 --block ? f32[4096] 1 1"),
        ("k<<<1 << 99, 32>>>(d, 1, 1);", "--grid ? --block 32 f32[4096] 1 1"),
        ("d = e; k<<<1, 32>>>(d, 1, 1);", "--grid 1 --block 32 ? 1 1"),
        ("k<<<1, 32>>>(d, 1, 1); cudaFree(d); d = nullptr;", "--grid 1 --block 32 f32[4096] 1 1"),
        # members of shapes
        ("dim3 g(5), b = {8, 4}; k<<<g.x * b.x, b.y>>>(d, g.y, b.z);",
         "--grid 40 --block 4 f32[4096] 1 1"),
        ("auto g = dim3(n / block.x, block.y - 1); k<<<g, block>>>(d, 1, 1);",
         "--grid 256,3 --block 16,4 f32[4096] 1 1"),
        ("int2 p = make_int2(6, 7); int3 q{1, 2, 3}; k<<<p.y, q.z>>>(d, p.x, 1);",
         "--grid 7 --block 3 f32[4096] 6 1"),
        ("dim3 g(2); g.y = 3; k<<<g, g.x>>>(d, 1, 1);", "--grid ? --block ? f32[4096] 1 1"),
        ("int2 p = {1, m}; k<<<p.x, p.y>>>(d, p.z, 1);", "--grid ? --block ? f32[4096] ? 1"),
        ("dim3 g(g.x); k<<<g, 1>>>(d, 1, 1);", "--grid ? --block 1 f32[4096] 1 1"),
        ("float *f; CHECK(cudaMalloc(reinterpret_cast<void **>(&f), sizeof(float) * 4));"
         " k<<<1, 32>>>(f, 1, 1);", "--grid 1 --block 32 f32[4] 1 1"),
        # braces
        ("k<<<{3, K - 1}, {32}>>>(d, 1, 1);", "--grid 3,2 --block 32 f32[4096] 1 1"),
        ("k<<<{1, 2, n / 64}, 32, 4>>>(d, 1, 1);",
         "--grid 1,2,64 --block 32 --shared 4 f32[4096] 1 1"),
        ("k<<<(3, 2), 32>>>(d, 1, 1);", "--grid ? --block 32 f32[4096] 1 1"),
        # CUDA's vector types
        ("float4 *f; cudaMalloc(&f, n / 4 * sizeof(float4)); k<<<sizeof(int3), 32>>>(f, 1, 1);",
         "--grid 12 --block 32 f32[4096] 1 1"),
        ("uint2 *f; cudaMalloc(&f, n * sizeof(*f)); k<<<1, 32>>>(f, 1, 1);",
         "--grid 1 --block 32 u32[8192] 1 1"),
        ("float4 *f; cudaMalloc(&f, 3 * sizeof(float2)); k<<<1, 32>>>(f, 1, 1);",
         "--grid 1 --block 32 ? 1 1"),
        # vectors
        ("std::vector<float> h(n / 2, 1.f); float *f; cudaMalloc(&f, h.size() * sizeof(float));"
         " k<<<1, 32>>>(f, h.size(), 1);", "--grid 1 --block 32 f32[2048] 2048 1"),
        ("vector<float> h(n), g{1, 2, 3}; k<<<g.size(), 32>>>(d, h.size(), 1);",
         "--grid 3 --block 32 f32[4096] 4096 1"),
        ("vector<float> h(n); h[3] = 1; h[n - 1]++; k<<<1, 32>>>(d, h.size(), 1);",
         "--grid 1 --block 32 f32[4096] 4096 1"),
        ("vector<float> h(n); h.push_back(1); k<<<1, 32>>>(d, h.size(), 1);",
         "--grid 1 --block 32 f32[4096] ? 1"),
        ("vector<float> h(n); grow(h); k<<<1, 32>>>(d, h.size(), 1);",
         "--grid 1 --block 32 f32[4096] ? 1"),
        ("vector<float> h(n), g(h); k<<<1, 32>>>(d, g.size(), 1);",
         "--grid 1 --block 32 f32[4096] ? 1"),
        # functions that return an expression
        ("k<<<ceil_div(n, TPB - 1), util::twice<int>(16)>>>(d, halve(3), halve(n));",
         "--grid 17 --block 32 f32[4096] 1.5 2048.0"),
        ("k<<<longer(4), forever(4)>>>(d, over(1), ceil_div(m, 2));",
         "--grid ? --block ? f32[4096] ? ?"),
        # what structures point to
        ("Gpu g; cudaMalloc(&g.A, 64); cudaMalloc((void **)&(g.B), 4 * sizeof(float));"
         " k<<<1, 32>>>(g.A, 1, 1); k<<<1, 32>>>(g.B, g.n, 1);",
         "--grid 1 --block 32 f32[4] ? 1"),
        ("Gpu g; cudaMalloc(&g.A, 64); g.A = d; k<<<1, 32>>>(g.A, 1, 1);",
         "--grid 1 --block 32 ? 1 1"),
        ("Gpu g; k<<<1, 32>>>(g.A, 1, 1);", "--grid 1 --block 32 ? 1 1"),
    ],
)  # fmt: skip
def test_what_has_two_values_has_none(code: str, command: str) -> None:
    assert commands(code)[-1] == f"a.cu k {command}"


def test_headers_and_macros_of_the_command_line_say_what_names_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near.h").write_text("typedef float real;\n#define N 100\nconstexpr int B = 32;\n")
    (tmp_path / "main.cu").write_text(
        '#include "near.h"\n#ifndef N\n#define N 7\n#endif\n'
        "__global__ void k(real *a) { a[threadIdx.x] = N; }\n"
        "int main() { real *d; cudaMalloc(&d, W * sizeof(real));\n  k<<<1, B>>>(d); }\n"
    )
    told = " ".join(tilescope("run", "main.cu", "-DW=128").stderr.split())
    assert "launch 1, line 7, as the host code says" in told
    assert "main.cu k --grid 1 --block 32 'f32[128]'" in told
    result = tilescope("run", "main.cu", "-DW=128", "--launch", 1)
    assert result.exit_code == 0, result.stderr


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(SOURCE.replace("LAST", ""))
    listed = tilescope("run", "a.cu")
    assert listed.exit_code == 2
    assert "kernels: k, t<...>" in listed.stderr
    assert "1  line 38" in listed.stderr
    assert "tilescope run a.cu k --grid 16 --block 256 'f32[4096]' 4096 1.5" in listed.stderr
    assert "--shared 256 'f64[64]' ?" in listed.stderr
    done = tilescope("run", "a.cu", "--launch", 1)
    assert done.exit_code == 0
    assert "grid 16, block 256: 4,096 threads" in done.stdout
    for number, message in ((2, "the host code does not say"), (4, "a.cu has 3 launches")):
        done = tilescope("check", "a.cu", "--launch", number)
        assert done.exit_code == 2
        assert message in done.stderr


@pytest.mark.parametrize("launched", ["", "k<<<1, 1>>>(nullptr);"])
def test_launches_by_calls_are_mentioned(
    launched: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(
        "__global__ void k(float *a) {}\n// cudaLaunchKernel(k)\nint main() {\n" + launched + "\n"
        "cudaLaunchKernelEx(&how, k, nullptr);\ncuLaunchKernel(f, 1, 1); }\n"
    )
    told = tilescope("run", "a.cu").stderr
    assert ("1  line 4" in told) == ("--launch N" in told) == bool(launched)
    assert told.endswith(
        "  not read: line 5, cudaLaunchKernelEx\n  not read: line 6, cuLaunchKernel\n"
        "or the whole program, with its own data:\n  tilescope exec a.cu\n"
    )
    refused = tilescope("run", "a.cu", "--launch", 2).stderr
    assert "has 1 launch " in refused if launched else "has no launches" in refused
    assert "not read: line 5, cudaLaunchKernelEx; not read: line 6" in " ".join(refused.split())


def test_a_file_is_listed(tmp_path: Path) -> None:
    """Its kernels, and what it launches; of PTX its entries."""
    file = tmp_path / "my.cu"
    file.write_text(
        "__global__ void k(int *x) { *x = 1; }\nint main() { k<<<2, 32>>>(nullptr); }\n"
    )
    listed = tilescope("list", file)
    assert listed.exit_code == 0
    assert listed.stdout.startswith("kernels:\n  k(int *x)\nlaunches in its host code (")
    assert "k --grid 2 --block 32" in " ".join(listed.stdout.replace("\\\n", "").split())
    other = tmp_path / "my.ptx"
    other.write_text(".version 8.0\n.target sm_90\n.visible .entry one() { ret; }\n")
    assert tilescope("list", other).stdout == "kernels: one\n"
    other.write_text("nothing")
    for words, told in (((other,), "is it PTX?"), ((file, "--faulty"), "for the library")):
        refused = tilescope("list", *words)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert told in refused.stderr


def test_products_in_parentheses_are_no_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``h(rows * columns)`` is a function's declaration to a grammar without types."""
    monkeypatch.chdir(tmp_path)
    file = Path("my.cu")
    file.write_text(
        "#include <vector>\n#define TILE 4\n__global__ void k(const float *x, float *y, int n) {}\n"
        "int main() {\n  const int rows = 16, columns = 300;\n"
        "  std::vector<float> h(rows * columns), r(TILE * rows);\n"
        "  dim3 grid(rows * 2, TILE * 1);\n"
        "  float *x, *y; cudaMalloc(&x, h.size() * 4); cudaMalloc(&y, r.size() * 4);\n"
        "  k<<<grid, 128>>>(x, y, columns);\n}\n"
    )
    listed = " ".join(tilescope("list", file).stdout.replace("\\\n", "").split())
    assert "k --grid 32,4 --block 128 'f32[4800]' 'f32[64]' 300" in listed
