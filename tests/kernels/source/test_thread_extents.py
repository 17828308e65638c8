"""The block that a kernel's text assumes."""

import pytest

from kernels.source.thread_extents import thread_extents

TILE = "const int TILE = 32;\nconstexpr int ROWS = TILE / 4;\n#define SIZE 128\n#define R 3\n"


@pytest.mark.parametrize(
    ("body", "threads", "elements"),
    [
        ("int i = blockIdx.x * blockDim.x + threadIdx.x;", {}, {}),
        ("int i = blockDim.x * blockIdx.x + threadIdx.x;", {}, {}),
        ("int i = SIZE*blockIdx.x+threadIdx.x;", {"x": 128}, {}),
        ("int i = blockIdx.x * (SIZE / 2) + threadIdx.x; // SIZE", {"x": 64}, {"x": 64}),
        ("for (int i = threadIdx.x; i < 1024; i += SIZE) x[blockIdx.x * 1024 + i] = 0;",
         {"x": 128}, {"x": 1024}),
        ("int r = blockIdx.y * TILE + threadIdx.y; "
         "for (int j = 0; j < TILE; j += ROWS) x[r + j] = 0;",
         {"y": 8}, {"y": 32}),
        ("__shared__ float s[TILE][TILE + 1]; s[threadIdx.y][threadIdx.x] = 0;",
         {"y": 32, "x": 32}, {}),
        ("__shared__ float s[SIZE + 2 * R]; int t = threadIdx.x; s[t + R] = 0;",
         {"x": 128}, {"x": 134}),
        ("__shared__ float s[2 * SIZE]; s[threadIdx.x + SIZE] = 0;", {"x": 128}, {"x": 256}),
        ("__shared__ float s[258]; s[threadIdx.x + 1] = 0;", {}, {"x": 258}),
        ("int t = threadIdx.x; t += SIZE; x[t] = 0;", {}, {}),
        ("int i = blockIdx.x * n + threadIdx.x;", {}, {}),  # n of main() is another
    ],
)  # fmt: skip
def test_forms(body: str, threads: dict[str, int], elements: dict[str, int]) -> None:
    kernel = f"__global__ void k(float *x, int n) {{ {body} }}\n"
    text = f"{TILE}{kernel}int main() {{ const int n = 64; }}"
    found = thread_extents(kernel, {"k.cu": text}, "k", ["x", "n"])
    assert (found.threads, found.elements) == (threads, elements)


@pytest.mark.parametrize(
    ("head", "body", "threads"),
    [
        ("__launch_bounds__(SIZE)", "x[threadIdx.x] = 0;", {"x": 128}),
        ("__launch_bounds__(4 * SIZE, 2)", "x[threadIdx.y] = 0;", {"x": 32, "y": 16}),
        ("__launch_bounds__(SIZE)", "x[threadIdx.y] = 0;", {"x": 16, "y": 8}),
        ("__launch_bounds__(SIZE)", "x[blockIdx.x * TILE + threadIdx.x + threadIdx.y] = 0;",
         {"x": 32, "y": 4}),
        ("", "__shared__ int s[T]; s[0] = 0;", {"x": 48}),
    ],
)  # fmt: skip
def test_bounds_and_template_arguments(head: str, body: str, threads: dict[str, int]) -> None:
    kernel = f"template <int T> __global__ void {head} k(float *x) {{ {body} }}"
    assert thread_extents(kernel, {"k.cu": TILE + kernel}, "k<48>").threads == threads
