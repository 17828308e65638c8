"""``cuda.bindings.runtime``: the runtime API, by the stand-ins of the driver's calls."""

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...programs.runtime.structures import h200
from .. import virtual_device as stand_in
from ..patches import Patches
from ..streams import UnknownHandleError
from ..virtual_device import RefusedError, VirtualDevice
from .api import driver_calls
from .memory import at

_SAME = {
    "cudaMallocAsync": "cuMemAllocAsync", "cudaMallocManaged": "cuMemAllocManaged",
    "cudaMallocHost": "cuMemAllocHost", "cudaHostAlloc": "cuMemHostAlloc",
    "cudaMalloc": "cuMemAlloc", "cudaFree": "cuMemFree", "cudaFreeAsync": "cuMemFreeAsync",
    "cudaFreeHost": "cuMemFreeHost", "cudaMemset": "cuMemsetD8", "cudaMemsetAsync": "cuMemsetD8",
    "cudaHostGetDevicePointer": "cuMemHostGetDevicePointer", "cudaMemGetInfo": "cuMemGetInfo",
    "cudaStreamCreateWithFlags": "cuStreamCreate", "cudaStreamDestroy": "cuStreamDestroy",
    "cudaStreamCreateWithPriority": "cuStreamCreateWithPriority",
    "cudaStreamSynchronize": "cuStreamSynchronize", "cudaStreamQuery": "cuStreamQuery",
    "cudaStreamWaitEvent": "cuStreamWaitEvent", "cudaEventCreateWithFlags": "cuEventCreate",
    "cudaEventRecord": "cuEventRecord", "cudaEventRecordWithFlags": "cuEventRecordWithFlags",
    "cudaEventSynchronize": "cuEventSynchronize", "cudaEventQuery": "cuEventQuery",
    "cudaEventDestroy": "cuEventDestroy", "cudaEventElapsedTime": "cuEventElapsedTime",
    "cudaDeviceSynchronize": "cuCtxSynchronize", "cudaGetDeviceCount": "cuDeviceGetCount",
    "cudaDriverGetVersion": "cuDriverGetVersion", "cudaRuntimeGetVersion": "cuDriverGetVersion",
    "cudaMemPrefetchAsync": "cuMemPrefetchAsync", "cudaProfilerStart": "cuProfilerStart",
    "cudaProfilerStop": "cuProfilerStop", "cudaStreamBeginCapture": "cuStreamBeginCapture",
    "cudaStreamEndCapture": "cuStreamEndCapture", "cudaStreamIsCapturing": "cuStreamIsCapturing",
    "cudaGraphCreate": "cuGraphCreate", "cudaGraphInstantiate": "cuGraphInstantiate",
    "cudaGraphInstantiateWithFlags": "cuGraphInstantiate", "cudaGraphLaunch": "cuGraphLaunch",
    "cudaGraphUpload": "cuGraphUpload", "cudaGraphExecDestroy": "cuGraphExecDestroy",
    "cudaGraphDestroy": "cuGraphDestroy", "cudaGraphGetNodes": "cuGraphGetNodes",
    "cudaGraphAddEmptyNode": "cuGraphAddEmptyNode",
}  # fmt: skip
"""Calls whose arguments are the driver's."""
_TYPES = {
    "CUdeviceptr": int, "CUstream": "cudaStream_t", "CUevent": "cudaEvent_t",
    "CUgraph": "cudaGraph_t", "CUgraphExec": "cudaGraphExec_t", "CUgraphNode": "cudaGraphNode_t",
    "CUstreamCaptureStatus": "cudaStreamCaptureStatus",
}  # fmt: skip
"""What the driver's types are here."""
_HOST, _TO_DEVICE, _TO_HOST, _BETWEEN = range(4)
"""Of ``cudaMemcpyKind``."""


