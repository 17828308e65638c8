"""Numba's scripts: ``@cuda.jit`` kernels, device arrays, streams and events.

Numba links its PTX to machine code before the driver sees it, so the PTX is taken at its compile
step (``cuda.compile_ptx``), and launches where the dispatcher makes them.
"""

import contextlib
import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.arguments.convert import MAX_SHARED
from kernels.front_ends import numba_cuda as front_end
from kernels.front_ends.versions import warn_of

from ..host_calls.launches import checked_launch
from . import virtual_device as stand_in
from .numba_arrays import arrays, as_device_array, device_array, plain
from .patches import Patches
from .virtual_device import (
    DeviceArray,
    RefusedError,
    SimulatedEvent,
    SimulatedStream,
    VirtualDevice,
    nothing,
)

_REFUSED = {
    "from_cuda_array_interface": "use cuda.to_device",
    "external_stream": "use cuda.stream()",
    "open_ipc_array": "use one process",
    "set_memory_manager": "leave it out",
    "compile_ptx_for_current_device": "use cuda.compile_ptx(..., cc=(9, 0))",
    "compile_for_current_device": "use cuda.compile(..., cc=(9, 0))",
}
"""What has no stand-in, and what to use."""
_PASSED = ("fastmath", "opt", "forceinline", "launch_bounds")


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Have ``numba.cuda`` launch on the simulator."""
    import numba_cuda
    from numba.cuda import api, dispatcher
    from numba.cuda.args import ArgHint
    from numba.cuda.cudadrv import devicearray, devices
    from numba.cuda.cudadrv.driver import driver

    warn_of("numba-cuda", numba_cuda.__version__)
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

    def run(self: Any, args: Any, grid: Any, block: Any, stream: Any, shared: int) -> None:
        given = [arg.value if isinstance(arg, ArgHint) else arg for arg in args]
        values = [machine.array(plain(arg)) for arg in given]
        eager = self.__dict__.get("_tilescope_signatures")
        kinds = tuple(eager[0]) if eager and len(eager) == 1 else tuple(
            self.typeof_pyval(np.asarray(v) if isinstance(v, np.ndarray) else v) for v in values
        )  # fmt: skip
        if eager and len(eager) > 1 and kinds not in eager:
            raise TypeError(f"{self.py_func.__name__} has no signature for {kinds}")
        kernel = kernel_for(self, kinds)
        cooperative = "cudaCGSynchronize" in kernel.ptx or "cudaCGGetIntrinsicHandle" in kernel.ptx
        done = checked_launch(
            machine, kernel, grid, block, values, shared, stream, MAX_SHARED,
            cooperative=cooperative,
        )  # fmt: skip
        if done.refused:
            raise simulator.LaunchError(done.reason)
        if any(isinstance(v, np.ndarray) and not isinstance(v, DeviceArray) for v in given):
            machine.queue(stream).synchronize()  # Numba copies it back for the host

    class Configured:
        def __init__(self, dispatcher: Any, *how: Any) -> None:
            self.dispatcher, self.how = dispatcher, how

        def __call__(self, *args: Any) -> None:
            run(self.dispatcher, args, *self.how)

    def configure(
        self: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0
    ) -> Any:
        shapes = dispatcher.normalize_kernel_dimensions(griddim, blockdim)
        grid, block = shapes
        return Configured(self, grid, block, stream, sharedmem)

    def forall(self: Any, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Any:
        block = tpb or 256
        return Configured(self, (-(-ntasks // block), 1, 1), (block, 1, 1), stream, sharedmem)

    def compile_later(self: Any, kinds: Any) -> None:
        self.__dict__.setdefault("_tilescope_signatures", []).append(tuple(kinds))

    owner = dispatcher.CUDADispatcher
    patches.set(owner, "configure", configure)
    patches.set(owner, "forall", forall)
    patches.set(owner, "compile", compile_later)
    patches.set(owner, "disable_compile", nothing)
    patches.set(owner, "specialize", lambda self, *_: self)
    offered = _functions(machine)
    patches.set(devices, "get_context", offered["current_context"])
    for name, value in offered.items():
        for place in (module, api, devicearray, devices):
            if hasattr(place, name):
                patches.set(place, name, value)
    patches.set(driver, "get_device", lambda number=0: api.get_current_device())
    for name, instead in _REFUSED.items():
        for place in (module, api):
            if hasattr(place, name):
                patches.set(place, name, stand_in.refuse(f"numba.cuda.{name}", instead))


def _functions(machine: VirtualDevice) -> dict[str, Any]:
    """Return the stand-ins for the host functions of ``numba.cuda``, by name."""
    kind, host = arrays(machine)

    def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
        if to is None:
            to = np.ndarray.view(np.array(obj, copy=True, order="K", subok=False), kind)
        to.copy_to_device(obj, stream)
        return to

    def maker(of: type) -> Any:
        def array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C",
                  **_: Any) -> Any:  # fmt: skip
            return device_array(of, shape, dtype, strides, order)

        return array

    def like(of: type) -> Any:
        def array(ary: Any, *_: Any, **__: Any) -> Any:
            flags = np.asarray(ary).flags
            order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
            return device_array(of, ary.shape, ary.dtype, order=order)

        return array

    @contextlib.contextmanager
    def quietly(*values: Any, **_: Any) -> Iterator[Any]:
        yield values[0] if len(values) == 1 else values

    class NumbaStream(SimulatedStream):
        @contextlib.contextmanager
        def auto_synchronize(self) -> Iterator[Any]:
            yield self
            self.synchronize()

        def __bool__(self) -> bool:
            return bool(self.queue.number)

    def stream() -> NumbaStream:
        return NumbaStream(machine.order.stream())

    def default() -> NumbaStream:
        return NumbaStream(machine.order.legacy)

    per_thread = functools.cache(stream)
    synchronize = machine.order.synchronize
    device = stand_in.setting(
        {"id": 0, "name": stand_in.NAME.encode(), "compute_capability": stand_in.CAPABILITY,
         "MULTIPROCESSOR_COUNT": 132, "WARP_SIZE": 32, "MAX_THREADS_PER_BLOCK": 1024,
         "MAX_SHARED_MEMORY_PER_BLOCK": 49_152, "reset": nothing}
    )()  # fmt: skip
    context = stand_in.setting(
        {
            "device": device,
            "synchronize": lambda _: synchronize(),
            "get_memory_info": lambda _: (1 << 36, 1 << 37),
        }
    )()
    return {
        "to_device": to_device, "device_array": maker(kind), "managed_array": maker(host),
        "pinned_array": maker(host), "mapped_array": maker(host), "device_array_like": like(kind),
        "mapped_array_like": like(host), "pinned_array_like": like(host),
        "synchronize": synchronize, "DeviceNDArray": kind,
        "as_cuda_array": lambda obj, sync=True: as_device_array(machine, kind, obj),
        "is_cuda_ndarray": lambda obj: isinstance(obj, DeviceArray),
        "stream": stream, "default_stream": default, "legacy_default_stream": default,
        "per_thread_default_stream": per_thread,
        "event": lambda timing=True: SimulatedEvent(machine),
        "event_elapsed_time": lambda first, last: first.elapsed_time(last),
        "is_available": lambda: True,
        "detect": lambda: True, "close": nothing, "select_device": lambda number: device,
        "get_current_device": lambda: device, "list_devices": lambda: [device], "gpus": [device],
        "current_context": lambda number=None: context, "defer_cleanup": quietly,
        "pinned": quietly, "mapped": quietly, "profiling": quietly, "profile_start": nothing,
        "profile_stop": nothing, "is_cuda_array": lambda obj: (
            isinstance(obj, DeviceArray) or hasattr(obj, "__cuda_array_interface__")),
        "is_float16_supported": lambda: True, "is_bfloat16_supported": lambda: True,
        "is_fp8_supported": lambda: True, "is_supported_version": lambda: True,
    }  # fmt: skip
