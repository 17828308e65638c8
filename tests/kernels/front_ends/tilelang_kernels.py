"""A matmul as tilelang's own examples have it; ``python -m
tests.kernels.front_ends.tilelang_kernels`` writes the PTX beside this file, which stands for
tilelang where it is not installed."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import tilelang
import tilelang.language as T

from tests.fuzz import ptxas
from tests.kernels.front_ends.text import short

M, N, K, BM, BN, BK = 128, 64, 160, 64, 64, 32


@T.prim_func
def matmul(
    A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")
):
    with T.Kernel(N // BN, M // BM, threads=128) as (x, y):
        a, b = T.alloc_shared((BM, BK), "float16"), T.alloc_shared((BK, BN), "float16")
        total = T.alloc_fragment((BM, BN), "float32")
        T.clear(total)
        for k in T.Pipelined(K // BK, num_stages=3):
            T.copy(A[y * BM, k * BK], a)
            T.copy(B[k * BK, x * BN], b)
            T.gemm(a, b, total)
        T.copy(total, C[y * BM, x * BN])


def compiled(name: str, arch: int) -> str:
    """The PTX of the matmul, as the wheels' nvcc makes it: with TMA, or else ``cp.async``."""
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": f"sm_{arch}"})
    plain = dict.fromkeys(
        ("tl.disable_tma_lower", "tl.disable_warp_specialized"), "tma" not in name
    )
    with tilelang.tvm.transform.PassContext(opt_level=3, config=plain), target:
        source = tilelang.lower(
            matmul, target=target, enable_device_compile=False, enable_host_codegen=False
        ).kernel_source
    nvcc = Path(ptxas.path()).with_name("nvcc")
    own, wheel = Path(tilelang.__file__).parent, nvcc.parent.parent / "include"
    folders = [own / "src", own / "3rdparty/cutlass/include", wheel, wheel / "cccl"]
    with TemporaryDirectory() as folder:
        file, made = Path(folder, "matmul.cu"), Path(folder, "matmul.ptx")
        file.write_text(source)
        subprocess.run(
            [nvcc, "-ptx", "-std=c++17", "-w", f"-arch=sm_{arch}{'a' * (arch >= 90)}"]
            + [f"-I{include}" for include in folders] + [file, "-o", made],
            check=False, capture_output=True,
        )  # fmt: skip
        return short(made.read_text(), 3 * 2 * (BM * BK + BK * BN))


if __name__ == "__main__":
    for kernel, number in (("matmul", 80), ("matmul", 90), ("tma", 90)):
        file = Path(__file__).parent / f"tilelang_{kernel}_{number}.ptx"
        file.write_text(compiled(file.name, number))
