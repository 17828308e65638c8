"""What a program asks about the GPU: an H200's properties, and a kernel's.

Values are what an H200 answered (2026-11-27, driver 580, CUDA 13.0).
"""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import functools
import json
import math
import struct
from pathlib import Path
from typing import Any

from kernels import KernelError
from kernels.machine_code.cubin import registers
from simulator.compile.compiler import compile_ptx
from simulator.compile.program import Program

from .calls import UnsupportedCallError, signed, stands_in_for
from .errors import INVALID_DEVICE, INVALID_DEVICE_FUNCTION, INVALID_VALUE, SUCCESS
from .registration import kernel_of
from .state import TOTAL_BYTES, Runtime

_NAME = "NVIDIA H200, simulated by tilescope"
_VERSION = 13000
_SHARED = {"block": 49_152, "opt-in": 232_448, "SM": 233_472, "reserved": 1_024}
_PROPERTIES: dict[str, Any] = {
    "totalGlobalMem": TOTAL_BYTES, "sharedMemPerBlock": _SHARED["block"],
    "regsPerBlock": 65_536, "warpSize": 32, "memPitch": 2**31 - 1, "maxThreadsPerBlock": 1024,
    "maxThreadsDim": (1024, 1024, 64), "maxGridSize": (2**31 - 1, 65_535, 65_535),
    "totalConstMem": 65_536, "major": 9, "minor": 0, "textureAlignment": 512,
    "texturePitchAlignment": 32, "multiProcessorCount": 132, "canMapHostMemory": 1,
    "concurrentKernels": 1, "ECCEnabled": 1, "asyncEngineCount": 3, "unifiedAddressing": 1,
    "memoryBusWidth": 6016, "l2CacheSize": 62_914_560, "maxThreadsPerMultiProcessor": 2048,
    "sharedMemPerMultiprocessor": _SHARED["SM"], "regsPerMultiprocessor": 65_536,
    "managedMemory": 1, "concurrentManagedAccess": 1, "cooperativeLaunch": 1,
    "sharedMemPerBlockOptin": _SHARED["opt-in"], "maxBlocksPerMultiProcessor": 32,
    "reservedSharedMemPerBlock": _SHARED["reserved"], "memoryPoolsSupported": 1,
    "clusterLaunch": 1, "streamPrioritiesSupported": 1, "globalL1CacheSupported": 1,
    "localL1CacheSupported": 1,
}  # fmt: skip
_ATTRIBUTES = {
    "MaxThreadsPerBlock": 1024, "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64,
    "MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65_535, "MaxGridDimZ": 65_535,
    "MaxSharedMemoryPerBlock": _SHARED["block"], "TotalConstantMemory": 65_536, "WarpSize": 32,
    "MaxRegistersPerBlock": 65_536, "ClockRate": 1_980_000, "TextureAlignment": 512,
    "MultiProcessorCount": 132, "CanMapHostMemory": 1, "ConcurrentKernels": 1,
    "MemoryClockRate": 3_201_000, "GlobalMemoryBusWidth": 6016, "L2CacheSize": 62_914_560,
    "MaxThreadsPerMultiProcessor": 2048, "AsyncEngineCount": 3, "UnifiedAddressing": 1,
    "ComputeCapabilityMajor": 9, "ComputeCapabilityMinor": 0,
    "MaxSharedMemoryPerMultiprocessor": _SHARED["SM"], "MaxRegistersPerMultiprocessor": 65_536,
    "ManagedMemory": 1, "ConcurrentManagedAccess": 1, "CooperativeLaunch": 1,
    "MaxSharedMemoryPerBlockOptin": _SHARED["opt-in"], "MaxBlocksPerMultiprocessor": 32,
    "ReservedSharedMemoryPerBlock": _SHARED["reserved"], "MemoryPoolsSupported": 1,
    "ClusterLaunch": 1, "Integrated": 0, "PageableMemoryAccess": 0, "ComputeMode": 0,
}  # fmt: skip
_DYNAMIC_SHARED = 8
"""``cudaFuncAttributeMaxDynamicSharedMemorySize``."""
_LIMITS = {0: 1024, 1: 8_650_752, 2: 8 << 20}
"""By ``cudaLimit``: a thread's stack, ``printf``'s buffer, the heap, in bytes."""


@functools.cache
def _layouts() -> dict[str, dict[str, Any]]:
    """Offsets and sizes of the fields of CUDA 13's structures, as nvcc lays them out."""
    content: dict[str, dict[str, Any]] = json.loads(
        (Path(__file__).parent / "layouts_13.json").read_text()
    )
    return content


def _structure(name: str, values: dict[str, Any]) -> bytearray:
    raw = bytearray(_layouts()["sizes"][name])
    for field, value in values.items():
        at, size = _layouts()[name][field]
        if isinstance(value, tuple):
            raw[at : at + size] = struct.pack("<3i", *value)
        elif isinstance(value, str):
            raw[at : at + size] = value.encode().ljust(size, b"\0")
        else:
            raw[at : at + size] = max(value, 0).to_bytes(size, "little")
    return raw


