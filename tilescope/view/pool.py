"""The page's numbers: arrays side by side in one block of bytes, each content once."""

import base64
import hashlib
import zlib
from typing import Any

import numpy as np

HALVES = "h2"
TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", HALVES)
"""Element types by the code that the page knows them by (``data.js``); ``h2``: two of f16."""


class Pool:
    """Arrays by number. Each has four axes, as registers do; a scalar has four of one."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._chunks: list[bytes] = []
        self._rows: list[tuple[int, ...]] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def add(self, array: Any, halves: bool = False) -> int:
        """The number of an array; equal ones get the same. ``halves``: words of two f16."""
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
        """Everything as text: where each array begins, and their bytes, deflated."""
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
    """The array without the axes along which it does not change."""
    for axis in range(array.ndim):
        if array.shape[axis] > 1:
            first = array.take([0], axis=axis)
            if np.array_equal(_bits(array), np.broadcast_to(_bits(first), array.shape)):
                array = first
    return array


def _bits(array: Any) -> Any:
    """As integers: a NaN equals itself, and -0 is not 0."""
    array = np.ascontiguousarray(array)
    return array if array.dtype.kind != "f" else array.view(f"u{array.dtype.itemsize}")
