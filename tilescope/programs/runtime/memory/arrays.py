"""``CudaArray``: memory that only copies, textures and surfaces reach."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.memory.storage.device import DeviceAllocation

LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
"""Flags of ``cudaMalloc3DArray``."""
_FORMATS = {0: "i", 1: "u", 2: "f"}
"""By ``cudaChannelFormatKind``."""


class ChannelError(ValueError):
    """A channel format that textures of CUDA have not, or that has no stand-in."""


@dataclass(frozen=True)
class ChannelFormat:
    """A ``cudaChannelFormatDesc``: bits of each channel, and what they are."""

    bits: tuple[int, int, int, int]
    kind: int

    @classmethod
    def read(cls, raw: bytes) -> ChannelFormat:
        """Read the structure's 20 bytes."""
        x, y, z, w, kind = struct.unpack("<5i", raw)
        return cls((x, y, z, w), kind)

    def packed(self) -> bytes:
        """Return the structure's bytes."""
        return struct.pack("<5i", *self.bits, self.kind)

    @property
    def channels(self) -> int:
        """Number of channels."""
        return sum(n > 0 for n in self.bits)

    @property
    def nbytes(self) -> int:
        """Bytes of an element."""
        return sum(self.bits) // 8

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a channel.

        Raises:
            ChannelError: CUDA has no such format, or it is a compressed one.
        """
        first, count = self.bits[0], self.channels
        name = f"{_FORMATS.get(self.kind, '?')}{first // 8}"
        known = name in ("i1", "i2", "i4", "u1", "u2", "u4", "f2", "f4")
        same = self.bits[:count] == (first,) * count and not any(self.bits[count:])
        if not known or first % 8 or not same or count not in (1, 2, 4):
            raise ChannelError(f"{count} channels of {self.bits} bits, kind {self.kind}")
        return np.dtype(name)


@dataclass(frozen=True)
class CudaArray:
    """An array: its allocation is dense, x fastest.

    Attributes:
        format: Of an element.
        extent: Width, height and depth in elements, as ``cudaMalloc3DArray`` takes them.
        flags: Those of the call.
        memory: The bytes.
    """

    format: ChannelFormat
    extent: tuple[int, int, int]
    flags: int
    memory: DeviceAllocation

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return self.extent[0] * self.format.nbytes

    @property
    def slice(self) -> int:
        """Bytes of a slice or layer."""
        return self.row * max(self.extent[1], 1)

    def place(self, x_bytes: int, y: int, z: int) -> int:
        """Return the address of a byte of a row."""
        return self.memory.address + x_bytes + y * self.row + z * self.slice

    def texels(self) -> Any:
        """Return the elements, x and then channels last.

        Raises:
            ChannelError: See ``ChannelFormat.dtype``.
        """
        width, height, depth = self.extent
        shape = [n for n in (depth, height) if n] + [width]
        channels = self.format.channels
        shape += [channels] * (channels > 1)
        nbytes = max(depth, 1) * self.slice
        return self.memory.array[:nbytes].view(self.format.dtype).reshape(shape)
