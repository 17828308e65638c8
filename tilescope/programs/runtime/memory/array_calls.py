"""CUDA arrays, and copies of boxes from and to them."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

import struct

from ..calls import UnsupportedCallError, signed, stands_in_for
from ..errors import (
    INVALID_CHANNEL_DESCRIPTOR,
    INVALID_RESOURCE_HANDLE,
    INVALID_VALUE,
    MEMORY_ALLOCATION,
    SUCCESS,
)
from ..state import Runtime
from .allocation_calls import placed
from .arrays import CUBEMAP, ChannelError, ChannelFormat, CudaArray
from .copies import DEFAULT, Box, Extent
from .copy_calls import copy, fill

_LARGEST = 1 << 34
"""Bytes of an array."""
_WORD = (1 << 64) - 1


@stands_in_for("cudaCreateChannelDesc")
def create_channel_desc(
    runtime: Runtime, out: int, x: int, y: int, z: int, w: int, kind: int
) -> int:
    """Return the structure in memory, whose address is a hidden argument."""
    made = ChannelFormat((signed(x), signed(y), signed(z), signed(w)), signed(kind))
    runtime.process.write(out, made.packed())
    return out


def _make(runtime: Runtime, out: int, desc: int, extent: tuple[int, int, int], flags: int) -> int:
    made = ChannelFormat.read(runtime.process.read(desc, 20))
    try:
        itemsize = made.dtype.itemsize * made.channels
    except ChannelError:
        return INVALID_CHANNEL_DESCRIPTOR
    if flags & CUBEMAP:
        raise UnsupportedCallError("a cube map (cudaArrayCubemap) has no stand-in")
    width, height, depth = extent
    nbytes = width * max(height, 1) * max(depth, 1) * itemsize
    if not width or nbytes > _LARGEST:
        return INVALID_VALUE if not width else MEMORY_ALLOCATION
    memory = placed(runtime, nbytes, "device")
    if memory is None:
        return MEMORY_ALLOCATION
    runtime.arrays[memory.address] = CudaArray(made, extent, flags, memory)
    runtime.put(out, memory.address)
    return SUCCESS


@stands_in_for("cudaMallocArray")
def malloc_array(
    runtime: Runtime, out: int, desc: int, width: int, height: int, flags: int, *_: int
) -> int:
    return _make(runtime, out, desc, (width, height, 0), flags & 0xFFFFFFFF)


@stands_in_for("cudaMalloc3DArray")
def malloc_3d_array(runtime: Runtime, out: int, desc: int, flags: int, *_: int) -> int:
    width, height, depth = runtime.stack_words(3)
    return _make(runtime, out, desc, (width, height, depth), flags & 0xFFFFFFFF)


@stands_in_for("cudaFreeArray")
def free_array(runtime: Runtime, array: int, *_: int) -> int:
    if not array:
        return SUCCESS
    runtime.machine.order.synchronize()
    if runtime.arrays.pop(array, None) is None:
        return INVALID_RESOURCE_HANDLE
    runtime.device.free(array, runtime.place)
    return SUCCESS


@stands_in_for("cudaArrayGetInfo")
def array_info(runtime: Runtime, desc: int, extent: int, flags: int, array: int, *_: int) -> int:
    found = runtime.arrays.get(array)
    if found is None:
        return INVALID_RESOURCE_HANDLE
    if desc:
        runtime.process.write(desc, found.format.packed())
    if extent:
        runtime.process.write(extent, struct.pack("<3Q", *found.extent))
    if flags:
        runtime.put(flags, found.flags, 4)
    return SUCCESS


@stands_in_for("cudaGetChannelDesc")
def get_channel_desc(runtime: Runtime, desc: int, array: int, *_: int) -> int:
    return array_info(runtime, desc, 0, 0, array)


# -- rows between an array and linear memory ----------------------------------------------


def _rows(
    runtime: Runtime, array: int, x: int, y: int, linear: Box, width: int, height: int, kind: int,
    stream: int | None, to_array: bool,
) -> int:  # fmt: skip
    found = runtime.arrays.get(array)
    if found is None:
        return INVALID_RESOURCE_HANDLE
    if x + width > found.row or y + height > max(found.extent[1], 1):
        return _outside(runtime, found, (x, y, 0), (width, height, 1))
    box = Box(found.place(x, y, 0), found.row)
    to, given = (box, linear) if to_array else (linear, box)
    return copy(runtime, to, given, Extent(width, height), kind, stream)


def _outside(
    runtime: Runtime, array: CudaArray, at: tuple[int, ...], extent: tuple[int, ...]
) -> int:
    shape = " x ".join(str(n) for n in array.extent if n)
    text = f"{' x '.join(map(str, extent))} (bytes, rows, slices) from {at} on do not lie in an "
    text += f"array of {shape} elements of {array.format.nbytes} bytes"
    runtime.checks.bad_copy(runtime.source, runtime.name, text)
    return INVALID_VALUE


@stands_in_for("cudaMemcpy2DToArray")
def memcpy_2d_to_array(
    runtime: Runtime, array: int, x: int, y: int, given: int, pitch: int, width: int
) -> int:
    height, kind = runtime.stack_words(2)
    return _rows(runtime, array, x, y, Box(given, pitch), width, height, kind, None, True)


@stands_in_for("cudaMemcpy2DToArrayAsync")
def memcpy_2d_to_array_async(
    runtime: Runtime, array: int, x: int, y: int, given: int, pitch: int, width: int
) -> int:
    height, kind, stream = runtime.stack_words(3)
    return _rows(runtime, array, x, y, Box(given, pitch), width, height, kind, stream, True)


@stands_in_for("cudaMemcpy2DFromArray")
def memcpy_2d_from_array(
    runtime: Runtime, to: int, pitch: int, array: int, x: int, y: int, width: int
) -> int:
    height, kind = runtime.stack_words(2)
    return _rows(runtime, array, x, y, Box(to, pitch), width, height, kind, None, False)


@stands_in_for("cudaMemcpy2DFromArrayAsync")
def memcpy_2d_from_array_async(
    runtime: Runtime, to: int, pitch: int, array: int, x: int, y: int, width: int
) -> int:
    height, kind, stream = runtime.stack_words(3)
    return _rows(runtime, array, x, y, Box(to, pitch), width, height, kind, stream, False)


def _linear(
    runtime: Runtime, array: int, x: int, y: int, linear: int, nbytes: int, kind: int,
    stream: int | None, to_array: bool,
) -> int:  # fmt: skip
    """Copy bytes that continue in the next row, as ``cudaMemcpyToArray`` (deprecated) does."""
    found = runtime.arrays.get(array)
    if found is None:
        return INVALID_RESOURCE_HANDLE
    start = found.place(x, y, 0)
    if start + nbytes > found.memory.address + found.memory.nbytes:
        return _outside(runtime, found, (x, y, 0), (nbytes, 1, 1))
    to, given = (Box(start), Box(linear)) if to_array else (Box(linear), Box(start))
    return copy(runtime, to, given, Extent(nbytes), kind, stream)


@stands_in_for("cudaMemcpyToArray", "cudaMemcpyToArrayAsync")
def memcpy_to_array(
    runtime: Runtime, array: int, x: int, y: int, given: int, nbytes: int, kind: int
) -> int:
    stream = runtime.stack_words(1)[0] if "Async" in runtime.name else None
    return _linear(runtime, array, x, y, given, nbytes, kind, stream, True)


@stands_in_for("cudaMemcpyFromArray", "cudaMemcpyFromArrayAsync")
def memcpy_from_array(
    runtime: Runtime, to: int, array: int, x: int, y: int, nbytes: int, kind: int
) -> int:
    stream = runtime.stack_words(1)[0] if "Async" in runtime.name else None
    return _linear(runtime, array, x, y, to, nbytes, kind, stream, False)


@stands_in_for("cudaMemcpy2DArrayToArray")
def memcpy_2d_between(
    runtime: Runtime, to: int, x: int, y: int, given: int, from_x: int, from_y: int
) -> int:
    width, height, kind = runtime.stack_words(3)
    found = runtime.arrays.get(given)
    if found is None:
        return INVALID_RESOURCE_HANDLE
    box = Box(found.place(from_x, from_y, 0), found.row)
    return _rows(runtime, to, x, y, box, width, height, kind, None, True)


# -- boxes ---------------------------------------------------------------------------------


def box_copy(runtime: Runtime, raw: bytes) -> tuple[Box, Box, Extent, int] | None:
    """Read a ``cudaMemcpy3DParms``: destination, source, extent in bytes, kind.

    ``None``: it is not valid, which is reported where a box does not fit into an array.
    """
    words = struct.unpack_from("<19Q", raw)
    kind = int(struct.unpack_from("<I", raw, 152)[0])
    given_array, given_at, given = words[0], words[1:4], words[4:8]
    to_array, to_at, to = words[8], words[9:12], words[12:16]
    width, height, depth = words[16:19]
    arrays = [runtime.arrays.get(one) for one in (given_array, to_array)]
    if (given_array and not arrays[0]) or (to_array and not arrays[1]):
        return None
    if not (given_array or given[0]) or not (to_array or to[0]):
        return None
    # Extents are in elements if an array takes part, else in bytes.
    size = next((one.format.nbytes for one in arrays if one is not None), 1)
    extent = Extent(width * size, height, depth)
    boxes = []
    for array, at, (address, pitch, _, rows) in zip(
        arrays, (given_at, to_at), (given, to), strict=True
    ):
        if array is None:
            start = address + at[0] + at[1] * pitch + at[2] * pitch * rows
            boxes.append(Box(start & _WORD, pitch, pitch * rows))
            continue
        x, y, z = at[0] * array.format.nbytes, at[1], at[2]
        high, deep = (max(n, 1) for n in array.extent[1:])
        if x + extent.width > array.row or y + height > high or z + depth > deep:
            _outside(runtime, array, (x, y, z), (extent.width, height, depth))
            return None
        boxes.append(Box(array.place(x, y, z), array.row, array.slice))
    return boxes[1], boxes[0], extent, kind


@stands_in_for("cudaMemcpy3D")
def memcpy_3d(runtime: Runtime, params: int, *_: int) -> int:
    found = box_copy(runtime, runtime.process.read(params, 160))
    return copy(runtime, *found, None) if found else INVALID_VALUE


@stands_in_for("cudaMemcpy3DAsync")
def memcpy_3d_async(runtime: Runtime, params: int, stream: int, *_: int) -> int:
    found = box_copy(runtime, runtime.process.read(params, 160))
    return copy(runtime, *found, stream) if found else INVALID_VALUE


@stands_in_for("cudaMemcpy3DPeer", "cudaMemcpy3DPeerAsync")
def memcpy_3d_peer(runtime: Runtime, params: int, stream: int, *_: int) -> int:
    """Copy by a structure that names the device behind each pointer."""
    raw = runtime.process.read(params, 168)
    if struct.unpack_from("<i", raw, 64)[0] or struct.unpack_from("<i", raw, 136)[0]:
        return INVALID_VALUE
    joined = raw[:64] + raw[72:136] + raw[144:168] + struct.pack("<Q", DEFAULT)
    found = box_copy(runtime, joined)
    chosen = stream if "Async" in runtime.name else None
    return copy(runtime, *found, chosen) if found else INVALID_VALUE


@stands_in_for("cudaMemset3D", "cudaMemset3DAsync")
def memset_3d(runtime: Runtime, value: int, stream: int, *_: int) -> int:
    """Fill memory; the pitched pointer and the extents are on the stack."""
    address, pitch, _row, rows, width, height, depth = runtime.stack_words(7)
    chosen = stream if "Async" in runtime.name else None
    extent = Extent(width, height, depth)
    return fill(runtime, Box(address, pitch, pitch * rows), extent, bytes([value & 255]), chosen)
