"""Calls that query the GPU, an H200, or change its settings."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

from .calls import UnsupportedCallError, signed, stands_in_for
from .errors import INVALID_DEVICE, INVALID_VALUE, PEER_ACCESS_NOT_ENABLED, SUCCESS
from .state import Runtime
from .structures import h200, structure

_NAME = "NVIDIA H200, simulated by tilescope"
_BUS = "0000:00:06.0"
_MAPS_HOST = 8
"""``cudaDeviceMapHost``: the flags of an H200's context."""
_PEER_UNSUPPORTED, _UNSUPPORTED_LIMIT = 217, 215
_LIMITS = {
    0: 1024, 1: 8_650_752, 2: 8 << 20, 4: 2048, 5: 64, 6: 11_796_480, 7: 232_448,
}  # fmt: skip
"""By ``cudaLimit``: a thread's stack, ``printf``'s buffer, the heap, and others, as an H200 has."""


@stands_in_for("cudaGetDeviceProperties", "cudaGetDeviceProperties_v2")
def device_properties(runtime: Runtime, out: int, device: int, *_: int) -> int:
    if runtime.version == 12 and not runtime.name.endswith("_v2"):
        raise UnsupportedCallError("cudaGetDeviceProperties of CUDA 11 has no stand-in")
    if signed(device):
        return INVALID_DEVICE
    values = {"name": _NAME, **h200()["cudaDeviceProp"]}
    runtime.process.write(out, structure(runtime.version, "cudaDeviceProp", values))
    return SUCCESS


@stands_in_for("cudaChooseDevice", "cudaDeviceGetByPCIBusId")
def choose_device(runtime: Runtime, out: int, wanted: int, *_: int) -> int:
    if runtime.name != "cudaChooseDevice" and runtime.process.text(wanted) != _BUS:
        return INVALID_VALUE
    runtime.put(out, 0, 4)
    return SUCCESS


@stands_in_for("cudaDeviceGetPCIBusId")
def bus_id(runtime: Runtime, out: int, nbytes: int, device: int, *_: int) -> int:
    if signed(device) or signed(nbytes) <= len(_BUS):
        return INVALID_DEVICE if signed(device) else INVALID_VALUE
    runtime.process.write(out, _BUS.encode() + b"\0")
    return SUCCESS


@stands_in_for("cudaDeviceGetAttribute")
def device_attribute(runtime: Runtime, out: int, attribute: int, device: int, *_: int) -> int:
    if signed(device):
        return INVALID_DEVICE
    codes = h200()["attribute_codes"]
    name = next((name for name, code in codes.items() if code == signed(attribute)), "")
    if name not in h200()["attributes"]:
        return INVALID_VALUE
    runtime.put(out, h200()["attributes"][name], 4)
    return SUCCESS


@stands_in_for("cudaGetDeviceCount")
def device_count(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, 1, 4)


@stands_in_for("cudaGetDevice")
def get_device(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, 0, 4)


@stands_in_for("cudaSetDevice", "cudaInitDevice")
def set_device(runtime: Runtime, device: int, *_: int) -> int:
    return INVALID_DEVICE if signed(device) else SUCCESS


@stands_in_for("cudaSetValidDevices")
def valid_devices(runtime: Runtime, table: int, count: int, *_: int) -> int:
    found = runtime.process.read(table, 4 * min(max(signed(count), 0), 64))
    return INVALID_DEVICE if any(found) else SUCCESS


@stands_in_for(
    "cudaSetDeviceFlags", "cudaThreadSetCacheConfig", "cudaProfilerStart", "cudaProfilerStop",
    "cudaDeviceSetCacheConfig", "cudaDeviceSetSharedMemConfig", "cudaCtxResetPersistingL2Cache",
    "cudaDeviceFlushGPUDirectRDMAWrites",
)  # fmt: skip
def accepted(runtime: Runtime, *_: int) -> int:
    """Accept a setting that changes no result."""
    return SUCCESS


@stands_in_for("cudaGetDeviceFlags")
def device_flags(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, _MAPS_HOST, 4)


@stands_in_for("cudaDeviceGetCacheConfig", "cudaDeviceGetSharedMemConfig")
def get_config(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, 0 if "Cache" in runtime.name else 1, 4)


