"""The command line in this process, and kernels to check with it."""

from typing import Any

from click.testing import CliRunner, Result

from tilescope.cli.main import main

SCALE = """\
template <typename T>
__global__ void scale(T* x, T by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}
__global__ void reach(float* x, int offset) {
    x[threadIdx.x + offset] = 1.0f;
}
"""
SCALE_ARGS = ("--grid", "2", "--block", "32", "f32[50]=arange", "-1.5", "50")
KERNELS = """\
__global__ void forwarded(int* out) {
    __shared__ int last;
    last = threadIdx.x;
    out[threadIdx.x] = last;
}
__global__ void flag(int* out) {
    out[0] = 1;
}
__global__ void flags(int* out) {
    if (threadIdx.x % 32 == 0)
        out[0] = 1;
}
__global__ void neighbour(float* out) {
    __shared__ float s[32];
    s[threadIdx.x] = out[threadIdx.x];
    out[threadIdx.x] = s[31 - threadIdx.x];
}
__global__ void sum(float* out, const float* x) {
    atomicAdd(out, x[threadIdx.x]);
}
__global__ void steered(float* out, const int* index) {
    out[index[threadIdx.x]] = 1.0f;
}
__global__ void past(float* x) {
    x[threadIdx.x + 8] = 1.0f;
}
__global__ void idle(float* x) {
    __syncthreads();
    x[threadIdx.x] = 1.0f;
}
__global__ void two_steps(float* x) {
    __shared__ float a[64], b[64];
    int t = threadIdx.x;
    a[t] = x[t];
    float other = a[63 - t];
    b[t] = other * 2;
    x[t] = b[63 - t];
}
"""


def tilescope(*words: Any) -> Result:
    """Run a command line in this process; what it prints fits 80 columns, if it is not PTX."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    if "-" not in words and words[0] != "ptx":
        assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    return result


def error_of(*words: Any) -> str:
    """What a command line that cannot run says: on stderr alone, and never a traceback."""
    result = tilescope(*words)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    return result.stderr.removeprefix("error: ").rstrip("\n")


def check(*words: Any) -> Result:
    return tilescope("check", *words)


def flat(result: Result) -> str:
    """The report on one line."""
    return " ".join(result.stdout.split())


def launch(entry: str, threads: int, *arguments: Any, grid: int = 1) -> tuple[Any, ...]:
    return (entry, "--grid", grid, "--block", threads, *arguments)
