"""PTX in fat binaries: what nvcc puts into a program for each translation unit.

Their format is not documented; the layout here is what nvcc 12 and 13 write. Contents come from a
program that may be anything: sizes are held to limits.
"""

import ctypes
import ctypes.util
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHI")
_PTX, _ELF = 1, 2
_ZSTD, _LZ4 = 0x8000, 0x2000
_LARGEST = 1 << 28
"""Bytes of a container, and of what is compressed in it."""


class FatBinaryError(ValueError):
    """A fat binary that cannot be read."""


@dataclass(frozen=True)
class FatBinaryEntry:
    """One part: ``arch`` is a compute capability, 90 say; ``is_ptx``, or else machine code."""

    is_ptx: bool
    arch: int
    content: bytes


def entries(read: Callable[[int, int], bytes], address: int) -> Iterator[FatBinaryEntry]:
    """Yield the parts of the container at an address.

    Args:
        read: Gives bytes by their address and number.
        address: Of the container's header.

    Raises:
        FatBinaryError: It is none, or larger than a program's can be.
    """
    magic, _, header, size = _CONTAINER.unpack(read(address, _CONTAINER.size))
    if magic != MAGIC or size > _LARGEST:
        raise FatBinaryError("the program registers something that is no fat binary")
    data, at = read(address + header, size), 0
    while at + 64 <= len(data):
        kind, _, head, padded, packed, _, _, _, arch = _ENTRY.unpack_from(data, at)
        flags, unpacked = struct.unpack_from("<QQ", data, at + 40)[0], 0
        (unpacked,) = struct.unpack_from("<Q", data, at + 56)
        if head < 64 or at + head + padded > len(data):
            raise FatBinaryError("a part of a fat binary is larger than the whole")
        raw = data[at + head : at + head + padded]
        if kind in (_PTX, _ELF):
            if flags & (_ZSTD | _LZ4):
                if unpacked > _LARGEST:
                    raise FatBinaryError(f"a part of a fat binary of {unpacked:,} bytes")
                unpack = _zstd if flags & _ZSTD else _lz4
                raw = unpack(raw[: packed or len(raw)], unpacked)
            yield FatBinaryEntry(kind == _PTX, arch, raw)
        at += head + padded


def ptx_of(found: list[FatBinaryEntry]) -> str | None:
    """Return the PTX that a GPU of compute capability 9.0 would compile, if there is any."""
    texts = sorted((one for one in found if one.is_ptx), key=lambda one: one.arch)
    fitting = [one for one in texts if one.arch <= 90] or texts[:1]
    return fitting[-1].content.rstrip(b"\0").decode(errors="replace") if fitting else None


def _zstd(data: bytes, size: int) -> bytes:
    name = ctypes.util.find_library("zstd")
    if name is None:
        raise FatBinaryError(
            "the program's PTX is compressed with zstd: install libzstd, or compile it with "
            "--compress-mode=none"
        )
    library = ctypes.CDLL(name)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    count = library.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if count != size:
        raise FatBinaryError("a part of a fat binary cannot be decompressed")
    return out.raw


def _lz4(data: bytes, size: int) -> bytes:
    """Decompress one LZ4 block (github.com/lz4/lz4, doc/lz4_Block_format.md)."""
    out, at = bytearray(), 0

    def length(short: int) -> int:
        nonlocal at
        total = short
        while short == 15 and at < len(data):
            total += data[at]
            at += 1
            if data[at - 1] != 255:
                break
        return total

    while at < len(data) and len(out) < size:
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at + 2 > len(data) or len(out) >= size:
            break
        back = data[at] | data[at + 1] << 8
        at += 2
        count = length(token & 15) + 4
        if not 0 < back <= len(out) or len(out) + count > size + 15:
            raise FatBinaryError("a part of a fat binary cannot be decompressed")
        for _ in range(count):
            out.append(out[-back])
    return bytes(out[:size])
