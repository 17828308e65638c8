"""Memory: allocations, copies and fills."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

from typing import Any

import numpy as np

from simulator.memory.storage.device import AddressesExhaustedError, DeviceAllocation

from ...sessions.recording import placed_at
from .calls import stands_in_for
from .errors import INVALID_SYMBOL, INVALID_VALUE, MEMORY_ALLOCATION, SUCCESS
from .state import TOTAL_BYTES, Runtime

_LARGEST = 1 << 36
"""Bytes of one allocation; an H200 has 141 GB, this machine most likely not."""
_HOST, _DEVICE, _MANAGED = 1, 2, 3
"""Of ``cudaMemoryType``."""
_TO_DEVICE, _TO_HOST, _BETWEEN = 1, 2, 3
"""Of ``cudaMemcpyKind``."""
_PITCH = 512
"""Bytes of which an H200's pitches are multiples (rows of 1 to 2,000 bytes; driver 580)."""


# -- allocations -----------------------------------------------------------------------


def _allocate(runtime: Runtime, out: int, nbytes: int, kind: str) -> int:
    if nbytes == 0:
        runtime.put(out, 0)
        return SUCCESS
    if nbytes > _LARGEST:
        return MEMORY_ALLOCATION
    try:
        made = runtime.device.allocate(nbytes, kind, runtime.place)
    except (AddressesExhaustedError, MemoryError):
        return MEMORY_ALLOCATION
    if made.file >= 0 and not runtime.connection.map(made.address, made.mapped_bytes, made.file):
        runtime.device.free(made.address)
        return MEMORY_ALLOCATION
    runtime.put(out, made.address)
    return SUCCESS


@stands_in_for("cudaMalloc", "cudaMallocAsync")
def malloc(runtime: Runtime, out: int, nbytes: int, *_: int) -> int:
    return _allocate(runtime, out, nbytes, "device")


@stands_in_for("cudaMallocManaged")
def malloc_managed(runtime: Runtime, out: int, nbytes: int, *_: int) -> int:
    return _allocate(runtime, out, nbytes, "managed")


@stands_in_for("cudaMallocHost", "cudaHostAlloc")
def malloc_host(runtime: Runtime, out: int, nbytes: int, *_: int) -> int:
    return _allocate(runtime, out, nbytes, "pinned")


