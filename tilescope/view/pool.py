"""Numbers of the page: arrays in one block of bytes, equal contents stored once."""

import base64
import hashlib
import zlib
from typing import Any

import numpy as np

HALVES = "h2"
TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", HALVES)
"""Element types by their code in ``data.js``; ``h2`` is a word of two f16."""


class Pool:
    """Arrays by number. Each has the four axes of a register; a scalar has shape (1, 1, 1, 1)."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._chunks: list[bytes] = []
        self._rows: list[tuple[int, ...]] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def add(self, array: Any, halves: bool = False) -> int:
        """Add an array and return its number; ``halves``: each word is two f16."""
        array = np.asarray(array)
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        elif array.dtype == np.float16:
            array = array.astype(np.float32)
        array = np.ascontiguousarray(array)
        shape = (1,) * (4 - array.ndim) + array.shape
        raw = array.tobytes()
        digest = raw if len(raw) <= 32 else hashlib.blake2b(raw, digest_size=16).digest()
        key = (HALVES if halves else array.dtype.str[1:], shape, digest)
        if key not in self._known:
            self._known[key] = len(self._rows)
            self._rows.append((TYPES.index(key[0]), self.nbytes, *shape))
            padding = -len(raw) % 8
            self._chunks.append(raw + bytes(padding))
            self.nbytes += len(raw) + padding
        return self._known[key]

    def packed(self) -> dict[str, Any]:
        """Return the deflated bytes of all arrays in base64, with the number of arrays."""
        index = np.array(self._rows, np.int32).reshape(-1, 6).T
        raw = np.ascontiguousarray(index).tobytes()
        raw += bytes(-len(raw) % 8)
        deflated = zlib.compress(raw + b"".join(self._chunks), 9)
        return {
            "arrays": len(self._rows),
            "start": len(raw),
            "bytes": base64.b64encode(deflated).decode(),
        }


def shrink(array: Any) -> Any:
    """Reduce each axis along which an array is constant to one entry."""
    for axis in range(array.ndim):
        if array.shape[axis] > 1:
            first = array.take([0], axis=axis)
            if np.array_equal(_bits(array), np.broadcast_to(_bits(first), array.shape)):
                array = first
    return array


def _bits(array: Any) -> Any:
    """Return the bits as integers, because NaN differs from itself and -0 equals 0."""
    array = np.ascontiguousarray(array)
    return array if array.dtype.kind != "f" else array.view(f"u{array.dtype.itemsize}")
