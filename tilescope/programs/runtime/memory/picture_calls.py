"""Texture and surface objects."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.arguments.texture import ADDRESSES, Surface, Texture

from ..calls import UnsupportedCallError, stands_in_for
from ..errors import INVALID_CHANNEL_DESCRIPTOR, INVALID_VALUE, SUCCESS
from ..state import Runtime
from .arrays import LAYERED, ChannelError, ChannelFormat, CudaArray

_ARRAY, _MIPMAP, _LINEAR, _PITCHED = range(4)
"""Of ``cudaResourceType``."""
_MODES = ("wrap", "clamp", "mirror", "border")
"""By ``cudaTextureAddressMode``."""
_RESOURCE, _TEXTURE = 144, 72
"""Bytes of ``cudaResourceDesc`` and ``cudaTextureDesc`` of CUDA 13."""


@dataclass(frozen=True)
class PictureObject:
    """A texture or surface object: the structures that it was made of."""

    resource: bytes
    texture: bytes = b""


@dataclass(frozen=True)
class _TextureMode:
    """The fields of a ``cudaTextureDesc`` that decide what a fetch gives."""

    address: tuple[int, ...]
    linear: bool
    read_normalized: bool
    border: tuple[float, ...]
    normalized: bool

    @classmethod
    def read(cls, raw: bytes) -> "_TextureMode":
        *modes, filtering, reading, srgb = struct.unpack_from("<6i", raw)
        if srgb:
            raise UnsupportedCallError("a texture of sRGB colours has no stand-in")
        border = struct.unpack_from("<4f", raw, 24)
        (normalized,) = struct.unpack_from("<i", raw, 40)
        return cls(tuple(modes), filtering == 1, reading == 1, border, bool(normalized))


@stands_in_for("cudaCreateTextureObject")
def create_texture(runtime: Runtime, out: int, resource: int, mode: int, view: int, *_: int) -> int:
    if view:
        raise UnsupportedCallError("a texture with a cudaResourceViewDesc has no stand-in")
    raw, settings = runtime.process.read(resource, 64), runtime.process.read(mode, _TEXTURE)
    try:
        number, made = _texture(runtime, raw, _TextureMode.read(settings))
    except ChannelError:
        return INVALID_CHANNEL_DESCRIPTOR
    except ValueError as error:
        runtime.checks.bad_copy(runtime.source, runtime.name, str(error))
        return INVALID_VALUE
    return _enter(runtime, out, number, made, PictureObject(raw, settings))


@stands_in_for("cudaCreateSurfaceObject")
def create_surface(runtime: Runtime, out: int, resource: int, *_: int) -> int:
    raw = runtime.process.read(resource, 64)
    array = _array(runtime, raw)
    try:
        made = Surface(array.texels(), channels=array.format.channels,
                       layered=bool(array.flags & LAYERED))  # fmt: skip
    except ChannelError:
        return INVALID_CHANNEL_DESCRIPTOR
    return _enter(runtime, out, array.memory.number, made, PictureObject(raw))


def _enter(
    runtime: Runtime, out: int, number: int, made: Texture | Surface, given: PictureObject
) -> int:
    unused = runtime.unused_pictures.get(number)
    handle = runtime.device.picture(number, made, unused.pop() if unused else 0)
    runtime.pictures[handle] = given
    runtime.put(out, handle)
    return SUCCESS


def _array(runtime: Runtime, resource: bytes) -> CudaArray:
    kind, handle = struct.unpack_from("<I4xQ", resource)
    if kind == _MIPMAP:
        raise UnsupportedCallError("a mipmapped array has no stand-in")
    if kind != _ARRAY or handle not in runtime.arrays:
        raise ValueError("its array does not exist")
    return runtime.arrays[handle]


def _texture(runtime: Runtime, resource: bytes, mode: _TextureMode) -> tuple[int, Texture]:
    """Return an allocation's number and the texture of it.

    Raises:
        ChannelError: CUDA has no such channels.
        ValueError: CUDA has no such texture.
    """
    (kind,) = struct.unpack_from("<I", resource)
    if kind in (_LINEAR, _PITCHED):
        return _linear(runtime, resource, mode, kind == _PITCHED)
    array = _array(runtime, resource)
    axes = sum(n > 0 for n in array.extent) - bool(array.flags & LAYERED)
    how = _settings(mode, array.format.dtype, max(axes, 1))
    return array.memory.number, Texture(
        array.texels(), channels=array.format.channels, layered=bool(array.flags & LAYERED), **how
    )


def _linear(
    runtime: Runtime, resource: bytes, mode: _TextureMode, pitched: bool
) -> tuple[int, Texture]:
    address = runtime.device_address(struct.unpack_from("<Q", resource, 8)[0])
    made = ChannelFormat.read(resource[16:36])
    size, dtype = made.dtype.itemsize * made.channels, made.dtype
    width, height, pitch = struct.unpack_from("<3Q", resource, 40)
    if not pitched:
        width, height, pitch = width // size, 1, width
    memory = runtime.device.find(address)
    span = (height - 1) * pitch + width * size
    found = runtime.device.bytes_at(address, span)
    if memory is None or found is None:
        raise ValueError(f"{span:,} bytes of texels at {address:#x} are not memory of the device")
    start = address - memory.address
    if not width or not height or start % size or pitch % size:
        raise ValueError("its texels do not lie at multiples of their size")
    shape = [height, width] if pitched else [width]
    steps = [pitch, size] if pitched else [size]
    if made.channels > 1:
        shape, steps = [*shape, made.channels], [*steps, dtype.itemsize]
    texels = np.ndarray(shape, dtype, found, strides=steps)
    if not pitched:
        read = "normalized" if mode.read_normalized and _is_small(dtype) else "element"
        return memory.number, Texture(
            texels, read=read, channels=made.channels, linear=True, start=start // size
        )
    how = _settings(mode, dtype, 2)
    return memory.number, Texture(
        texels, channels=made.channels, start=start // size, row=pitch // size, **how
    )


def _is_small(dtype: np.dtype[Any]) -> bool:
    return dtype.kind != "f" and dtype.itemsize <= 2


def _settings(mode: _TextureMode, dtype: np.dtype[Any], axes: int) -> dict[str, Any]:
    """Return the keywords of ``Texture``."""
    modes = {_MODES[one] if 0 <= one < len(_MODES) else "clamp" for one in mode.address[:axes]}
    if not mode.normalized:  # wrap and mirror are for normalised coordinates
        modes = {"clamp" if one in ("wrap", "mirror") else one for one in modes}
    if len(modes) > 1:
        raise UnsupportedCallError(
            f"a texture whose axes have several address modes ({', '.join(sorted(modes))}) has no "
            "stand-in"
        )
    (address,) = modes
    assert address in ADDRESSES
    scaled = mode.read_normalized and _is_small(dtype)
    border = mode.border if address == "border" and (dtype.kind == "f" or scaled) else (0.0,) * 4
    return {
        "filter": "linear" if mode.linear else "point", "address": address,
        "normalized": mode.normalized, "read": "normalized" if scaled else "element",
        "border": border,
    }  # fmt: skip


@stands_in_for("cudaDestroyTextureObject", "cudaDestroySurfaceObject")
def destroy_object(runtime: Runtime, handle: int, *_: int) -> int:
    if handle and runtime.pictures.pop(handle, None) is None:
        return INVALID_VALUE
    if handle:
        runtime.unused_pictures.setdefault(handle >> 8 & 0xFFFFFFFF, []).append(handle)
    return SUCCESS


@stands_in_for("cudaGetTextureObjectResourceDesc", "cudaGetSurfaceObjectResourceDesc")
def object_resource(runtime: Runtime, out: int, handle: int, *_: int) -> int:
    if handle not in runtime.pictures:
        return INVALID_VALUE
    runtime.process.write(out, runtime.pictures[handle].resource)
    return SUCCESS


@stands_in_for("cudaGetTextureObjectTextureDesc")
def object_texture(runtime: Runtime, out: int, handle: int, *_: int) -> int:
    if handle not in runtime.pictures:
        return INVALID_VALUE
    runtime.process.write(out, runtime.pictures[handle].texture)
    return SUCCESS
