"""Allocations: device, managed and pinned memory, pools, pitched memory."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

from dataclasses import dataclass
from typing import Any, ClassVar

from simulator.core.machine_memory import available_bytes
from simulator.host_order import Stream
from simulator.memory.storage.device import AddressesExhaustedError, DeviceAllocation

from ...executable import ProgramRefusedError
from ..calls import signed, stands_in_for
from ..errors import (
    ALREADY_REGISTERED,
    INVALID_VALUE,
    MEMORY_ALLOCATION,
    NOT_REGISTERED,
    SUCCESS,
)
from ..state import TOTAL_BYTES, RegisteredRange, Runtime
from ..work import MEM_ALLOC, MEM_FREE, StreamWork

_LARGE = 1 << 24
"""Bytes of an allocation from which on this machine's memory is looked at, which takes 26 us; the
allocation takes some milliseconds."""
_COPIES = 4
"""Bytes of this machine that a byte of the device takes, at least: itself, whether it is set, and
both again in a launch. (A launch that stores one byte in each page of 1 GB: 6.6.)"""
_HOST, _DEVICE, _MANAGED = 1, 2, 3
"""Of ``cudaMemoryType``."""
PITCH = 512
"""Bytes of which an H200's pitches are multiples (rows of 1 to 2,000 bytes; driver 580)."""
_PAGE = 4096


def allocate(runtime: Runtime, nbytes: int, kind: str) -> int:
    """Return the address of new memory; 0: there is none.

    Raises:
        ProgramRefusedError: A GPU has it, but this machine has not. What a program does without the
            memory would say nothing of what it does on a GPU.
    """
    if nbytes > TOTAL_BYTES:
        return 0
    if nbytes >= _LARGE and (free_bytes := available_bytes()) < _COPIES * nbytes:
        raise ProgramRefusedError(
            f"an allocation of {nbytes:,} bytes: simulating them takes {_COPIES} times as many, and"
            f" this machine has {free_bytes:,} left"
        )
    made = placed(runtime, nbytes, kind)
    if made is None:
        return 0
    if made.file >= 0 and not runtime.connection.map(made.address, made.mapped_bytes, made.file):
        runtime.device.free(made.address)
        return 0
    return made.address


def placed(runtime: Runtime, nbytes: int, kind: str) -> DeviceAllocation | None:
    """Return new memory of the device; ``None``: this machine has none.

    Raises:
        ProgramRefusedError: The simulated device has no address for it, which a GPU would have.
    """
    try:
        return runtime.device.allocate(nbytes, kind, runtime.place)
    except AddressesExhaustedError as error:
        raise ProgramRefusedError(f"{runtime.name} of {nbytes:,} bytes: {error}") from None
    except MemoryError:
        return None


def _allocated(runtime: Runtime, out: int, nbytes: int, kind: str) -> int:
    address = allocate(runtime, nbytes, kind) if nbytes else 0
    if nbytes and not address:
        return MEMORY_ALLOCATION
    runtime.put(out, address)
    return SUCCESS


@stands_in_for("cudaMalloc")
def malloc(runtime: Runtime, out: int, nbytes: int, *_: int) -> int:
    return _allocated(runtime, out, nbytes, "device")


@stands_in_for("cudaMallocManaged")
def malloc_managed(runtime: Runtime, out: int, nbytes: int, *_: int) -> int:
    return _allocated(runtime, out, nbytes, "managed")


@stands_in_for("cudaMallocHost", "cudaHostAlloc")
def malloc_host(runtime: Runtime, out: int, nbytes: int, flags: int, *_: int) -> int:
    code = _allocated(runtime, out, nbytes, "pinned")
    if code == SUCCESS and nbytes:
        given = flags & 0xFFFFFFFF if runtime.name == "cudaHostAlloc" else 0
        runtime.host_flags[int.from_bytes(runtime.process.read(out, 8), "little")] = given
    return code


