"""Reuse of freed array memory."""

import ctypes
import functools
import mmap
import os
import sys

import numpy as np

from ...core.geometry import Flat

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MAX_CACHED, _LARGE = 256 << 20, 32 << 20
"""Bytes that stay with the process, and from which on an array's go back (its most, on 64 bits)."""
_FRESH = 1 << 20
"""Bytes that are better not looked at: what comes from the C library is, to make it zero."""
_ALIGNED = 16
"""What elements of any size want to be at a multiple of."""


@functools.cache
def keep_pages() -> None:
    """Make the C library reuse freed memory instead of returning it to the system.

    A register of a batch has some hundred KiB, and its page faults cost more than its arithmetic:
    saxpy of 2^22 elements takes half the time. It uses glibc's ``mallopt``; other systems, and
    users that set these values in the environment, are not affected.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_TRIM_THRESHOLD, _MAX_CACHED)
        tune(_MMAP_THRESHOLD, _LARGE)


def untouched(nbytes: int, soon: int = 0) -> Flat:
    """Return zero bytes whose pages are allocated on first use.

    ``soon``: number of bytes that will be used at once.
    """
    if nbytes - soon < _FRESH:
        return np.zeros(nbytes, np.uint8)
    return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)


def copied(content: Flat, nbytes: int) -> Flat:
    """Return a copy of bytes, padded with zeros."""
    copy = untouched(nbytes, len(content))
    copy[: len(content)] = content
    return copy


def aligned(content: Flat) -> bool:
    """Whether NumPy can view bytes as elements without a copy."""
    return int(content.__array_interface__["data"][0]) % _ALIGNED == 0