@stands_in_for("cudaGetDeviceProperties", "cudaGetDeviceProperties_v2")
def device_properties(runtime: Runtime, out: int, device: int, *_: int) -> int:
    if signed(device):
        return INVALID_DEVICE
    made = _structure("cudaDeviceProp", {"name": _NAME, **_PROPERTIES})
    runtime.process.write(out, bytes(made))
    return SUCCESS


@stands_in_for("cudaDeviceGetAttribute")
def device_attribute(runtime: Runtime, out: int, attribute: int, *_: int) -> None:
    codes = _layouts()["attributes"].items()
    names = [name for name, code in codes if code == attribute & 0xFFFFFFFF]
    name = names[0].removeprefix("cudaDevAttr") if names else ""
    if name not in _ATTRIBUTES:
        raise UnsupportedCallError(f"cudaDeviceGetAttribute({signed(attribute)}) has no stand-in")
    runtime.put(out, _ATTRIBUTES[name], 4)


@stands_in_for("cudaGetDeviceCount")
def device_count(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, 1, 4)


@stands_in_for("cudaGetDevice")
def get_device(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, 0, 4)


@stands_in_for("cudaSetDevice", "cudaInitDevice")
def set_device(runtime: Runtime, device: int, *_: int) -> int:
    return INVALID_DEVICE if signed(device) else SUCCESS


@stands_in_for(
    "cudaSetDeviceFlags", "cudaDeviceReset", "cudaThreadExit", "cudaProfilerStart",
    "cudaProfilerStop", "cudaDeviceSetCacheConfig", "cudaFuncSetCacheConfig",
    "cudaFuncSetSharedMemConfig", "cudaDeviceSetSharedMemConfig", "cudaCtxResetPersistingL2Cache",
)  # fmt: skip
def accepted(runtime: Runtime, *_: int) -> int:
    """A setting that changes no result."""
    return SUCCESS


@stands_in_for("cudaDeviceSetLimit")
def set_limit(runtime: Runtime, limit: int, value: int, *_: int) -> None:
    runtime.limits[limit & 0xFFFFFFFF] = value


@stands_in_for("cudaDeviceGetLimit")
def get_limit(runtime: Runtime, out: int, limit: int, *_: int) -> None:
    limit &= 0xFFFFFFFF
    runtime.put(out, runtime.limits.get(limit, _LIMITS.get(limit, 0)))


@stands_in_for("cudaDriverGetVersion", "cudaRuntimeGetVersion")
def version(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, _VERSION, 4)


@stands_in_for("cudaDeviceGetStreamPriorityRange")
def priority_range(runtime: Runtime, least: int, greatest: int, *_: int) -> None:
    runtime.put(least, 0, 4)
    runtime.put(greatest, -5, 4)


@stands_in_for("cudaDeviceCanAccessPeer")
def can_access_peer(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, 0, 4)


def _registers(runtime: Runtime, function: int) -> int:
    """Registers of a thread by the machine code of NVRTC's assembler; 0: not known here."""
    kernel = kernel_of(runtime, function)
    try:
        return (registers(kernel) if kernel else None) or 0
    except KernelError:
        return 0


def _program(runtime: Runtime, function: int) -> Program | None:
    kernel = kernel_of(runtime, function)
    return compile_ptx(kernel.ptx, kernel.entry) if kernel else None


@stands_in_for("cudaFuncGetAttributes")
def function_attributes(runtime: Runtime, out: int, function: int, *_: int) -> int:
    program = _program(runtime, function)
    if program is None:
        return INVALID_DEVICE_FUNCTION
    threads = program.entry.max_threads
    made = _structure("cudaFuncAttributes", {
        "sharedSizeBytes": program.layout.shared_bytes,
        "localSizeBytes": program.layout.local_bytes,
        "maxThreadsPerBlock": min(1024, math.prod(threads or (1024,))),
        "numRegs": _registers(runtime, function),
        "ptxVersion": 90, "binaryVersion": 90,
        "maxDynamicSharedSizeBytes": _SHARED["block"] - program.layout.shared_bytes,
    })  # fmt: skip
    runtime.process.write(out, bytes(made))
    return SUCCESS


@stands_in_for("cudaFuncSetAttribute")
def set_function_attribute(
    runtime: Runtime, function: int, attribute: int, value: int, *_: int
) -> int:
    if attribute & 0xFFFFFFFF != _DYNAMIC_SHARED:
        return SUCCESS
    program = _program(runtime, function)
    if program is None:
        return INVALID_DEVICE_FUNCTION
    if not 0 <= signed(value) <= _SHARED["opt-in"] - program.layout.shared_bytes:
        return INVALID_VALUE
    runtime.dynamic_limits[function] = signed(value)
    return SUCCESS


@stands_in_for(
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
)
def occupancy(
    runtime: Runtime, out: int, function: int, threads: int, dynamic: int, *_: int
) -> int:
    program = _program(runtime, function)
    if program is None:
        return INVALID_DEVICE_FUNCTION
    warps = max(1, -(-signed(threads) // 32))
    shared = program.layout.shared_bytes + dynamic + _SHARED["reserved"]
    blocks = min(32, 64 // warps, _SHARED["SM"] // shared)
    if each := _registers(runtime, function):
        blocks = min(blocks, 65_536 // (-(-each // 8) * 8 * 32 * warps))
    runtime.put(out, blocks, 4)
    return SUCCESS
