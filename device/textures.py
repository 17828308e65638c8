"""Textures and surfaces on the GPU, in the driver's own array layout."""

from collections.abc import Callable
from typing import Any

from kernels.arguments.texture import Surface, Texture

from .driver import bindings, call

_FORMATS = {
    "u1": "UNSIGNED_INT8", "u2": "UNSIGNED_INT16", "u4": "UNSIGNED_INT32",
    "i1": "SIGNED_INT8", "i2": "SIGNED_INT16", "i4": "SIGNED_INT32", "f2": "HALF", "f4": "FLOAT",
}  # fmt: skip
_LAYERED, _SURFACE, _GATHER = 0x01, 0x02, 0x08
_AS_INTEGERS, _NORMALIZED = 0x01, 0x02
Release = Callable[[str, Any], object]
"""Takes a driver function and what it is to be called with in the end."""


class DeviceImages:
    """Texture and surface objects of a launch, with driver arrays beside the linear ones.

    Args:
        release: Called with the destructor of each created object.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._arrays: dict[int, tuple[Any, Any]] = {}
        self._written: set[int] = set()

    def encode(self, of: Texture | Surface, address: int) -> bytes:
        """Create a texture or surface of an array at an address; return its handle."""
        cuda = bindings()
        resource = cuda.CUDA_RESOURCE_DESC()
        kinds = cuda.CUresourcetype
        if isinstance(of, Texture) and of.linear:
            resource.resType = kinds.CU_RESOURCE_TYPE_LINEAR
            place = resource.res.linear
            place.devPtr, place.format = address, _format(of)
            place.numChannels, place.sizeInBytes = of.channels, of.array.nbytes
        else:
            resource.resType = kinds.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = self._array(of, address)
        if isinstance(of, Surface):
            self._written.add(address)
            made = call("cuSurfObjectCreate", resource, doing="making a surface")
            self._release("cuSurfObjectDestroy", made)
        else:
            made = call("cuTexObjectCreate", resource, _description(of), None,
                        doing="making a texture")  # fmt: skip
            self._release("cuTexObjectDestroy", made)
        return int(made).to_bytes(8, "little")

    def _array(self, of: Texture | Surface, address: int) -> Any:
        """Create the driver's array for an image."""
        if address not in self._arrays:
            cuda, (width, height, depth) = bindings(), (*of.sizes, 0, 0)[:3]
            wanted = cuda.CUDA_ARRAY3D_DESCRIPTOR()
            wanted.Width, wanted.Height, wanted.Depth = width, height, of.layers or depth
            wanted.Format, wanted.NumChannels = _format(of), of.channels
            kind = _LAYERED if of.layers else _GATHER * (len(of.sizes) == 2)
            wanted.Flags = _SURFACE | kind
            made = call("cuArray3DCreate", wanted, doing="allocating a texture's array")
            self._release("cuArrayDestroy", made)
            copy = cuda.CUDA_MEMCPY3D()
            copy.WidthInBytes = width * of.array.dtype.itemsize * of.channels
            copy.Height, copy.Depth = max(height, 1), max(of.layers or depth, 1)
            self._arrays[address] = made, copy
        return self._arrays[address][0]

    def fill(self) -> None:
        """Copy the linear arrays to the driver's arrays."""
        for address in self._arrays:
            self._copy(address, into=True)

    def empty(self) -> None:
        """Copy arrays that surfaces may have written back to the linear ones."""
        for address in self._written:
            self._copy(address, into=False)

    def _copy(self, address: int, into: bool) -> None:
        kinds = bindings().CUmemorytype
        made, copy = self._arrays[address]
        dense, own = ("src", "dst") if into else ("dst", "src")
        setattr(copy, f"{dense}MemoryType", kinds.CU_MEMORYTYPE_DEVICE)
        setattr(copy, f"{dense}Device", address)
        setattr(copy, f"{dense}Pitch", copy.WidthInBytes)
        setattr(copy, f"{dense}Height", copy.Height)
        setattr(copy, f"{own}MemoryType", kinds.CU_MEMORYTYPE_ARRAY)
        setattr(copy, f"{own}Array", made)
        call("cuMemcpy3D", copy, doing="copying a texture's array")


def _format(of: Texture | Surface) -> Any:
    dtype = of.array.dtype
    name = f"CU_AD_FORMAT_{_FORMATS[f'{dtype.kind}{dtype.itemsize}']}"
    return getattr(bindings().CUarray_format, name)


def _description(of: Texture) -> Any:
    """Return the texture descriptor; axes that do not exist are clamped."""
    cuda = bindings()
    made, modes = cuda.CUDA_TEXTURE_DESC(), cuda.CUaddress_mode
    axes = [of.address] * len(of.sizes) + ["clamp"] * (3 - len(of.sizes))
    made.addressMode = [getattr(modes, f"CU_TR_ADDRESS_MODE_{axis.upper()}") for axis in axes]
    made.filterMode = getattr(cuda.CUfilter_mode, f"CU_TR_FILTER_MODE_{of.filter.upper()}")
    made.flags = _AS_INTEGERS * (of.read == "element") | _NORMALIZED * of.normalized
    made.borderColor = list(of.border)
    return made
