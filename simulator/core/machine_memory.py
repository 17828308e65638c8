"""Memory of the machine that simulates: how much there is, and a watch over what a launch takes.

A process that takes all of it is killed by the system (Linux) without a word.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from pathlib import Path

from kernels.errors import SimulatorError

_UNKNOWN = 1 << 36
"""Bytes where the system says nothing."""
_RESERVED = 16
"""One in so many bytes is left to others."""
_OWN = 4
"""A process with less than one in so many bytes is not the one that takes too many."""
_INTERVAL = 0.25
"""Seconds between two looks, which take 60 us."""
_GROUP = Path("/sys/fs/cgroup")


class OutOfMemoryError(SimulatorError):
    """A launch whose simulation takes more memory than the machine has."""


@functools.cache
def physical_bytes() -> int:
    """Return the bytes of the machine, or of the container that limits them."""
    if not hasattr(os, "sysconf"):
        return _UNKNOWN
    limit = _number(_GROUP / "memory.max")
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), limit or _UNKNOWN)


def available_bytes() -> int:
    """Return the bytes that processes can still have; many where the system does not say it."""
    found = _field(Path("/proc/meminfo"), r"MemAvailable: +(\d+) kB")
    available = _UNKNOWN if found is None else found << 10
    if limit := _number(_GROUP / "memory.max"):
        available = min(available, limit - (_field(_GROUP / "memory.stat", r"anon (\d+)") or 0))
    return available


def _own_bytes() -> int:
    return (_field(Path("/proc/self/status"), r"VmRSS:\s+(\d+) kB") or 0) << 10


def _number(path: Path) -> int:
    """Return the number in a file; 0: no file, or no number."""
    return _field(path, r"(\d+)") or 0


def _field(path: Path, pattern: str) -> int | None:
    """Return the number in the line of a file that matches a pattern."""
    with contextlib.suppress(OSError):
        if found := re.search(f"^{pattern}$", path.read_text(), re.M):
            return int(found[1])
    return None


class MemoryWatch:
    """Ends a launch before the machine's memory ends."""

    def __init__(self) -> None:
        self._next = time.perf_counter() + _INTERVAL

    def look(self) -> None:
        """See how much is left, from time to time.

        Raises:
            OutOfMemoryError: Too little.
        """
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + _INTERVAL
        available, own = available_bytes(), _own_bytes()
        if available < physical_bytes() // _RESERVED and own > physical_bytes() // _OWN:
            raise OutOfMemoryError(
                f"this machine's memory does not suffice: the simulation has taken {own:,} bytes,"
                f" {available:,} are available (a smaller launch or fewer checks take less)"
            )
