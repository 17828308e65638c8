"""``cuda.bindings.driver``: the calls by which a script loads PTX, moves memory and launches."""

import ctypes
import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.arguments.convert import MAX_STATIC_SHARED
from simulator.host_order import Stream

from ...host_calls.graphs import CaptureError, Work
from ...host_calls.launches import checked_launch
from .. import virtual_device as stand_in
from ..patches import Patches
from ..streams import Streams
from ..virtual_device import RefusedError, VirtualDevice
from .graphs import DriverGraphs
from .memory import DriverMemory, at, host

_ELF = b"\x7fELF"


class _DriverApi:
    """Handles are numbers; what they stand for is kept here."""

    def __init__(self, module: ModuleType, machine: VirtualDevice) -> None:
        self.module, self.machine, self.device = module, machine, machine.device
        self._numbers = itertools.count(1)
        self._modules: dict[int, str] = {}
        self._functions: dict[int, Kernel] = {}
        self._allowed: dict[int, int] = {}
        self._streams = Streams(machine)
        self._memory = DriverMemory(module, machine, self._streams)
        self._graphs = DriverGraphs(module, machine, self._streams, self._launching)

    def calls(self) -> dict[str, Callable[..., tuple[Any, ...]]]:
        """Return the stand-ins by name; each gives what the driver's gives, the result first."""
        parts = (self, self._memory, self._graphs)
        own = {name: getattr(one, name) for one in parts for name in dir(one) if name[:2] == "cu"}
        d = self.module
        empty = (
            "cuInit cuCtxSetCurrent cuCtxPushCurrent cuCtxDestroy "
            "cuDevicePrimaryCtxRelease cuModuleUnload cuLibraryUnload cuStreamDestroy "
            "cuEventDestroy cuFuncSetCacheConfig cuMemPrefetchAsync cuProfilerStart "
            "cuProfilerStop cuCtxSetLimit"
        )
        fixed: dict[str, tuple[Any, ...]] = {
            "cuDeviceGet": (d.CUdevice(0),), "cuDeviceGetCount": (1,),
            "cuDriverGetVersion": (13000,),
            "cuCtxCreate": (d.CUcontext(1),), "cuDevicePrimaryCtxRetain": (d.CUcontext(1),),
            "cuCtxGetCurrent": (d.CUcontext(1),), "cuCtxGetDevice": (d.CUdevice(0),),
            "cuCtxPopCurrent": (d.CUcontext(1),),
            "cuMemGetInfo": (1 << 36, 1 << 37),
            "cuDeviceComputeCapability": stand_in.CAPABILITY, "cuDeviceTotalMem": (1 << 37,),
        }  # fmt: skip
        made: dict[str, Callable[..., tuple[Any, ...]]] = {
            name: self._answer(*values) for name, values in fixed.items()
        }
        made |= {name: self._answer() for name in empty.split()} | own
        for name in dir(self._streams):
            if name.startswith("cu"):
                made[name] = functools.partial(self._ask, getattr(self._streams, name))
        return made

    def _ask(self, call: Callable[..., Any], *given: Any) -> tuple[Any, ...]:
        try:
            found = call(*given)
        except CaptureError:
            return (self.module.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
        if found is None:
            return (self._done,)
        if isinstance(found, float):
            return self._done, found
        kind = self.module.CUevent if call == self._streams.cuEventCreate else self.module.CUstream
        return self._done, kind(found)

    def _answer(self, *values: Any) -> Callable[..., tuple[Any, ...]]:
        return lambda *_, **__: (self._done, *values)

    @property
    def _done(self) -> Any:
        return self.module.CUresult.CUDA_SUCCESS

    @property
    def _wrong(self) -> Any:
        return self.module.CUresult.CUDA_ERROR_INVALID_VALUE

    # -- what it is ------------------------------------------------------------------------

    def cuDeviceGetName(self, length: int, device: Any) -> tuple[Any, ...]:
        return self._done, stand_in.NAME.encode()[: length - 1] + b"\0"

    def cuDeviceGetAttribute(self, attribute: Any, device: Any) -> tuple[Any, ...]:
        name = attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        known = {
            "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "WARP_SIZE": 32,
            "MULTIPROCESSOR_COUNT": 132, "MAX_THREADS_PER_BLOCK": 1024, "MAX_BLOCK_DIM_X": 1024,
            "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": 2**31 - 1,
            "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535, "COOPERATIVE_LAUNCH": 1,
            "MAX_SHARED_MEMORY_PER_BLOCK": 49_152, "UNIFIED_ADDRESSING": 1, "MANAGED_MEMORY": 1,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448, "MAX_REGISTERS_PER_BLOCK": 65_536,
            "CAN_MAP_HOST_MEMORY": 1, "CLOCK_RATE": 1_980_000, "CONCURRENT_KERNELS": 1,
            "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
        }  # fmt: skip
        if name not in known:
            raise RefusedError(f"tilescope exec knows no device attribute {name}")
        return self._done, known[name]

    def cuGetErrorName(self, error: Any) -> tuple[Any, ...]:
        return self._done, error.name.encode()

    def cuGetErrorString(self, error: Any) -> tuple[Any, ...]:
        return self._done, error.name.encode()

    # -- modules and launches --------------------------------------------------------------

    def cuModuleLoadData(self, image: Any, *_: Any) -> tuple[Any, ...]:
        raw = image if isinstance(image, (bytes, bytearray)) else ctypes.string_at(at(image))
        if raw[:4] == _ELF or raw[:4] == b"P\xedU\xba":
            raise RefusedError(
                "cuModuleLoadData was given machine code, which is not simulated: give it PTX "
                "(NVRTC's --gpu-architecture=compute_90)"
            )
        number = next(self._numbers)
        self._modules[number] = bytes(raw).rstrip(b"\0").decode()
        return self._done, self.module.CUmodule(number)

    cuModuleLoadDataEx = cuModuleLoadData

    def cuModuleGetFunction(self, module: Any, name: Any) -> tuple[Any, ...]:
        entry = name.decode() if isinstance(name, bytes) else str(name)
        number = next(self._numbers)
        kernel = Kernel.from_ptx(self._modules[int(module)], entry)
        self._functions[number] = dataclasses.replace(kernel, module=int(module))
        return self._done, self.module.CUfunction(number)

    def cuModuleGetGlobal(self, module: Any, name: Any) -> tuple[Any, ...]:
        text = name.decode() if isinstance(name, bytes) else str(name)
        found = self.device.module(self._modules[int(module)], int(module))
        if text not in found.addresses:
            return self.module.CUresult.CUDA_ERROR_NOT_FOUND, self.module.CUdeviceptr(0), 0
        return self._done, self.module.CUdeviceptr(found.addresses[text]), found.arrays[text].nbytes

    def cuFuncSetAttribute(self, function: Any, attribute: Any, value: Any) -> tuple[Any, ...]:
        if attribute.name.endswith("MAX_DYNAMIC_SHARED_SIZE_BYTES"):
            self._allowed[int(function)] = int(value)
        return (self._done,)

    def cuLaunchKernel(self, *given: Any) -> tuple[Any, ...]:
        return self._launch(False, *given)

    def cuLaunchCooperativeKernel(self, *given: Any) -> tuple[Any, ...]:
        return self._launch(True, *given)

    def _launch(
        self, cooperative: bool, function: Any, gx: int, gy: int, gz: int, bx: int, by: int,
        bz: int, shared: int, stream: Any, given: Any, extra: Any = 0,
    ) -> tuple[Any, ...]:  # fmt: skip
        if not isinstance(extra, int) or extra:
            raise RefusedError("tilescope exec has no stand-in for cuLaunchKernel's 'extra'")
        work = self._launching(function, (gx, gy, gz), (bx, by, bz), given, shared, cooperative)
        code = self.machine.captures.submit(self._streams.find(stream), work)
        return (self._done if code is None else code,)

    def _launching(
        self, function: Any, grid: tuple[int, ...], block: tuple[int, ...], given: Any,
        shared: int, cooperative: bool = False,
    ) -> Work:  # fmt: skip
        """Return a launch with its parameters as they are now."""
        kernel = self._functions[int(function)]
        raws = _parameters(given, [p.nbytes for p in kernel.params])
        allowed = max(self._allowed.get(int(function), 0), MAX_STATIC_SHARED)

        def work(queue: Stream) -> Any:
            done = checked_launch(
                self.machine, kernel, grid, block, raws, int(shared), queue, allowed,
                cooperative=cooperative,
            )  # fmt: skip
            return self._wrong if done.refused else self._done

        return work


def _parameters(given: Any, sizes: Sequence[int]) -> list[bytes]:
    """Return the bytes of each parameter: from an array of addresses, or (values, ctypes)."""
    if not sizes:
        return []
    if isinstance(given, tuple):
        values, kinds = given
        return [
            _raw(value, kind, size) for value, kind, size in zip(values, kinds, sizes, strict=True)
        ]
    table = np.frombuffer(host(given, 8 * len(sizes)), np.uint64)
    return [bytes(host(int(at), size)) for at, size in zip(table, sizes, strict=True)]


def _raw(value: Any, kind: Any, size: int) -> bytes:
    if kind is None:  # the driver's own type, a ctypes object, or one with getPtr()
        if isinstance(value, (ctypes.Structure, ctypes._SimpleCData)):
            return bytes(value)
        if hasattr(value, "getPtr"):
            return int(value).to_bytes(size, "little")
        return int(value).to_bytes(size, "little", signed=int(value) < 0)
    return bytes(value if isinstance(value, kind) else kind(_plain(value)))


def _plain(value: Any) -> Any:
    return int(value) if hasattr(value, "getPtr") else value


def driver_calls(
    module: ModuleType, machine: VirtualDevice
) -> dict[str, Callable[..., tuple[Any, ...]]]:
    """Return the stand-ins by name, the same for all that ask: their handles are one another's."""
    if machine.driver is None:
        machine.driver = _DriverApi(module, machine).calls()
    return machine.driver


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Have ``cuda.bindings.driver`` answer without a driver."""
    calls = driver_calls(module, machine)
    for name in dir(module):
        if name.startswith("cu") and name[2:3].isupper() and callable(getattr(module, name)):
            missing = stand_in.refuse(f"cuda.bindings.driver.{name}")
            patches.set(module, name, calls.get(name, missing))


def install_nvrtc(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Let NVRTC return a program's PTX where a script asks for machine code."""
    patches.set(module, "nvrtcGetCUBINSize", module.nvrtcGetPTXSize)
    patches.set(module, "nvrtcGetCUBIN", module.nvrtcGetPTX)
