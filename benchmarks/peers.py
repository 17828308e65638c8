"""Other simulators on the same product, where they are installed."""

import os
import shutil
import subprocess
import sys
import time

import numpy as np

_SIZE = 32
_OPENCL = """
__kernel void matmul(__global const float *A, __global const float *B, __global float *C, int n) {
  int c = get_global_id(0), r = get_global_id(1);
  float acc = 0.0f;
  for (int k = 0; k < n; ++k) acc = fma(A[r * n + k], B[k * n + c], acc);
  C[r * n + c] = acc;
}
"""


def numba_steps() -> tuple[float, str]:
    """Steps a second of Numba's CUDA simulator, or 0 and the reason why not."""
    code = (
        "import numpy as np, time\n"
        "from numba import cuda\n"
        "@cuda.jit\n"
        "def matmul(a, b, c, n):\n"
        "    x, y = cuda.grid(2)\n"
        "    total = np.float32(0)\n"
        "    for k in range(n):\n"
        "        total += a[y, k] * b[k, x]\n"
        "    c[y, x] = total\n"
        f"n = {_SIZE}\n"
        "a = np.ones((n, n), np.float32); c = np.zeros_like(a)\n"
        "t = time.perf_counter()\n"
        "matmul[(n // 16, n // 16), (16, 16)](a, a, c, n)\n"
        "assert (c == n).all()\n"
        "print(n ** 3 / (time.perf_counter() - t))\n"
    )
    return _child([sys.executable, "-c", code], {"NUMBA_ENABLE_CUDASIM": "1"}, "numba")


def oclgrind_steps() -> tuple[float, str]:
    """Steps a second of Oclgrind, driven by pyopencl, or 0 and the reason why not."""
    if not shutil.which("oclgrind"):
        return 0.0, "oclgrind is not installed"
    return _child(["oclgrind", sys.executable, "-m", "benchmarks.peers"], {}, "pyopencl")


def pocl_steps() -> tuple[float, str]:
    """Steps a second of PoCL's native code, which checks nothing, or 0 and the reason why not."""
    return _child([sys.executable, "-m", "benchmarks.peers", "512"], {}, "pyopencl")


def triton_steps() -> tuple[float, str]:
    """Steps a second of Triton's interpreter on blocks of 32 x 32, or 0 and the reason why not."""
    return _child(
        [sys.executable, "-m", "benchmarks.triton_product"], {"TRITON_INTERPRET": "1"}, "triton"
    )


PEERS = {
    "Oclgrind": oclgrind_steps,
    "Numba's CUDA simulator": numba_steps,
    "Triton's interpreter": triton_steps,
    "PoCL": pocl_steps,
}
"""By name, what measures each."""


def _child(command: list[str], extra: dict[str, str], package: str) -> tuple[float, str]:
    done = subprocess.run(
        command, env=os.environ | extra, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        missing = f"No module named '{package}'" in done.stderr
        return 0.0, f"{package} is not installed" if missing else last
    return float(done.stdout.strip().splitlines()[-1]), ""


def main() -> None:
    """The OpenCL product, run by Oclgrind around this process or by PoCL in it."""
    import pyopencl as cl

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    n = int(sys.argv[1]) if len(sys.argv) > 1 else _SIZE
    a = np.ones((n, n), np.float32)
    c = np.zeros_like(a)
    flags = cl.mem_flags
    given = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=a)
    out = cl.Buffer(context, flags.WRITE_ONLY, c.nbytes)
    matmul = cl.Program(context, _OPENCL).build().matmul
    began = time.perf_counter()
    matmul(queue, (n, n), (16, 16), given, given, out, np.int32(n))
    queue.finish()
    seconds = time.perf_counter() - began
    cl.enqueue_copy(queue, c, out)
    assert (c == n).all()
    print(n**3 / seconds)


if __name__ == "__main__":
    main()