class _RuntimeApi:
    """The calls; each gives what the runtime's gives, the result first."""

    def __init__(
        self, module: ModuleType, calls: dict[str, Callable[..., tuple[Any, ...]]]
    ) -> None:
        self.module, self._driver = module, calls
        self._last = 0

    def calls(self) -> dict[str, Callable[..., tuple[Any, ...]]]:
        """Return the stand-ins by name."""
        made = {name: self._through(driver) for name, driver in _SAME.items()}
        return made | {name: getattr(self, name) for name in dir(self) if name[:4] == "cuda"}

    def _through(self, name: str) -> Callable[..., tuple[Any, ...]]:
        return lambda *given: self._ask(name, *given)

    def _ask(self, name: str, *given: Any) -> tuple[Any, ...]:
        try:
            code, *values = self._driver[name](*given)
        except UnknownHandleError:
            return self._end(self.module.cudaError_t.cudaErrorInvalidResourceHandle)
        return self._end(self.module.cudaError_t(int(code)), *map(self._value, values))

    def _end(self, code: Any, *values: Any) -> tuple[Any, ...]:
        self._last = int(code) or self._last
        return code, *values

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(one) for one in value]
        kind = _TYPES.get(type(value).__name__)
        if kind is None:
            return value
        return int(value) if kind is int else getattr(self.module, str(kind))(int(value))

    @property
    def _done(self) -> Any:
        return self.module.cudaError_t.cudaSuccess

    # -- copies ----------------------------------------------------------------------------

    def cudaMemcpy(self, to: Any, given: Any, nbytes: int, kind: Any) -> tuple[Any, ...]:
        return self._copy("", to, given, nbytes, kind)

    def cudaMemcpyAsync(
        self, to: Any, given: Any, nbytes: int, kind: Any, stream: Any
    ) -> tuple[Any, ...]:
        return self._copy("Async", to, given, nbytes, kind, stream)

    def _copy(
        self, suffix: str, to: Any, given: Any, nbytes: int, kind: Any, *stream: Any
    ) -> tuple[Any, ...]:  # fmt: skip
        way = int(kind)
        if way == _HOST:
            ctypes.memmove(at(to), at(given), nbytes)
            return self._end(self._done)
        if way == _TO_DEVICE:
            return self._ask(f"cuMemcpyHtoD{suffix}", at(to), given, nbytes, *stream)
        if way == _TO_HOST:
            return self._ask(f"cuMemcpyDtoH{suffix}", to, at(given), nbytes, *stream)
        name = "DtoD" if way == _BETWEEN else ""
        return self._ask(f"cuMemcpy{name}{suffix}", at(to), at(given), nbytes, *stream)

    # -- streams, events, errors -----------------------------------------------------------

    def cudaStreamCreate(self) -> tuple[Any, ...]:
        return self._ask("cuStreamCreate", 0)

    def cudaEventCreate(self) -> tuple[Any, ...]:
        return self._ask("cuEventCreate", 0)

    def cudaPeekAtLastError(self) -> tuple[Any, ...]:
        return (self.module.cudaError_t(self._last),)

    def cudaGetLastError(self) -> tuple[Any, ...]:
        last, self._last = self._last, 0
        return (self.module.cudaError_t(last),)

    # -- the device ------------------------------------------------------------------------

    def cudaSetDevice(self, device: int) -> tuple[Any, ...]:
        wrong = self.module.cudaError_t.cudaErrorInvalidDevice
        return self._end(wrong if device else self._done)

    def cudaGetDevice(self) -> tuple[Any, ...]:
        return self._done, 0

    def cudaDeviceReset(self) -> tuple[Any, ...]:
        return (self._done,)

    def cudaGetDeviceProperties(self, device: int) -> tuple[Any, ...]:
        made = self.module.cudaDeviceProp()
        made.name = stand_in.NAME.encode().ljust(256, b"\0")
        for name, value in h200()["cudaDeviceProp"].items():
            is_pair = isinstance(getattr(made, name, None), list) and isinstance(value, int)
            if hasattr(made, name):
                setattr(made, name, [value & 0xFFFFFFFF, value >> 32] if is_pair else value)
        return self._done, made

    def cudaDeviceGetAttribute(self, attribute: Any, device: int) -> tuple[Any, ...]:
        name = attribute.name.removeprefix("cudaDevAttr")
        if name not in h200()["attributes"]:
            raise RefusedError(f"tilescope exec knows no device attribute {name}")
        return self._done, h200()["attributes"][name]


_OWN = ("cudaGetErrorName", "cudaGetErrorString")
"""What works without a driver."""


def install(module: ModuleType, patches: Patches, machine: VirtualDevice) -> None:
    """Have ``cuda.bindings.runtime`` answer without a driver."""
    from cuda.bindings import driver

    calls = _RuntimeApi(module, driver_calls(driver, machine)).calls()
    for name in dir(module):
        value = getattr(module, name)
        is_call = name.startswith("cuda") and name[4:5].isupper() and callable(value)
        if is_call and not isinstance(value, type) and name not in _OWN:
            missing = stand_in.refuse(f"cuda.bindings.runtime.{name}")
            patches.set(module, name, calls.get(name, missing))