@stands_in_for("cudaMallocPitch")
def malloc_pitch(runtime: Runtime, out: int, pitch: int, width: int, height: int, *_: int) -> int:
    row = -(-width // PITCH) * PITCH
    runtime.put(pitch, row)
    return _allocated(runtime, out, row * height, "device")


@stands_in_for("cudaMalloc3D")
def malloc_3d(runtime: Runtime, out: int, *_: int) -> int:
    """Allocate rows; the extents are on the stack: bytes of a row, rows, slices."""
    width, height, depth = runtime.stack_words(3)
    row = -(-width // PITCH) * PITCH
    code = _allocated(runtime, out, row * height * depth, "device")
    if code == SUCCESS:
        for i, word in enumerate((row, width, height)):
            runtime.put(out + 8 + 8 * i, word)
    return code


@stands_in_for("cudaFree", "cudaFreeHost")
def free(runtime: Runtime, address: int, *_: int) -> int:
    if address:
        runtime.machine.order.synchronize()
    return release(runtime, address)


def release(runtime: Runtime, address: int) -> int:
    """Give memory back."""
    if address == 0:
        return SUCCESS
    freed = runtime.device.freed_at(address)
    found = runtime.device.find(address)
    if found is not None and found.address in runtime.arrays:
        return INVALID_VALUE
    made = runtime.device.free(address, runtime.place, address in runtime.graph_memory)
    if made is None:
        if freed:
            runtime.checks.use_after_free(runtime.source, runtime.name, "its argument", freed)
        return INVALID_VALUE
    if made.file >= 0:
        runtime.connection.unmap(made.address, made.mapped_bytes)
    return SUCCESS


# -- memory in the order of a stream -----------------------------------------------------


@dataclass
class PoolFree(StreamWork):
    """``cudaFreeAsync``, or a node of a graph that frees."""

    address: int
    node_type: ClassVar[int] = MEM_FREE

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``."""
        return release(runtime, self.address)


@dataclass
class PoolAllocation(StreamWork):
    """A node of a graph that allocates: its address is the same for each launch."""

    address: int
    nbytes: int
    node_type: ClassVar[int] = MEM_ALLOC

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """See ``StreamWork``; what an earlier launch left there is gone."""
        device = runtime.device
        device.free(self.address, is_reserved=True)
        device.allocate(self.nbytes, "device", runtime.place, self.address)
        return SUCCESS


@stands_in_for("cudaMallocAsync", "cudaMallocFromPoolAsync")
def malloc_async(runtime: Runtime, out: int, nbytes: int, third: int, fourth: int, *_: int) -> int:
    stream = runtime.stream(fourth if runtime.name == "cudaMallocFromPoolAsync" else third)
    runtime.streams.find(stream)
    code = _allocated(runtime, out, nbytes, "device")
    if code == SUCCESS and stream in runtime.graphs.captures:
        address = int.from_bytes(runtime.process.read(out, 8), "little")
        runtime.graph_memory.add(address)
        return runtime.enqueue(stream, PoolAllocation(runtime.source, address, nbytes))
    return code


@stands_in_for("cudaFreeAsync")
def free_async(runtime: Runtime, address: int, stream: int, *_: int) -> int:
    return runtime.enqueue(stream, PoolFree(runtime.source, address))


@stands_in_for("cudaDeviceGetDefaultMemPool", "cudaDeviceGetMemPool")
def default_pool(runtime: Runtime, out: int, device: int, *_: int) -> int:
    if signed(device):
        return INVALID_VALUE
    runtime.put(out, runtime.current_pool if "Default" not in runtime.name else 1)
    return SUCCESS


@stands_in_for("cudaDeviceSetMemPool")
def set_pool(runtime: Runtime, device: int, pool: int, *_: int) -> int:
    if signed(device) or pool not in runtime.pools:
        return INVALID_VALUE
    runtime.current_pool = pool
    return SUCCESS


@stands_in_for("cudaMemPoolCreate")
def pool_create(runtime: Runtime, out: int, *_: int) -> None:
    handle = max(runtime.pools) + 1
    runtime.pools[handle] = {}
    runtime.put(out, handle)


@stands_in_for("cudaMemPoolDestroy")
def pool_destroy(runtime: Runtime, pool: int, *_: int) -> int:
    if pool == 1 or runtime.pools.pop(pool, None) is None:
        return INVALID_VALUE
    runtime.current_pool = 1 if runtime.current_pool == pool else runtime.current_pool
    return SUCCESS


_REUSE = (1, 2, 3)
"""Of ``cudaMemPoolAttr``: integers, 1 by default; the others are of 64 bits."""


@stands_in_for("cudaMemPoolSetAttribute")
def pool_set(runtime: Runtime, pool: int, attribute: int, value: int, *_: int) -> int:
    if pool not in runtime.pools:
        return INVALID_VALUE
    size = 4 if signed(attribute) in _REUSE else 8
    given = int.from_bytes(runtime.process.read(value, size), "little")
    runtime.pools[pool][signed(attribute)] = given
    return SUCCESS


@stands_in_for("cudaMemPoolGetAttribute")
def pool_get(runtime: Runtime, pool: int, attribute: int, value: int, *_: int) -> int:
    if pool not in runtime.pools:
        return INVALID_VALUE
    code = signed(attribute)
    known = runtime.pools[pool].get(code, int(code in _REUSE))
    if code in (5, 7):  # reserved and used at present
        known = sum(one.nbytes for one in runtime.device.allocations.values())
    runtime.put(value, known, 4 if code in _REUSE else 8)
    return SUCCESS


@stands_in_for("cudaMemPoolTrimTo", "cudaMemPoolSetAccess")
def pool_hint(runtime: Runtime, pool: int, *_: int) -> int:
    return SUCCESS if pool in runtime.pools else INVALID_VALUE


# -- memory of the host ------------------------------------------------------------------


@stands_in_for("cudaHostRegister")
def host_register(runtime: Runtime, address: int, nbytes: int, flags: int, *_: int) -> int:
    """Make the pages a file in memory that the device shares."""
    if not address or not nbytes:
        return INVALID_VALUE
    start = address // _PAGE * _PAGE
    size = -(-(address + nbytes) // _PAGE) * _PAGE - start
    if any(one.start < start + size and start < one.start + one.nbytes
           for one in runtime.registered.values()):  # fmt: skip
        return ALREADY_REGISTERED
    made = placed(runtime, size, "pinned")
    if made is None:
        return MEMORY_ALLOCATION
    if not runtime.connection.replace(start, size, made.file):
        runtime.device.free(made.address)
        return INVALID_VALUE
    runtime.registered[address] = RegisteredRange(start, size, made.address)
    runtime.host_flags[address] = flags & 0xFFFFFFFF
    return SUCCESS


@stands_in_for("cudaHostUnregister")
def host_unregister(runtime: Runtime, address: int, *_: int) -> int:
    found = runtime.registered.pop(address, None)
    if found is None:
        return NOT_REGISTERED
    runtime.machine.order.synchronize()
    runtime.connection.replace(found.start, found.nbytes, -1)
    runtime.device.free(found.device)
    return SUCCESS


@stands_in_for("cudaHostGetDevicePointer")
def host_get_device_pointer(runtime: Runtime, out: int, address: int, *_: int) -> int:
    there = runtime.device_address(address)
    if runtime.device.find(there) is None:
        return INVALID_VALUE
    runtime.put(out, there)
    return SUCCESS


@stands_in_for("cudaHostGetFlags")
def host_get_flags(runtime: Runtime, out: int, address: int, *_: int) -> int:
    if address not in runtime.host_flags:
        return INVALID_VALUE
    runtime.put(out, runtime.host_flags[address] | 2, 4)  # an H200 maps all of it
    return SUCCESS


# -- queries -----------------------------------------------------------------------------


@stands_in_for("cudaPointerGetAttributes")
def pointer_attributes(runtime: Runtime, out: int, address: int, *_: int) -> None:
    there = runtime.device_address(address)
    found = runtime.device.find(there)
    kind = {"device": _DEVICE, "pinned": _HOST}.get(found.kind, _MANAGED) if found else 0
    if found is None and runtime.device.bytes_at(there, 0) is not None:
        kind = _DEVICE  # a module's variable
    host = address if not kind or (found and found.kind != "device") else 0
    words = (kind, 0 if kind else -2, there if kind else 0, host)
    runtime.process.write(out, b"".join(
        (word & (1 << 8 * size) - 1).to_bytes(size, "little")
        for word, size in zip(words, (4, 4, 8, 8), strict=True)
    ))  # fmt: skip


@stands_in_for("cudaMemGetInfo")
def memory_info(runtime: Runtime, free_bytes: int, total: int, *_: int) -> None:
    used = sum(one.nbytes for one in runtime.device.allocations.values() if one.kind == "device")
    runtime.put(free_bytes, max(0, TOTAL_BYTES - used))
    runtime.put(total, TOTAL_BYTES)


@stands_in_for("cudaMemPrefetchAsync", "cudaMemAdvise", "cudaStreamAttachMemAsync",
               "cudaMemPrefetchAsync_v2", "cudaMemAdvise_v2")  # fmt: skip
def hint(runtime: Runtime, first: int, second: int, *_: int) -> int:
    address = second if runtime.name == "cudaStreamAttachMemAsync" else first
    found = runtime.device.find(address)
    return SUCCESS if found is not None and found.kind in ("managed", "variable") else INVALID_VALUE
