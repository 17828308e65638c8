"""CUDA kernels: sources, NumPy references, launch shapes, and the NVRTC call."""

from .errors import CompileError, KernelError
from .kernel import Kernel
from .pointers import Pointer
from .ptx.header import Entry, Param
from .tensor_map import TensorMap
from .texture import Surface, Texture
from .unset import unset

__all__ = [
    "CompileError",
    "Entry",
    "Kernel",
    "KernelError",
    "Param",
    "Pointer",
    "Surface",
    "TensorMap",
    "Texture",
    "unset",
]
