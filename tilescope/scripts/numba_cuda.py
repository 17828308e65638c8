"""Numba's scripts: ``@cuda.jit`` kernels, device arrays, streams and events.

Numba links its PTX to machine code before the driver sees it, so the PTX is taken at its compile
step (``cuda.compile_ptx``), and launches where the dispatcher makes them.
"""

import contextlib
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from kernels import Kernel, KernelError
from kernels.adapter import as_array
from kernels.front_ends import numba_cuda as front_end

from . import machine as stand_in
from .machine import DeviceArray, Event, Machine, RefusedError, Stream, device_array, nothing
from .patches import Patches

_PASSED = ("fastmath", "opt", "forceinline", "launch_bounds")


def install(module: ModuleType, patches: Patches, machine: Machine) -> None:
    """Have ``numba.cuda`` launch on the simulator."""
    import numba_cuda
    from numba.cuda import api, dispatcher
    from numba.cuda.args import ArgHint

    if not numba_cuda.__version__.startswith(front_end.TESTED + "."):
        warnings.warn(
            f"numba-cuda {numba_cuda.__version__}: what was tested is {front_end.TESTED}",
            stacklevel=2,
        )
    kernels: dict[object, Kernel] = {}

    def kernel_for(self: Any, kinds: tuple[Any, ...]) -> Kernel:
        key = (self.py_func, kinds)
        if key not in kernels:
            if self.targetoptions.get("link"):
                raise RefusedError("tilescope exec has no stand-in for cuda.jit(link=...)")
            options = {n: v for n in _PASSED if (v := self.targetoptions.get(n)) is not None}
            made = front_end.compiled(self.py_func, kinds, stand_in.ARCH, options)
            kernels[key] = Kernel.from_front_end(made)
        return kernels[key]

    def run(self: Any, args: Any, grid: Any, block: Any, shared: int) -> None:
        values = [_plain(arg.value if isinstance(arg, ArgHint) else arg) for arg in args]
        eager = self.__dict__.get("_tilescope_signatures")
        kinds = tuple(eager[0]) if eager and len(eager) == 1 else tuple(
            self.typeof_pyval(np.asarray(v) if isinstance(v, DeviceArray) else v) for v in values
        )  # fmt: skip
        if eager and len(eager) > 1 and kinds not in eager:
            raise TypeError(f"{self.py_func.__name__} has no signature for {kinds}")
        kernel = kernel_for(self, kinds)
        cooperative = "cudaCGSynchronize" in kernel.ptx or "cudaCGGetIntrinsicHandle" in kernel.ptx
        machine.launch(kernel, grid, block, values, shared, cooperative=cooperative)

    class Configured:
        def __init__(self, dispatcher: Any, grid: Any, block: Any, shared: int) -> None:
            self.dispatcher, self.grid, self.block, self.shared = dispatcher, grid, block, shared

        def __call__(self, *args: Any) -> None:
            run(self.dispatcher, args, self.grid, self.block, self.shared)

    def configure(
        self: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0
    ) -> Any:
        shapes = dispatcher.normalize_kernel_dimensions(griddim, blockdim)
        grid, block = shapes
        return Configured(self, grid, block, sharedmem)

    def forall(self: Any, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Any:
        block = tpb or 256
        return Configured(self, (-(-ntasks // block), 1, 1), (block, 1, 1), sharedmem)

    def compile_later(self: Any, kinds: Any) -> None:
        self.__dict__.setdefault("_tilescope_signatures", []).append(tuple(kinds))

    owner = dispatcher.CUDADispatcher
    patches.set(owner, "configure", configure)
    patches.set(owner, "forall", forall)
    patches.set(owner, "compile", compile_later)
    patches.set(owner, "disable_compile", nothing)
    patches.set(owner, "specialize", lambda self, *_: self)
    for name, value in _functions().items():
        for place in (module, api):
            if hasattr(place, name):
                patches.set(place, name, value)
    for name in ("as_cuda_array", "from_cuda_array_interface", "external_stream",
                 "open_ipc_array", "vectorize", "guvectorize"):  # fmt: skip
        if hasattr(module, name):
            patches.set(module, name, stand_in.refuse(f"numba.cuda.{name}"))


def _plain(value: Any) -> Any:
    """An argument as the simulator takes it."""
    return as_array(value)


def _functions() -> dict[str, Any]:
    """What ``numba.cuda`` offers to the host, for a machine without a GPU."""

    def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
        if to is None:
            return stand_in.to_device(obj)
        to.copy_to_device(obj)
        return to

    def array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C",
              stream: Any = 0, **_: Any) -> Any:  # fmt: skip
        return device_array(shape, dtype, order)

    def like(ary: Any, stream: Any = 0, **_: Any) -> Any:
        order = "F" if ary.flags.f_contiguous and not ary.flags.c_contiguous else "C"
        return device_array(ary.shape, ary.dtype, order)

    @contextlib.contextmanager
    def quietly(*values: Any, **_: Any) -> Iterator[Any]:
        yield values[0] if len(values) == 1 else values

    @contextlib.contextmanager
    def automatic(self: Any) -> Iterator[Any]:
        yield self

    stream = type("Stream", (Stream,), {"auto_synchronize": automatic})
    device = stand_in.setting(
        {"id": 0, "name": stand_in.NAME.encode(), "compute_capability": stand_in.CAPABILITY,
         "MULTIPROCESSOR_COUNT": 132, "WARP_SIZE": 32, "MAX_THREADS_PER_BLOCK": 1024,
         "MAX_SHARED_MEMORY_PER_BLOCK": 49_152, "reset": nothing}
    )()  # fmt: skip
    context = stand_in.setting(
        {"device": device, "synchronize": nothing, "get_memory_info": lambda _: (1 << 36, 1 << 37)}
    )()
    return {
        "to_device": to_device, "device_array": array, "managed_array": array,
        "pinned_array": array, "mapped_array": array, "device_array_like": like,
        "mapped_array_like": like, "pinned_array_like": like, "synchronize": nothing,
        "stream": stream, "default_stream": stream, "legacy_default_stream": stream,
        "per_thread_default_stream": stream, "event": lambda timing=True: Event(),
        "event_elapsed_time": lambda first, last: float("nan"), "is_available": lambda: True,
        "detect": lambda: True, "close": nothing, "select_device": lambda number: device,
        "get_current_device": lambda: device, "list_devices": lambda: [device], "gpus": [device],
        "current_context": lambda number=None: context, "defer_cleanup": quietly,
        "pinned": quietly, "mapped": quietly, "profiling": quietly, "profile_start": nothing,
        "profile_stop": nothing, "is_cuda_array": lambda obj: isinstance(obj, DeviceArray),
        "is_float16_supported": lambda: True, "is_bfloat16_supported": lambda: True,
    }  # fmt: skip


__all__ = ["KernelError", "install"]
