"""Memory that arrays let go of is kept for the next ones."""

import ctypes
import functools
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGE = 256 << 20, 32 << 20
"""Bytes that stay with the process, and from which on an array's go back (its most, on 64 bits)."""


@functools.cache
def keep_pages() -> None:
    """Have the C library hand what is freed to the next array, not back to the system.

    A register of a batch is an array of some hundred KiB, and its pages cost more to get from the
    system than to compute on: saxpy of 2^22 takes half the time. (glibc, ``mallopt``; other
    systems are left alone, and so is a user who has set this in the environment.)
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_TRIM_THRESHOLD, _KEPT)
        tune(_MMAP_THRESHOLD, _LARGE)
