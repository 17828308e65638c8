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

from . import virtual_device as stand_in
from .memory import Memory
from .patches import Patches
from .streams import Streams
from .virtual_device import RefusedError, VirtualDevice

_ELF = b"\x7fELF"


class _DriverApi:
    """Handles are numbers; what they stand for is kept here."""

    def __init__(self, module: ModuleType, machine: VirtualDevice, memory: Memory) -> None:
        self.module, self.machine, self.memory = module, machine, memory
        self._numbers = itertools.count(1)
        self._modules: dict[int, str] = {}
        self._functions: dict[int, Kernel] = {}
        self._streams = Streams(machine)

    def calls(self) -> dict[str, Callable[..., tuple[Any, ...]]]:
        """The stand-ins by name; each gives what the driver's gives, the result first."""
        own = {name: getattr(self, name) for name in dir(self) if name.startswith("cu")}
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
            "cuEventElapsedTime": (float("nan"),), "cuMemGetInfo": (1 << 36, 1 << 37),
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
        found = call(*given)
        if found is None:
            return (self._done,)
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

    # -- memory ----------------------------------------------------------------------------

    def cuMemAlloc(self, nbytes: int, *_: Any) -> tuple[Any, ...]:
        if nbytes <= 0:
            return self._wrong, self.module.CUdeviceptr(0)
        return self._done, self.module.CUdeviceptr(self.memory.allocate(int(nbytes)))

    cuMemAllocAsync = cuMemAllocManaged = cuMemAlloc

    def cuMemFree(self, address: Any) -> tuple[Any, ...]:
        self.machine.order.synchronize()
        return (self._done if self.memory.free(int(address)) else self._wrong,)

    def cuMemFreeAsync(self, address: Any, stream: Any) -> tuple[Any, ...]:
        found = self.memory.find(int(address))
        if found:
            self.machine.copied("cuMemFreeAsync", self._streams.find(stream), to=found[0])
        return (self._done if self.memory.free(int(address)) else self._wrong,)

    def cuMemcpyHtoD(self, to: Any, given: Any, nbytes: int) -> tuple[Any, ...]:
        return self._in("cuMemcpyHtoD", to, given, nbytes, 0, True)

    def cuMemcpyHtoDAsync(self, to: Any, given: Any, nbytes: int, stream: Any) -> tuple[Any, ...]:
        return self._in("cuMemcpyHtoDAsync", to, given, nbytes, stream, False)

    def _in(
        self, name: str, to: Any, given: Any, nbytes: int, stream: Any, waits: bool
    ) -> tuple[Any, ...]:  # fmt: skip
        place = self.memory.bytes_at(int(to), nbytes)
        if place is None:
            return (self._wrong,)
        self.machine.copied(name, self._streams.find(stream), waits, to=place)
        place[...] = np.frombuffer(_host(given, nbytes), np.uint8)
        return (self._done,)

    def cuMemcpyDtoH(self, to: Any, given: Any, nbytes: int, stream: Any = 0) -> tuple[Any, ...]:
        place = self.memory.bytes_at(int(given), nbytes)
        if place is None:
            return (self._wrong,)
        # The host's memory is never pinned here: the copy is done when the call returns.
        self.machine.copied("cuMemcpyDtoH", self._streams.find(stream), True, given=place)
        _host(to, nbytes)[:] = place.tobytes()
        return (self._done,)

    cuMemcpyDtoHAsync = cuMemcpyDtoH

    def cuMemcpyDtoD(self, to: Any, given: Any, nbytes: int, stream: Any = 0) -> tuple[Any, ...]:
        there, here = (self.memory.bytes_at(int(a), nbytes) for a in (to, given))
        if there is None or here is None:
            return (self._wrong,)
        self.machine.copied("cuMemcpyDtoD", self._streams.find(stream), to=there, given=here)
        there[...] = np.asarray(here).copy()
        return (self._done,)

    cuMemcpyDtoDAsync = cuMemcpyDtoD

    def cuMemsetD8(self, to: Any, value: int, count: int, stream: Any = 0) -> tuple[Any, ...]:
        return self._set(int(to), np.uint8(value), count, stream)

    def cuMemsetD16(self, to: Any, value: int, count: int, stream: Any = 0) -> tuple[Any, ...]:
        return self._set(int(to), np.uint16(value), count, stream)

    def cuMemsetD32(self, to: Any, value: int, count: int, stream: Any = 0) -> tuple[Any, ...]:
        return self._set(int(to), np.uint32(value), count, stream)

    cuMemsetD8Async, cuMemsetD16Async = cuMemsetD8, cuMemsetD16
    cuMemsetD32Async = cuMemsetD32

    def _set(self, to: int, value: Any, count: int, stream: Any) -> tuple[Any, ...]:
        place = self.memory.bytes_at(to, count * value.itemsize)
        if place is None:
            return (self._wrong,)
        name = f"cuMemsetD{8 * value.itemsize}"
        self.machine.copied(name, self._streams.find(stream), to=place)
        place[...] = np.full(count, value).view(np.uint8)
        return (self._done,)

    # -- modules and launches --------------------------------------------------------------

    def cuModuleLoadData(self, image: Any, *_: Any) -> tuple[Any, ...]:
        raw = image if isinstance(image, (bytes, bytearray)) else ctypes.string_at(_at(image))
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

    def cuFuncSetAttribute(self, function: Any, attribute: Any, value: Any) -> tuple[Any, ...]:
        return (self._done,)

    def cuLaunchKernel(self, *given: Any) -> tuple[Any, ...]:
        return self._launch(False, *given)

    def cuLaunchCooperativeKernel(self, *given: Any) -> tuple[Any, ...]:
        return self._launch(True, *given)

    def _launch(
        self, cooperative: bool, function: Any, gx: int, gy: int, gz: int, bx: int, by: int,
        bz: int, shared: int, stream: Any, given: Any, extra: Any = 0,
    ) -> tuple[Any, ...]:  # fmt: skip
        kernel = self._functions[int(function)]
        if not isinstance(extra, int) or extra:
            raise RefusedError("tilescope exec has no stand-in for cuLaunchKernel's 'extra'")
        raws = _parameters(given, [p.nbytes for p in kernel.params])
        args = self.memory.arguments(kernel, raws)
        self.machine.launch(
            kernel, (gx, gy, gz), (bx, by, bz), args, shared, self._streams.find(stream),
            cooperative=cooperative,
        )  # fmt: skip
        return (self._done,)


