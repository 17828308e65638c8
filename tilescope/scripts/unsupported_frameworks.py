"""Front ends without a stand-in: refused where a script first needs a GPU for them."""

from types import ModuleType
from typing import Any

from .patches import Patches
from .virtual_device import VirtualDevice, refuse


def cupy(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """CuPy: there is nothing to do with it without a driver."""
    refuse("CuPy, whose arrays need a driver", "give its RawKernel's source to Kernel.from_cuda")()


def cute_dsl(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """The Python of CuTe, likewise."""
    instead = "CUTE_DSL_KEEP_PTX=1 keeps its PTX, for Kernel.from_ptx and tilescope run"
    refuse("CuTe's DSL, which needs a driver", instead)()


def tilelang(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """A compiled kernel has its source; it is its call that needs a GPU."""
    instead = "its get_kernel_source() is CUDA C++, for Kernel.from_cuda and tilescope run"
    patches.set(module.JITKernel, "__call__", refuse("a call of tilelang's kernel", instead))


def warp(context: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Warp's kernels run on the CPU as ever."""
    found = context.Runtime.get_device
    refused = refuse(
        "Warp's GPU", "device='cpu' is Warp's own; compile_aot_module(..., arch=90, use_ptx=True)"
        " writes PTX, for Kernel.from_ptx and tilescope run",
    )  # fmt: skip

    def get_device(self: Any, ident: Any = None) -> Any:
        return refused() if str(ident).startswith("cuda") else found(self, ident)

    patches.set(context.Runtime, "get_device", get_device)
