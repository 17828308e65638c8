"""Shared memory that a compiler uses for itself."""

from kernels import Kernel

_TRITON = "global_smem"
"""The one array of shared memory of each of Triton's kernels."""


def scratch(kernel: Kernel) -> str:
    """The array's name in a kernel of Triton's, which has a Python file as its source; or nothing.

    A kernel of CUDA C++ may have an array of that name, too.
    """
    by_triton = kernel.adapter is not None and kernel.adapter.repeats
    return _TRITON if by_triton or '.py"' in kernel.ptx else ""
