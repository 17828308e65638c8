"""The processes that share a launch with their caller, and memory that all of them see."""

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
    """How many cores this process may use; one, if it is itself one of several."""
    if multiprocessing.parent_process() is not None:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def possible() -> bool:
    """Whether this process may start others: those of a ``multiprocessing.Pool`` may not."""
    return not multiprocessing.current_process().daemon


def submit(work: Callable[[bytes], bytes], task: bytes, count: int) -> "Future[bytes]":
    """Have one of at least ``count`` processes do something; they are kept for the next time."""
    global _pool, _size
    if _pool is None or _size < count:
        stop()
        context = multiprocessing.get_context("spawn")
        _pool, _size = ProcessPoolExecutor(count, context, _begin), count
    with no_main():
        return _pool.submit(work, task)


def running() -> bool:
    """Whether there are processes from before."""
    return _pool is not None


def stop(now: bool = False) -> None:
    """End the processes; ``now``: whatever they are doing."""
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
    """Arrays of bytes in shared memory, and a flag: nobody needs what is being done with them.

    Attributes:
        name: What other processes find it by.
        places: Where each array starts, and its bytes.
    """

    def __init__(self, memory: SharedMemory, places: Sequence[tuple[int, int]]) -> None:
        self._memory, self.places, self.name = memory, places, memory.name

    @classmethod
    def make(cls, arrays: Sequence[Flat]) -> "SharedArena":
        """A copy of arrays; ``remove`` has to be called in the end.

        Raises:
            OSError: There is not that much shared memory.
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
        """What another process has made; ``close`` has to be called in the end."""
        return cls(SharedMemory(name), places)

    def arrays(self) -> list[Flat]:
        """The arrays; none may be in use when this is closed."""
        return [np.frombuffer(self._bytes, np.uint8, n, at) for at, n in self.places]

    def views(self) -> list[Flat]:
        """The arrays, where there are files; they may be in use when this is closed."""
        return self._pages(mmap.MAP_SHARED)

    def own(self) -> list[Flat]:
        """The arrays for this process alone: what it writes no other sees.

        Only pages that are written are copied, where the system can do so.
        """
        try:  # Windows has no such pages, others may refuse
            return self._pages(mmap.MAP_PRIVATE)
        except (AttributeError, OSError):
            return [array.copy() for array in self.arrays()]

    def _pages(self, how: int) -> list[Flat]:
        """The arrays in a view of their file that ends with them."""
        pages = mmap.mmap(self._memory._fd, self._memory.size, how)  # type: ignore[attr-defined]
        return [np.frombuffer(pages, np.uint8, n, at) for at, n in self.places]

    @property
    def _bytes(self) -> "memoryview[int]":
        assert self._memory.buf is not None, "it is not closed"
        return self._memory.buf

    @property
    def vain(self) -> bool:
        """The flag."""
        return bool(self._bytes[0])

    def give_up(self) -> None:
        """Set the flag."""
        self._bytes[0] = 1

    def close(self) -> None:
        """This process is done with it."""
        self._memory.close()

    def remove(self) -> None:
        """All are done with it, or will be soon."""
        self._memory.close()
        self._memory.unlink()


def _free(file: int) -> int:
    """Bytes that are left where a file is; writing more than that ends the process."""
    system = os.fstatvfs(file)
    return system.f_bavail * system.f_frsize if system.f_blocks else sys.maxsize  # 0: no limit


def _write(file: int, array: Flat, at: int) -> None:
    """Bytes into a new file, piece by piece: where they are zero, there is nothing to do.

    (A page of the file that nobody has written costs its first user as much as it would cost here,
    but that is done by all of them at once.)
    """
    for start in range(0, len(array), _PIECE):
        piece = array[start : start + _PIECE]
        if len(piece) % 8 or piece[0] or np.bitwise_or.reduce(piece.view(np.uint64)):
            written = 0
            while written < len(piece):
                written += os.pwrite(file, piece[written:].data, at + start + written)
