"""Names that CUDA had once, and what took their place: a hint beside the compiler's error."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..ptx.module import Instruction

_SHUFFLES = {"idx": "__shfl", "up": "__shfl_up", "down": "__shfl_down", "bfly": "__shfl_xor"}
_VOTES = ("__ballot", "__any", "__all")
"""Functions that got a mask in CUDA 9 (Programming Guide, "Warp Shuffle Functions" and "Warp Vote
Functions"); GPUs from sm_70 on have no instruction without one."""
_TEXTURE = "for texture references, which CUDA 12 dropped: use a texture object"
_SURFACE = "for surface references, which CUDA 12 dropped: use a surface object"
_MULTI = "gone since CUDA 13: launch a grid on each device, and let the host order them"
_PLACES = {
    "texture": "a texture reference, which CUDA 12 dropped: take a cudaTextureObject_t",
    "textureReference": f"{_TEXTURE} (cudaTextureObject_t)",
    "cudaGetTextureReference": f"{_TEXTURE} (cudaTextureObject_t)",
    **dict.fromkeys(
        ("cudaBindTexture", "cudaBindTexture2D", "cudaBindTextureToArray",
         "cudaBindTextureToMipmappedArray"), f"{_TEXTURE} (cudaCreateTextureObject)"
    ),
    "cudaUnbindTexture": f"{_TEXTURE} (cudaDestroyTextureObject)",
    "surface": "a surface reference, which CUDA 12 dropped: take a cudaSurfaceObject_t",
    "surfaceReference": f"{_SURFACE} (cudaSurfaceObject_t)",
    "cudaGetSurfaceReference": f"{_SURFACE} (cudaSurfaceObject_t)",
    "cudaBindSurfaceToArray": f"{_SURFACE} (cudaCreateSurfaceObject)",
    "cudaThreadSynchronize": "now cudaDeviceSynchronize on the host; in a kernel __syncthreads()",
    "cudaThreadExit": "now cudaDeviceReset",
    **{
        f"cudaThread{rest}": f"now cudaDevice{rest}"
        for rest in ("SetLimit", "GetLimit", "SetCacheConfig", "GetCacheConfig")
    },
    **{
        field: f"gone since CUDA 13: use cudaDeviceGetAttribute with cudaDevAttr{attribute}"
        for field, attribute in {
            "clockRate": "ClockRate",
            "computeMode": "ComputeMode",
            "deviceOverlap": "GpuOverlap",
            "kernelExecTimeoutEnabled": "KernelExecTimeout",
            "memoryClockRate": "MemoryClockRate",
            "singleToDoublePrecisionPerfRatio": "SingleToDoublePrecisionPerfRatio",
        }.items()
    },
    "maxTexture1DLinear": "gone since CUDA 13: use cudaDeviceGetTexture1DLinearMaxWidth",
    "cudaLaunchCooperativeKernelMultiDevice": _MULTI,
    "multi_grid_group": _MULTI, "this_multi_grid": _MULTI,
    "saturate": "now __saturatef",
}  # fmt: skip
"""Others (CUDA release notes, "Deprecated or Dropped Features")."""
_LOCATION = (
    "since CUDA 13 cudaMemPrefetchAsync and cudaMemAdvise take a cudaMemLocation: "
    "{cudaMemLocationTypeDevice, 0} for device 0, and the former flags (0) before the stream"
)
_UNKNOWN = re.compile(
    r'identifier "(\w+)" is undefined|has no member "(\w+)"|\b(texture|surface) is not a template'
)


def hints(text: str) -> list[str]:
    """Return the replacements of names that a compiler does not know, a sentence each."""
    unknown = dict.fromkeys(name for found in _UNKNOWN.findall(text) for name in found if name)
    masked = [name for name in unknown if name in (*_SHUFFLES.values(), *_VOTES)]
    return [
        *([_with_mask(masked)] if masked else []),
        *(f"{name} is {_PLACES[name]}" for name in unknown if name in _PLACES),
        *([_LOCATION] if 'to "cudaMemLocation"' in text else []),
    ]


def hint_of(ins: Instruction) -> str:
    """Return the replacement of an instruction without ``.sync``; ``""`` for others."""
    if "sync" in ins.modifiers:
        return ""
    if ins.opcode == "shfl":
        return _with_mask(name for way, name in _SHUFFLES.items() if way in ins.modifiers)
    return _with_mask(_VOTES) if ins.opcode == "vote" else ""


def _with_mask(names: Iterable[str]) -> str:
    listed = ", ".join(f"{name}() is {name}_sync(mask, ...)" for name in names)
    return f"since CUDA 9 {listed}, where mask names the lanes that take part (0xffffffff: all)"
