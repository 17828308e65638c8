"""Ranges of a launch's blocks in native code: one after the other, or each in a thread of its own.

Threads share the arrays and nothing else: each has a state of its own, with counters and the race
filter's slots. So two threads' blocks exchange nothing, or both have entered a location that one of
them writes; then the launch begins anew in one thread (``docs/native.md``).
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ..core.machine_memory import MemoryWatch, OutOfMemoryError
from ..execute.batches import Progress, batch_size
from ..execute.prepare import PreparedLaunch
from ..workers.pool import cores
from . import jit, layout, library
from .compiled_kernel import CompiledKernel, compiled, ran
from .state import NativeState, Words

OF_A_WARP = 10_000_000
"""Step limit from which on it holds for a warp, not for all warps of a batch.

NumPy counts a step of all warps as one: no fewer than a warp makes, no more than all make. It needs
minutes for so many.
"""
FUEL = 1 << 18
"""Rounds of loops between two returns to Python, where Ctrl-C is heard: at most some 0.1 s."""
ALONE = 0.02
"""Seconds after which other threads help."""
_LOOK = 0.05
"""Seconds between two looks at whether Ctrl-C was pressed."""
_PIECE = 1 << 15
"""Locations whose slots are compared at once: nearly all pieces one thread has touched alone."""


class GaveUp(Exception):
    """Native code does not run a launch, or not to its end; the text says why."""


class WrittenLate(Exception):
    """An array is written after reads that the race filter has not entered."""

    def __init__(self, array: int) -> None:
        super().__init__(array)
        self.array = array


class Exchanged(Exception):
    """Blocks of several threads access one location, and one of them writes it."""


class RangeStopped(Exception):
    """A range stops because another one has failed."""


class BlockRange:
    """Blocks that one thread runs, ascending.

    Args:
        state: The thread's; ``size``: blocks of a batch.

    Attributes:
        steps: Basic blocks that warps have executed, by batch.
        at: The next block.
        failure: What ended it early.
    """

    def __init__(self, state: NativeState, size: int, lock: threading.Lock) -> None:
        self.state, self.size, self._lock = state, size, lock
        self.steps: Counter[int] = Counter()
        self.at = self.end = 0
        self.failure: BaseException | None = None
        self.is_stopped = False
        self._run_blocks = jit.function(library.entry(), 2)
        self._since, self._place = 0, (-1, -1)
        self._memory = MemoryWatch()

    def begin(self, first: int, end: int) -> None:
        """Take a range of blocks."""
        self.at, self.end = first, end
        x, y, _ = self.state.launch.grid
        for word, place in (
            (layout.BLOCK, first), (layout.BLOCK_X, first % x), (layout.BLOCK_Y, first // x % y),
            (layout.BLOCK_Z, first // (x * y)),
        ):  # fmt: skip
            self.state.context[word] = place

    def run(self, seconds: float = math.inf) -> None:
        """Run to the end, or for some time at least.

        Raises:
            GaveUp: The NumPy engine has to run the launch.
            WrittenLate: It has to begin anew.
            RangeStopped: ``is_stopped`` was set.
        """
        deadline, some = time.perf_counter() + seconds, 1
        while self.at < self.end:
            batch = self.at // self.size
            last = min(self.end, (batch + 1) * self.size)
            if seconds < math.inf:
                last, some = min(last, self.at + some), 2 * some
            self._run_to(last, batch)
            self.at = last
            if time.perf_counter() > deadline:
                return

    def run_guarded(self) -> None:
        """Run to the end; keep what is raised."""
        try:
            self.run()
        except BaseException as raised:  # of another thread
            self.failure = raised

    def _run_to(self, last: int, batch: int) -> None:
        """Run blocks of one batch."""
        state, context = self.state, self.state.context
        launch, at = state.launch, int(context.ctypes.data)
        context[layout.LAST], context[layout.BATCH] = last, batch + 1
        before = total = int(state.warps.sum())
        if launch.step_limit < OF_A_WARP:
            self._since = before - self.steps[batch]
        result, resumed = layout.PAUSED, 0
        while result == layout.PAUSED:
            if self.is_stopped:
                raise RangeStopped
            context[layout.FUEL] = FUEL
            began = time.perf_counter()
            result = self._run_blocks(at, resumed)
            spent = time.perf_counter() - began
            state.use(self._improved(spent))
            self._look_at_memory()
            resumed = 1
            here = int(context[layout.BLOCK]), int(context[layout.WARP])
            if here != self._place and launch.step_limit >= OF_A_WARP:
                self._since, self._place = total, here
            total = int(state.warps.sum())
            if total - self._since > launch.step_limit:
                raise GaveUp("more basic blocks than the step limit")
        self.steps[batch] += total - before
        state.rows.raise_again()
        if state.written_late is not None:
            raise WrittenLate(state.written_late)
        if result != layout.DONE:
            raise GaveUp(state.reason)

    def _look_at_memory(self) -> None:
        """See that the race filter's slots do not take all memory; NumPy's records may be fewer."""
        try:
            self._memory.look()
        except OutOfMemoryError:
            raise GaveUp("the race filter takes too much memory") from None

    def _improved(self, seconds: float) -> CompiledKernel:
        """Return the best code there is, after a kernel has run for some time.

        While one thread compiles, the others go on.
        """
        kernel, launch = self.state.kernel, self.state.launch
        if self._lock.acquire(blocking=False):
            try:
                if compiled(launch.program, launch.block) is kernel:  # no other thread made better
                    ran(kernel, launch.program, launch.block, seconds)
            finally:
                self._lock.release()
        found = compiled(launch.program, launch.block)
        return kernel if isinstance(found, str) else found


def run_ranges(
    launch: PreparedLaunch, make: Callable[[], NativeState], limit: int, progress: Progress | None
) -> list[BlockRange]:
    """Run all blocks; return the ranges that did, the first of which began alone.

    ``limit``: how many there may be.

    Raises:
        GaveUp: The NumPy engine has to run the launch.
        WrittenLate: It has to begin anew.
        Exchanged: It has to begin anew, in one thread.
    """
    total, size = math.prod(launch.grid), batch_size(launch)
    lock = threading.Lock()
    first = BlockRange(make(), size, lock)
    count = min(cores(), total, limit)
    first.begin(0, total)
    if count == 1 or not first.state.may_share or launch.step_limit < OF_A_WARP:
        _run_alone(first, total, progress)
        return [first]
    first.run(ALONE)
    count = min(count, total - first.at)
    if count < 2:
        first.run()
        return [first]
    bounds = [first.at + (total - first.at) * i // count for i in range(count + 1)]
    first.end = bounds[1]
    ranges = [first]
    for begin, end in itertools.pairwise(bounds[1:]):
        ranges.append(BlockRange(make(), size, lock))
        ranges[-1].begin(begin, end)
    _run_together(ranges, total, progress)
    return ranges


def _run_alone(only: BlockRange, total: int, progress: Progress | None) -> None:
    """Run one range, a batch at a time."""
    for end in range(only.size, total + only.size, only.size):
        only.end = min(end, total)
        only.run()
        if progress:
            progress(only.end, total)


def _run_together(ranges: Sequence[BlockRange], total: int, progress: Progress | None) -> None:
    """Run ranges in threads; where one fails, those behind it stop."""
    threads = [threading.Thread(target=one.run_guarded, daemon=True) for one in ranges]
    for thread in threads:
        thread.start()
    try:
        for number, thread in enumerate(threads):
            while thread.is_alive():
                thread.join(_LOOK)
                failed = [i for i, one in enumerate(ranges) if one.failure]
                for one in ranges[failed[0] :] if failed else ():
                    one.is_stopped = True
            if progress and not ranges[number].failure:
                progress(ranges[number].end, total)
    finally:
        for one in ranges:
            one.is_stopped = True
        for thread in threads:
            thread.join()
    _look_for_exchange(ranges)
    for one in ranges:
        if one.failure:
            raise one.failure


def _look_for_exchange(ranges: Sequence[BlockRange]) -> None:
    """Raise an exception if blocks of several ranges access one location, and one writes it."""
    states = [one.state for one in ranges]
    for place, number in states[0].numbers.items():
        rows = [state.arrays[place] for state in states]
        if not any(row[layout.WRITTEN] for row in rows):
            continue
        for one in rows:
            for other in rows:
                if one is not other and one[layout.WRITTEN] and other[layout.UNTRACKED]:
                    raise WrittenLate(number)
        if _meet([state.slots[place].reshape(-1, 2) for state in states]):
            raise Exchanged


def _meet(tables: Sequence[Words]) -> bool:
    """Return whether any location is written by one thread and accessed by another.

    ``tables``: a thread's slots each, ``(locations, 2)``: for writes and for reads.
    """
    for begin in range(0, len(tables[0]), _PIECE):
        used = written = np.False_
        pieces = (table[begin : begin + _PIECE] for table in tables)
        for piece in filter(np.any, pieces):
            writes, reads = (piece != 0).T
            uses = writes | reads
            if np.any(writes & used) or np.any(uses & written):
                return True
            used, written = used | uses, written | writes
    return False
