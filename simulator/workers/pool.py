"""Pool of worker processes, and memory shared with them."""

import contextlib
import errno
import mmap
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory

import numpy as np

from ..core.geometry import Flat

FILES = sys.platform == "linux"
"""Whether shared memory is a file, that can be written and be looked at in several ways."""
_PIECE = 1 << 20
_pool: ProcessPoolExecutor | None = None
_size = 0


def cores() -> int:
    """Return the usable cores; 1 in a worker process."""
    if multiprocessing.parent_process() is not None:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def possible() -> bool:
    """Whether this process may start others, unlike workers of ``multiprocessing.Pool``."""
    return not multiprocessing.current_process().daemon


def submit(work: Callable[[bytes], bytes], task: bytes, count: int) -> "Future[bytes]":
    """Submit a task to a pool of at least ``count`` processes, which persist."""
    global _pool, _size
    if _pool is None or _size < count:
        stop()
        context = multiprocessing.get_context("spawn")
        _pool, _size = ProcessPoolExecutor(count, context, _begin), count
    with no_main():
        return _pool.submit(work, task)


def running() -> bool:
    """Whether the pool has processes."""
    return _pool is not None


def size() -> int:
    """Return the number of the pool's processes."""
    return _size if _pool is not None else 0


def stop(now: bool = False) -> None:
    """Terminate the pool; ``now``: without waiting for running tasks."""
    global _pool
    pool, _pool = _pool, None
    if pool is None:
        return
    processes = list((pool._processes or {}).values())  # nothing public tells them
    pool.shutdown(wait=not now, cancel_futures=True)
    if now:
        for process in processes:
            process.kill()


@contextlib.contextmanager
def no_main() -> Iterator[None]:
    """Start processes without executing the caller's script, which needs no main guard then.

    An interrupt from the terminal does not reach the new processes, not even during their start.
    The parent process terminates them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    masked = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masked else set()
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Initialise a worker process: it ignores interrupts and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    caller = multiprocessing.parent_process()
    assert caller is not None
    threading.Thread(target=_end_with, args=(caller.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


class SharedArena:
    """Byte arrays in shared memory, with a cancellation flag.

    Attributes:
        name: Name by which other processes open it.
        places: Start and size of each array.
    """

    def __init__(self, memory: SharedMemory, places: Sequence[tuple[int, int]]) -> None:
        self._memory, self.places, self.name = memory, places, memory.name

    @classmethod
    def make(cls, arrays: Sequence[Flat]) -> "SharedArena":
        """Create an arena with copies of arrays; ``remove`` must be called at the end.

        Raises:
            OSError: There is not enough shared memory.
        """
        places, end = [], 64
        for array in arrays:
            places.append((end, len(array)))
            end += -(-len(array) // 64) * 64
        memory = SharedMemory(create=True, size=end)
        made = cls(memory, places)
        if FILES and _free(memory._fd) < end:  # type: ignore[attr-defined]
            made.remove()
            raise OSError(errno.ENOSPC, "too little shared memory", memory.name)
        for (at, _), copy, array in zip(places, made.arrays(), arrays, strict=True):
            if FILES:  # 0.6 of the time: no page has to be asked for
                _write(memory._fd, array, at)  # type: ignore[attr-defined]
            else:
                copy[:] = array
        return made

    @classmethod
    def find(cls, name: str, places: Sequence[tuple[int, int]]) -> "SharedArena":
        """Open another process's arena; ``close`` must be called at the end."""
        return cls(SharedMemory(name), places)

    def arrays(self) -> list[Flat]:
        """Return the arrays, which must not be in use at ``close``."""
        return [np.frombuffer(self._bytes, np.uint8, n, at) for at, n in self.places]

    def views(self) -> list[Flat]:
        """Return the arrays by memory-mapped files; they may be in use at ``close``."""
        return self._pages(mmap.MAP_SHARED)

    def own(self) -> list[Flat]:
        """Return private copy-on-write arrays.

        Only written pages are copied, if the system supports it.
        """
        try:  # Windows has no such pages, others may refuse
            return self._pages(mmap.MAP_PRIVATE)
        except (AttributeError, OSError):
            return [array.copy() for array in self.arrays()]

    def _pages(self, how: int) -> list[Flat]:
        """Map the arrays; the mapping lives as long as they do."""
        pages = mmap.mmap(self._memory._fd, self._memory.size, how)  # type: ignore[attr-defined]
        return [np.frombuffer(pages, np.uint8, n, at) for at, n in self.places]

    @property
    def _bytes(self) -> "memoryview[int]":
        assert self._memory.buf is not None, "it is not closed"
        return self._memory.buf

    @property
    def vain(self) -> bool:
        """Whether the work has been cancelled."""
        return bool(self._bytes[0])

    def give_up(self) -> None:
        """Cancel the work."""
        self._bytes[0] = 1

    def close(self) -> None:
        """Close the arena in this process."""
        self._memory.close()

    def remove(self) -> None:
        """Delete the arena, once all processes have opened it."""
        self._memory.close()
        self._memory.unlink()


def _free(file: int) -> int:
    """Return the free bytes of a file's device; writing beyond them kills the process."""
    system = os.fstatvfs(file)
    return system.f_bavail * system.f_frsize if system.f_blocks else sys.maxsize  # 0: no limit


def _write(file: int, array: Flat, at: int) -> None:
    """Write bytes to a new file in pieces, skipping zeros.

    Untouched pages cost their first user the same, but all processes share that work.
    """
    for start in range(0, len(array), _PIECE):
        piece = array[start : start + _PIECE]
        if len(piece) % 8 or piece[0] or np.bitwise_or.reduce(piece.view(np.uint64)):
            written = 0
            while written < len(piece):
                written += os.pwrite(file, piece[written:].data, at + start + written)
