"""Memory in ``cuda.bindings.driver``: allocations, copies and fills."""

# ruff: noqa: D102 - the driver's own documents say what its calls do

import ctypes
import os
from types import ModuleType
from typing import Any

import numpy as np

from simulator import Source
from simulator.host_order import Stream
from simulator.memory.storage.device import AddressesExhaustedError

from ...host_calls.graphs import Work
from ...sessions.recording import user_line
from .. import host_pages
from ..streams import Streams
from ..virtual_device import RefusedError, VirtualDevice

_PITCH = 512
"""Bytes of which an H200's pitches are multiples."""


class DriverMemory:
    """The calls about memory; each gives what the driver's gives, the result first."""

    def __init__(self, module: ModuleType, machine: VirtualDevice, streams: Streams) -> None:
        self.module, self.machine, self.streams = module, machine, streams
        self.device, self.checks = machine.device, machine.checks

    @property
    def done(self) -> Any:
        return self.module.CUresult.CUDA_SUCCESS

    @property
    def wrong(self) -> Any:
        return self.module.CUresult.CUDA_ERROR_INVALID_VALUE

    # -- allocations -----------------------------------------------------------------------

    def _allocate(self, nbytes: int, kind: str) -> tuple[Any, int]:
        if nbytes <= 0:
            return self.wrong, 0
        try:
            if kind == "device":
                made = self.device.allocate(nbytes, place=place(user_line()))
            else:
                made = host_pages.allocate(self.device, nbytes, kind, place(user_line()))
        except AddressesExhaustedError as error:  # a GPU would have one
            raise RefusedError(f"{kind} memory of {nbytes:,} bytes: {error}") from None
        except MemoryError:
            return self.module.CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0
        return self.done, made.address

    def cuMemAlloc(self, nbytes: int, *_: Any) -> tuple[Any, ...]:
        code, address = self._allocate(int(nbytes), "device")
        return code, self.module.CUdeviceptr(address)

    cuMemAllocAsync = cuMemAllocFromPoolAsync = cuMemAlloc

    def cuMemAllocManaged(self, nbytes: int, flags: int = 1) -> tuple[Any, ...]:
        code, address = self._allocate(int(nbytes), "managed")
        return code, self.module.CUdeviceptr(address)

    def cuMemAllocHost(self, nbytes: int, flags: int = 0) -> tuple[Any, ...]:
        return self._allocate(int(nbytes), "pinned")

    cuMemHostAlloc = cuMemAllocHost

    def cuMemAllocPitch(self, width: int, height: int, element: int) -> tuple[Any, ...]:
        row = -(-int(width) // _PITCH) * _PITCH
        code, address = self._allocate(row * int(height), "device")
        return code, self.module.CUdeviceptr(address), row

    def cuMemFree(self, address: Any) -> tuple[Any, ...]:
        self.machine.order.synchronize()
        return (self._free("cuMemFree", int(address)),)

    def cuMemFreeHost(self, address: Any) -> tuple[Any, ...]:
        self.machine.order.synchronize()
        return (self._free("cuMemFreeHost", int(address)),)

    def cuMemFreeAsync(self, address: Any, stream: Any) -> tuple[Any, ...]:
        found = self.device.find(int(address))
        if found:
            queue = self.streams.find(stream)
            self.machine.copied("cuMemFreeAsync", queue, to=found.array)
        return (self._free("cuMemFreeAsync", int(address)),)

    def _free(self, call: str, address: int) -> Any:
        freed = self.device.freed_at(address)
        made = self.device.free(address, place(user_line()))
        if made is None:
            if freed:
                self.checks.use_after_free(user_line(), call, "its argument", freed)
            return self.done if address == 0 else self.wrong
        if made.file >= 0:
            host_pages.release(made)
        return self.done

    def cuMemHostGetDevicePointer(self, address: Any, flags: int) -> tuple[Any, ...]:
        found = self.device.find(int(address))
        code = self.done if found else self.wrong
        return code, self.module.CUdeviceptr(int(address) if found else 0)

    def cuMemGetAddressRange(self, address: Any) -> tuple[Any, ...]:
        found = self.device.find(int(address))
        if found is None:
            return self.module.CUresult.CUDA_ERROR_NOT_FOUND, self.module.CUdeviceptr(0), 0
        return self.done, self.module.CUdeviceptr(found.address), found.nbytes

    # -- copies and fills ------------------------------------------------------------------

    def _bytes(self, call: str, address: int, nbytes: int, what: str) -> Any:
        """Return bytes of the device's memory; ``None``, and a finding, where they are none."""
        found = self.device.bytes_at(address, nbytes)
        if found is None:
            source = user_line()
            if not self.checks.misfit(self.device, source, call, address, nbytes, what):
                self.checks.bad_copy(source, call, f"{what} is no device memory")
        return found

    def cuMemcpyHtoD(self, to: Any, given: Any, nbytes: int) -> tuple[Any, ...]:
        return self._in("cuMemcpyHtoD", to, given, nbytes, 0, True)

    def cuMemcpyHtoDAsync(self, to: Any, given: Any, nbytes: int, stream: Any) -> tuple[Any, ...]:
        return self._in("cuMemcpyHtoDAsync", to, given, nbytes, stream, False)

    def _in(
        self, name: str, to: Any, given: Any, nbytes: int, stream: Any, waits: bool
    ) -> tuple[Any, ...]:  # fmt: skip
        def work(queue: Stream) -> Any:
            target = self._bytes(name, int(to), nbytes, "the destination")
            if target is None:
                return self.wrong
            pinned = self._pinned(given, nbytes)
            self.machine.copied(name, queue, waits, to=target, given=pinned)
            target[...] = np.frombuffer(host(given, nbytes), np.uint8)
            return self.done

        return self._submit(stream, work)

    def _submit(self, stream: Any, work: Work) -> tuple[Any]:
        """Do work in a stream; the code that it gives, success if the stream is captured."""
        code = self.machine.captures.submit(self.streams.find(stream), work)
        return (self.done if code is None else code,)

    def _pinned(self, place: Any, nbytes: int) -> Any:
        """Return the bytes of the host's if they are pinned or managed memory; else ``None``."""
        if isinstance(place, (bytes, bytearray, memoryview)):
            return None
        return self.device.bytes_at(at(place), nbytes)

    def cuMemcpyDtoH(self, to: Any, given: Any, nbytes: int, stream: Any = None) -> tuple[Any, ...]:
        name = "cuMemcpyDtoH" if stream is None else "cuMemcpyDtoHAsync"

        def work(queue: Stream) -> Any:
            source = self._bytes(name, int(given), nbytes, "the source")
            if source is None:
                return self.wrong
            pinned = self._pinned(to, nbytes)
            # A copy to other memory of the host is done when the call returns.
            waits = stream is None or pinned is None
            self.machine.copied(name, queue, waits, to=pinned, given=source)
            self.checks.host_unset(user_line(), name, source)
            host(to, nbytes)[:] = source.tobytes()
            return self.done

        return self._submit(stream or 0, work)

    def cuMemcpyDtoHAsync(self, to: Any, given: Any, nbytes: int, stream: Any) -> tuple[Any, ...]:
        return self.cuMemcpyDtoH(to, given, nbytes, stream)

    def cuMemcpyDtoD(self, to: Any, given: Any, nbytes: int, stream: Any = 0) -> tuple[Any, ...]:
        def work(queue: Stream) -> Any:
            there = self._bytes("cuMemcpyDtoD", int(to), nbytes, "the destination")
            here = self._bytes("cuMemcpyDtoD", int(given), nbytes, "the source")
            if there is None or here is None:
                return self.wrong
            self.machine.copied("cuMemcpyDtoD", queue, to=there, given=here)
            self.machine.move(there, here)
            return self.done

        return self._submit(stream, work)

    cuMemcpyDtoDAsync = cuMemcpyDtoD

    def cuMemcpy(self, to: Any, given: Any, nbytes: int, stream: Any = None) -> tuple[Any, ...]:
        """Copy between host and device as the addresses say (unified addressing)."""
        more = () if stream is None else (stream,)
        if self.device.find(int(to)) is None and self.device.find(int(given)):
            return self.cuMemcpyDtoH(int(to), given, nbytes, *more)
        if self.device.find(int(given)) is None and self.device.find(int(to)):
            waits = stream is None
            return self._in("cuMemcpy", to, int(given), nbytes, 0 if waits else stream, waits)
        return self.cuMemcpyDtoD(to, given, nbytes, *more)

    def cuMemcpyAsync(self, to: Any, given: Any, nbytes: int, stream: Any) -> tuple[Any, ...]:
        return self.cuMemcpy(to, given, nbytes, stream)

    def cuMemsetD8(self, to: Any, value: int, count: int, stream: Any = 0) -> tuple[Any, ...]:
        return self._set(int(to), np.uint8(value), count, stream)

    def cuMemsetD16(self, to: Any, value: int, count: int, stream: Any = 0) -> tuple[Any, ...]:
        return self._set(int(to), np.uint16(value), count, stream)

    def cuMemsetD32(self, to: Any, value: int, count: int, stream: Any = 0) -> tuple[Any, ...]:
        return self._set(int(to), np.uint32(value), count, stream)

    cuMemsetD8Async, cuMemsetD16Async = cuMemsetD8, cuMemsetD16
    cuMemsetD32Async = cuMemsetD32

    def _set(self, to: int, value: Any, count: int, stream: Any) -> tuple[Any, ...]:
        name = f"cuMemsetD{8 * value.itemsize}"

        def work(queue: Stream) -> Any:
            target = self._bytes(name, to, count * value.itemsize, "the destination")
            if target is None:
                return self.wrong
            self.machine.copied(name, queue, to=target)
            target[...] = np.full(count, value).view(np.uint8)
            return self.done

        return self._submit(stream, work)


def place(source: Source) -> str:
    """``script.py:12``, or nothing."""
    return f"{os.path.basename(source.file)}:{source.line}" if source.file else ""


def at(place: Any) -> int:
    """Return the address of a host's memory that a script gives."""
    if isinstance(place, np.ndarray):
        return int(place.ctypes.data)
    if hasattr(place, "__array_interface__"):
        return int(place.__array_interface__["data"][0])
    return int(place)


def host(place: Any, nbytes: int) -> Any:
    """Return bytes of the host's memory: a buffer, an array, or an address."""
    if isinstance(place, (bytes, bytearray, memoryview)):
        return memoryview(place).cast("B")[:nbytes]
    return memoryview((ctypes.c_char * nbytes).from_address(at(place))).cast("B")
