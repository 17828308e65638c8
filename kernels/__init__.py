"""CUDA kernels: compilation with NVRTC, arguments, and a library with NumPy references."""

from .arguments.pointers import Pointer
from .arguments.tensor_map import TensorMap
from .arguments.texture import Surface, Texture
from .arguments.uninitialised import unset
from .errors import CompileError, KernelError
from .kernel import Kernel
from .ptx.header import Entry, Param

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
