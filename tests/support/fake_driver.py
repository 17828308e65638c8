"""The CUDA driver's edge, made to fail: for error paths that a healthy GPU cannot produce.

Functions of ``cuda.bindings.driver`` are replaced one by one; its enumerations stay. This
proves nothing about results: a launch changes nothing here. It shows which code ends in
which words, and that whatever was acquired is released.
"""

import ctypes
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import device.driver

driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
OK = driver.CUresult.CUDA_SUCCESS
_PAIRS = {
    "cuMemAlloc": "cuMemFree",
    "cuModuleLoadDataEx": "cuModuleUnload",
    "cuEventCreate": "cuEventDestroy",
    "cuStreamCreate": "cuStreamDestroy",
    "cuDevicePrimaryCtxRetain": "cuDevicePrimaryCtxRelease",
    "cuCtxPushCurrent": "cuCtxPopCurrent",
    "cuArray3DCreate": "cuArrayDestroy",
    "cuTexObjectCreate": "cuTexObjectDestroy",
    "cuSurfObjectCreate": "cuSurfObjectDestroy",
}
"""What acquires, and what must release it."""


class FakeDriver:
    """Answers every call with success, but for those told to fail.

    Attributes:
        calls: How often each function was called; ``log``: their names, in order.
        failures: Codes by function, and from which call of it on they come.
        sticky: After a failure, whether every later call fails with the same code.
        held: What was acquired and not released, by the acquiring function.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.log: list[str] = []
        self.failures: dict[str, tuple[Any, int]] = {}
        self.sticky = False
        self.held: Counter[str] = Counter()
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.version = 13000
        self.jit_log = b""
        self._broken: Any = None
        self._memory: dict[int, Any] = {}

    def fail(self, name: str, code: str, call: int = 1, sticky: bool = False) -> None:
        """Let a function fail from its ``call``-th call on."""
        self.failures[name] = (getattr(driver.CUresult, code), call)
        self.sticky = sticky

    def __call__(self, name: str, *args: Any) -> tuple[Any, ...]:
        self.calls[name] += 1
        self.log.append(name)
        self.asked.append((name, args))
        for acquire, release in _PAIRS.items():
            if name == release:  # the attempt counts: after a sticky error it fails
                self.held[acquire] -= 1
        if self._broken is not None and name not in ("cuGetErrorString", "cuDriverGetVersion"):
            return (self._broken, *[None] * 2)
        code, first = self.failures.get(name, (OK, 1))
        if code != OK and self.calls[name] >= first:
            if name == "cuModuleLoadDataEx":
                args[3][0][: len(self.jit_log)] = self.jit_log
            if self.sticky:
                self._broken = code
            return (code,) if name == "cuInit" else (code, None)
        if name in _PAIRS:
            self.held[name] += 1
        made = getattr(self, f"_{name}", None)
        return (OK, *made(*args)) if made else (OK, *_ANSWERS.get(name, ()))

    def leaks(self) -> dict[str, int]:
        """What is still held."""
        return {name: count for name, count in self.held.items() if count}

    def _cuGetErrorString(self, status: Any) -> tuple[Any, ...]:
        return (f"words for {status.name}".encode(),)

    def _cuDriverGetVersion(self) -> tuple[Any, ...]:
        return (self.version,)

    def _cuMemAlloc(self, size: int) -> tuple[Any, ...]:
        buffer = ctypes.create_string_buffer(size)
        self._memory[ctypes.addressof(buffer)] = buffer
        return (ctypes.addressof(buffer),)

    def _cuModuleGetGlobal(self, module: str, name: bytes) -> tuple[Any, ...]:
        return (*self._cuMemAlloc(64), 64)

    def _cuMemFree(self, pointer: int) -> tuple[Any, ...]:
        del self._memory[pointer]
        return ()

    def _cuMemcpyHtoD(self, to: int, source: int, size: int) -> tuple[Any, ...]:
        ctypes.memmove(to, source, size)
        return ()

    _cuMemcpyDtoH = _cuMemcpyHtoD

    def _cuMemcpyDtoDAsync(self, to: int, source: int, size: int, stream: Any) -> tuple[Any, ...]:
        return self._cuMemcpyHtoD(to, source, size)

    def _cuDeviceGetName(self, size: int, handle: Any) -> tuple[Any, ...]:
        return (b"NVIDIA Pretend\0",)


_ANSWERS: dict[str, tuple[Any, ...]] = {
    "cuDeviceGetCount": (1,), "cuDeviceGet": (0,), "cuDevicePrimaryCtxRetain": ("context",),
    "cuCtxPopCurrent": ("context",), "cuModuleLoadDataEx": ("module",),
    "cuModuleGetFunction": ("function",), "cuFuncGetAttribute": (24,),
    "cuStreamCreate": (7,), "cuEventCreate": ("event",), "cuEventElapsedTime": (0.5,),
    "cuFuncGetModule": ("module",), "cuCtxGetLimit": (1024,), "cuMemGetInfo": (1000, 2000),
    "cuDeviceGetAttribute": (9,), "cuArray3DCreate": (driver.CUarray(5),),
    "cuTexObjectCreate": (11,), "cuSurfObjectCreate": (12,),
}  # fmt: skip
_NAMES = (
    *_ANSWERS, *_PAIRS, *_PAIRS.values(), "cuInit", "cuGetErrorString", "cuDriverGetVersion",
    "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoDAsync", "cuDeviceGetName", "cuEventRecord",
    "cuLaunchKernel", "cuLaunchKernelEx", "cuModuleGetGlobal", "cuStreamSynchronize",
    "cuFuncSetAttribute", "cuCtxSetLimit", "cuMemcpy3D",
)  # fmt: skip


@contextmanager
def installed(patch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The bindings' functions replaced, and put back."""
    fake = FakeDriver()
    device.driver.bindings.cache_clear()
    with patch.context() as patched:
        for name in _NAMES:

            def function(*args: Any, name: str = name) -> tuple[Any, ...]:
                return fake(name, *args)

            patched.setattr(driver, name, function)
        yield fake
    device.driver.bindings.cache_clear()
