"""CUDA kernels: sources, NumPy references, launch shapes, and the NVRTC call."""

from .errors import CompileError, KernelError
from .kernel import Kernel
from .ptx_header import Entry, Param

__all__ = ["CompileError", "Entry", "Kernel", "KernelError", "Param"]