@stands_in_for("cudaDeviceReset", "cudaThreadExit")
def device_reset(runtime: Runtime, *_: int) -> int:
    runtime.reset()
    return SUCCESS


@stands_in_for("cudaDeviceSetLimit", "cudaThreadSetLimit")
def set_limit(runtime: Runtime, limit: int, value: int, *_: int) -> int:
    if signed(limit) not in _LIMITS:
        return _UNSUPPORTED_LIMIT
    runtime.limits[signed(limit)] = value
    return SUCCESS


@stands_in_for("cudaDeviceGetLimit", "cudaThreadGetLimit")
def get_limit(runtime: Runtime, out: int, limit: int, *_: int) -> int:
    if signed(limit) not in _LIMITS:
        return _UNSUPPORTED_LIMIT
    runtime.put(out, runtime.limits.get(signed(limit), _LIMITS[signed(limit)]))
    return SUCCESS


@stands_in_for("cudaDriverGetVersion", "cudaRuntimeGetVersion")
def version(runtime: Runtime, out: int, *_: int) -> None:
    is_old = runtime.version == 12 and runtime.name == "cudaRuntimeGetVersion"
    runtime.put(out, 12_090 if is_old else 13_000, 4)


@stands_in_for("cudaDeviceGetStreamPriorityRange")
def priority_range(runtime: Runtime, least: int, greatest: int, *_: int) -> None:
    if least:
        runtime.put(least, 0, 4)
    if greatest:
        runtime.put(greatest, -5, 4)


@stands_in_for("cudaDeviceGetTexture1DLinearMaxWidth")
def linear_width(runtime: Runtime, out: int, desc: int, *_: int) -> None:
    bits = int.from_bytes(runtime.process.read(desc, 4), "little")
    runtime.put(out, (1 << 32) // max(bits // 8, 1))


# -- other devices: there are none ---------------------------------------------------------


@stands_in_for("cudaDeviceCanAccessPeer")
def can_access_peer(runtime: Runtime, out: int, device: int, peer: int, *_: int) -> int:
    if signed(device) or signed(peer):
        return INVALID_DEVICE
    runtime.put(out, 0, 4)
    return SUCCESS


@stands_in_for("cudaDeviceEnablePeerAccess")
def enable_peer(runtime: Runtime, peer: int, *_: int) -> int:
    return INVALID_DEVICE if signed(peer) else _PEER_UNSUPPORTED


@stands_in_for("cudaDeviceDisablePeerAccess")
def disable_peer(runtime: Runtime, peer: int, *_: int) -> int:
    return INVALID_DEVICE if signed(peer) else PEER_ACCESS_NOT_ENABLED


@stands_in_for("cudaDeviceGetP2PAttribute")
def peer_attribute(runtime: Runtime, *_: int) -> int:
    return INVALID_DEVICE


# -- what cannot be answered ---------------------------------------------------------------

_REASONS = {
    "cudaGetExportTable": "asks for undocumented functions of the driver",
    "cudaIpcGetMemHandle": "shares memory with another process",
    "cudaIpcOpenMemHandle": "shares memory with another process",
    "cudaIpcGetEventHandle": "shares an event with another process",
    "cudaIpcOpenEventHandle": "shares an event with another process",
    "cudaMallocMipmappedArray": "makes a mipmapped array",
    "cudaGetMipmappedArrayLevel": "uses a mipmapped array",
    "cudaImportExternalMemory": "uses memory of a graphics interface",
    "cudaImportExternalSemaphore": "uses a semaphore of a graphics interface",
    "cudaMemPoolExportToShareableHandle": "shares a pool with another process",
    "cudaLibraryLoadData": "loads device code while it runs",
    "cudaLibraryLoadFromFile": "loads device code while it runs",
    "cudaGraphDebugDotPrint": "writes a drawing of a graph",
    "cudaGraphConditionalHandleCreate": "makes a conditional node of a graph",
}
"""Functions without a stand-in that programs do call, and what they want of it."""


def _refused(name: str, why: str) -> None:
    @stands_in_for(name)
    def refuse(runtime: Runtime, *_: int) -> int:
        raise UnsupportedCallError(f"{name} has no stand-in: the program {why}")


for _name, _why in _REASONS.items():
    _refused(_name, _why)