def _at(place: Any) -> int:
    """The address of a host's memory that a script gives."""
    if isinstance(place, np.ndarray):
        return int(place.ctypes.data)
    if hasattr(place, "__array_interface__"):
        return int(place.__array_interface__["data"][0])
    return int(place)


def _host(place: Any, nbytes: int) -> Any:
    """Bytes of the host's memory: a buffer, an array, or an address."""
    if isinstance(place, (bytes, bytearray, memoryview)):
        return memoryview(place).cast("B")[:nbytes]
    return memoryview((ctypes.c_char * nbytes).from_address(_at(place))).cast("B")


def _parameters(given: Any, sizes: Sequence[int]) -> list[bytes]:
    """The bytes of each parameter: from an array of addresses, or (values, ctypes)."""
    if not sizes:
        return []
    if isinstance(given, tuple):
        values, kinds = given
        return [
            _raw(value, kind, size) for value, kind, size in zip(values, kinds, sizes, strict=True)
        ]
    table = np.frombuffer(_host(given, 8 * len(sizes)), np.uint64)
    return [bytes(_host(int(at), size)) for at, size in zip(table, sizes, strict=True)]


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


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Have ``cuda.bindings.driver`` answer without a driver."""
    memory = machine.memory
    calls = _DriverApi(module, machine, memory).calls()
    for name in dir(module):
        if name.startswith("cu") and name[2:3].isupper() and callable(getattr(module, name)):
            missing = stand_in.refuse(f"cuda.bindings.driver.{name}")
            patches.set(module, name, calls.get(name, missing))


def install_nvrtc(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Where a script asks NVRTC for machine code, it gets the PTX of the same program."""
    patches.set(module, "nvrtcGetCUBINSize", module.nvrtcGetPTXSize)
    patches.set(module, "nvrtcGetCUBIN", module.nvrtcGetPTX)