@stands_in_for("cudaMallocPitch")
def malloc_pitch(runtime: Runtime, out: int, pitch: int, width: int, height: int, *_: int) -> int:
    row = -(-width // _PITCH) * _PITCH
    runtime.put(pitch, row)
    return _allocate(runtime, out, row * height, "device")


@stands_in_for("cudaFree", "cudaFreeAsync", "cudaFreeHost")
def free(runtime: Runtime, address: int, *_: int) -> int:
    if address == 0:
        return SUCCESS
    runtime.machine.order.synchronize()
    freed = runtime.device.freed_at(address)
    made = runtime.device.free(address, runtime.place)
    if made is None:
        if freed:
            runtime.checks.use_after_free(runtime.source, "cudaFree", "its argument", freed)
        return INVALID_VALUE
    if made.file >= 0:
        runtime.connection.unmap(made.address, made.mapped_bytes)
    return SUCCESS


@stands_in_for("cudaHostGetDevicePointer")
def host_get_device_pointer(runtime: Runtime, out: int, address: int, *_: int) -> int:
    if runtime.device.find(address) is None:
        return INVALID_VALUE
    runtime.put(out, address)
    return SUCCESS


@stands_in_for("cudaPointerGetAttributes")
def pointer_attributes(runtime: Runtime, out: int, address: int, *_: int) -> None:
    found = runtime.device.find(address)
    kind = {"device": _DEVICE, "pinned": _HOST}.get(found.kind, _MANAGED) if found else 0
    host = address if found and found.kind != "device" else 0
    words = (kind, 0, address if found else 0, host)
    raw = b"".join(
        word.to_bytes(size, "little") for word, size in zip(words, (4, 4, 8, 8), strict=True)
    )
    runtime.process.write(out, raw)


@stands_in_for("cudaMemGetInfo")
def memory_info(runtime: Runtime, free_bytes: int, total: int, *_: int) -> None:
    used = sum(one.nbytes for one in runtime.device.allocations.values())
    runtime.put(free_bytes, max(0, TOTAL_BYTES - used))
    runtime.put(total, TOTAL_BYTES)


@stands_in_for("cudaMemPrefetchAsync", "cudaMemAdvise", "cudaHostUnregister")
def hint(runtime: Runtime, *_: int) -> int:
    return SUCCESS


# -- copies ----------------------------------------------------------------------------


def _bytes(runtime: Runtime, address: int, nbytes: int, call: str, what: str) -> tuple[bool, Any]:
    """Whether a range can be used, and its bytes if they are the device's (else the host's)."""
    found = runtime.device.bytes_at(address, nbytes)
    if found is not None:
        return True, found
    if freed := runtime.device.freed_at(address):
        runtime.checks.use_after_free(runtime.source, call, what, freed)
        return False, None
    whole = runtime.device.find(address)
    if whole is not None:
        past = address + nbytes - whole.address - whole.nbytes
        text = f"{nbytes:,} bytes of {what} end {past:,} bytes past {_named(whole)}"
        runtime.checks.bad_copy(runtime.source, call, text)
        return False, None
    return True, None


def _named(one: DeviceAllocation) -> str:
    return f"an allocation of {one.nbytes:,} bytes{f' (made at {one.place})' if one.place else ''}"


def copy(
    runtime: Runtime, call: str, to: int, given: int, nbytes: int, kind: int, stream: int,
    waits: bool,
) -> int:  # fmt: skip
    """Copy bytes between the host and the device, as ``cudaMemcpy`` does."""
    if nbytes == 0:
        return SUCCESS
    fine, target = _bytes(runtime, to, nbytes, call, "the destination")
    also, source = _bytes(runtime, given, nbytes, call, "the source")
    if not (fine and also):
        return INVALID_VALUE
    kind &= 0xFFFFFFFF
    if _wrong_way(runtime, call, to, given, kind):
        return INVALID_VALUE
    with placed_at(lambda: runtime.source):
        queue = runtime.streams.find(stream)
        runtime.machine.copied(call, queue, waits, to=target, given=source)
    if target is None and source is None:
        runtime.process.write(to, runtime.process.read_array(given, nbytes))
    elif target is None:
        _report_unset(runtime, call, source)
        runtime.process.write(to, np.asarray(source))
    elif source is None:
        target[...] = runtime.process.read_array(given, nbytes)
    else:
        missing = getattr(source, "missing", None)
        missing = None if missing is None else missing.copy()
        target[...] = np.array(source)
        if missing is not None and getattr(target, "missing", None) is not None:
            target.missing[...] = missing
    return SUCCESS


def _wrong_way(runtime: Runtime, call: str, to: int, given: int, kind: int) -> bool:
    """Whether a copy's direction is another one than its addresses say."""
    found = {name: runtime.device.find(at) for name, at in (("to", to), ("given", given))}
    only_device = {name: one is not None and one.kind == "device" for name, one in found.items()}
    wrong = ""
    if kind == _TO_HOST and only_device["to"]:
        wrong = "cudaMemcpyDeviceToHost, but the destination is memory of the device"
    elif kind == _TO_DEVICE and only_device["given"]:
        wrong = "cudaMemcpyHostToDevice, but the source is memory of the device"
    elif kind in (_TO_DEVICE, _BETWEEN) and found["to"] is None and not _variable(runtime, to):
        wrong = "to the device, but the destination is memory of the host"
    elif kind in (_TO_HOST, _BETWEEN) and found["given"] is None and not _variable(runtime, given):
        wrong = "from the device, but the source is memory of the host"
    if wrong:
        runtime.checks.bad_copy(runtime.source, call, wrong)
    return bool(wrong)


def _variable(runtime: Runtime, address: int) -> bool:
    return runtime.device.bytes_at(address, 0) is not None


def _report_unset(runtime: Runtime, call: str, source: Any) -> None:
    missing = getattr(source, "missing", None)
    if missing is not None and missing.any():
        count = int(np.count_nonzero(missing))
        runtime.checks.host_unset(runtime.source, call, count, source.nbytes)


@stands_in_for("cudaMemcpy")
def memcpy(runtime: Runtime, to: int, given: int, nbytes: int, kind: int, *_: int) -> int:
    return copy(runtime, "cudaMemcpy", to, given, nbytes, kind, 0, True)


@stands_in_for("cudaMemcpyAsync")
def memcpy_async(
    runtime: Runtime, to: int, given: int, nbytes: int, kind: int, stream: int, *_: int
) -> int:
    pageable = any(runtime.device.find(address) is None for address in (to, given))
    return copy(runtime, "cudaMemcpyAsync", to, given, nbytes, kind, stream, pageable)


def _rows(
    runtime: Runtime, call: str, to: int, pitch_to: int, given: int, pitch_given: int, width: int,
    height: int, kind: int, stream: int, waits: bool,
) -> int:  # fmt: skip
    if width > pitch_to or width > pitch_given:
        text = f"rows of {width:,} bytes, wider than a pitch"
        runtime.checks.bad_copy(runtime.source, call, text)
        return INVALID_VALUE
    for row in range(height):
        at = to + row * pitch_to, given + row * pitch_given
        if code := copy(runtime, call, *at, width, kind, stream, waits):
            return code
    return SUCCESS


@stands_in_for("cudaMemcpy2D")
def memcpy_2d(
    runtime: Runtime, to: int, pitch_to: int, given: int, pitch_given: int, width: int, height: int
) -> int:
    (kind,) = runtime.stack_words(1)
    return _rows(runtime, "cudaMemcpy2D", to, pitch_to, given, pitch_given, width, height, kind, 0,
                 True)  # fmt: skip


@stands_in_for("cudaMemcpy2DAsync")
def memcpy_2d_async(
    runtime: Runtime, to: int, pitch_to: int, given: int, pitch_given: int, width: int, height: int
) -> int:
    kind, stream = runtime.stack_words(2)
    return _rows(runtime, "cudaMemcpy2DAsync", to, pitch_to, given, pitch_given, width, height,
                 kind, stream, False)  # fmt: skip


# -- fills -----------------------------------------------------------------------------


def _fill(runtime: Runtime, call: str, address: int, value: int, nbytes: int, stream: int) -> int:
    if nbytes == 0:
        return SUCCESS
    fine, target = _bytes(runtime, address, nbytes, call, "the destination")
    if target is None:
        if fine:
            runtime.checks.bad_copy(runtime.source, call, "the destination is no device memory")
        return INVALID_VALUE
    with placed_at(lambda: runtime.source):
        runtime.machine.copied(call, runtime.streams.find(stream), to=target)
    target[...] = np.uint8(value & 255)
    return SUCCESS


@stands_in_for("cudaMemset")
def memset(runtime: Runtime, address: int, value: int, nbytes: int, *_: int) -> int:
    return _fill(runtime, "cudaMemset", address, value, nbytes, 0)


@stands_in_for("cudaMemsetAsync")
def memset_async(
    runtime: Runtime, address: int, value: int, nbytes: int, stream: int, *_: int
) -> int:
    return _fill(runtime, "cudaMemsetAsync", address, value, nbytes, stream)


@stands_in_for("cudaMemset2D")
def memset_2d(
    runtime: Runtime, address: int, pitch: int, value: int, width: int, height: int, *_: int
) -> int:
    for row in range(height):
        if code := _fill(runtime, "cudaMemset2D", address + row * pitch, value, width, 0):
            return code
    return SUCCESS


# -- variables -------------------------------------------------------------------------


def _symbol(runtime: Runtime, symbol: int) -> int | None:
    """The address of a module's variable, by that of its host's stand-in."""
    found = runtime.symbols.get(symbol)
    if found is None or found.module.ptx is None:
        return None
    return runtime.device.module(found.module.ptx).addresses.get(found.name)


@stands_in_for("cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync")
def memcpy_to_symbol(
    runtime: Runtime, symbol: int, given: int, nbytes: int, offset: int, kind: int, stream: int
) -> int:
    at = _symbol(runtime, symbol)
    if at is None:
        return INVALID_SYMBOL
    is_async = "Async" in runtime.name
    return copy(runtime, runtime.name, at + offset, given, nbytes, kind,
                stream if is_async else 0, not is_async)  # fmt: skip


@stands_in_for("cudaMemcpyFromSymbol", "cudaMemcpyFromSymbolAsync")
def memcpy_from_symbol(
    runtime: Runtime, to: int, symbol: int, nbytes: int, offset: int, kind: int, stream: int
) -> int:
    at = _symbol(runtime, symbol)
    if at is None:
        return INVALID_SYMBOL
    is_async = "Async" in runtime.name
    return copy(runtime, runtime.name, to, at + offset, nbytes, kind,
                stream if is_async else 0, not is_async)  # fmt: skip


@stands_in_for("cudaGetSymbolAddress")
def symbol_address(runtime: Runtime, out: int, symbol: int, *_: int) -> int:
    at = _symbol(runtime, symbol)
    if at is None:
        return INVALID_SYMBOL
    runtime.put(out, at)
    return SUCCESS


@stands_in_for("cudaGetSymbolSize")
def symbol_size(runtime: Runtime, out: int, symbol: int, *_: int) -> int:
    if symbol not in runtime.symbols:
        return INVALID_SYMBOL
    runtime.put(out, runtime.symbols[symbol].nbytes)
    return SUCCESS
