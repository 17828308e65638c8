"""Runs a launch natively, to its end; or gives up, and the NumPy engine runs it from the start."""

from __future__ import annotations

import time
from collections.abc import Collection

from ..execute.batches import Progress, batches
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation
from ..observe.counters.traffic_counter import COUNTED_SPACES
from ..observe.observers import Observers
from . import jit, layout, library
from .compiled_kernel import compiled, ran
from .eligibility import why_not_launch
from .state import NativeState

OF_A_WARP = 10_000_000
"""Step limit from which on it holds for a warp, not for all warps of a batch.

NumPy counts a step of all warps as one: no fewer than a warp makes, no more than all make. It needs
minutes for so many.
"""
FUEL = 1 << 18
"""Rounds of loops between two returns to Python, where Ctrl-C is heard: at most some 0.1 s."""


class GaveUp(Exception):
    """Native code does not run a launch, or not to its end; the text says why."""


class WrittenLate(Exception):
    """An array is written after reads that the race filter has not entered."""

    def __init__(self, array: int) -> None:
        super().__init__(array)
        self.array = array


def run(
    launch: PreparedLaunch, checks: Collection[str], progress: Progress | None,
    tracked: set[int] | None = None,
) -> tuple[Observers, dict[int, Allocation]]:  # fmt: skip
    """Run a launch natively; return its observers, and global memory.

    ``tracked``: arrays whose reads the race filter enters from the start. If another turns out to
    be written after it is read, it is added, and the launch begins anew.

    Raises:
        GaveUp: The NumPy engine has to run it.
    """
    if why := jit.why_unavailable():
        raise GaveUp(why)
    tracked = set() if tracked is None else tracked
    while True:
        try:
            return _attempt(launch, checks, progress, tracked)
        except WrittenLate as late:
            tracked.add(late.array)


def _attempt(
    launch: PreparedLaunch, checks: Collection[str], progress: Progress | None, tracked: set[int]
) -> tuple[Observers, dict[int, Allocation]]:
    allocations = launch.allocations()
    if why := why_not_launch(launch, checks, allocations):
        raise GaveUp(why)
    kernel = compiled(launch.program, launch.block)
    if isinstance(kernel, str):
        raise GaveUp(kernel)
    observers = Observers(launch, checks, None, allocations, {})
    state = NativeState(launch, kernel, checks, allocations, tracked)
    _run_batches(state, observers, progress)
    if not state.settle():
        raise GaveUp("an array is written, and read through the read-only path")
    _enter(state, observers)
    observers.end()
    return observers, allocations


def _run_batches(state: NativeState, observers: Observers, progress: Progress | None) -> None:
    """Run all blocks, a batch of the NumPy engine's at a time: its bounds hold for each."""
    launch, context = state.launch, state.context
    run_blocks = jit.function(library.entry(), 2)
    at, total = int(context.ctypes.data), launch.grid[0] * launch.grid[1] * launch.grid[2]
    for numbers in batches(launch):
        before = total_steps = int(state.warps.sum())
        since, place = before, (-1, -1)
        context[layout.LAST] = last = int(numbers[-1]) + 1
        result = layout.PAUSED
        resumed = 0
        while result == layout.PAUSED:
            context[layout.FUEL] = FUEL
            began = time.perf_counter()
            result = run_blocks(at, resumed)
            spent = time.perf_counter() - began
            state.use(ran(state.kernel, launch.program, launch.block, spent))
            resumed = 1
            here = int(context[layout.BLOCK]), int(context[layout.WARP])
            if here != place and launch.step_limit >= OF_A_WARP:
                since, place = total_steps, here
            total_steps = int(state.warps.sum())
            if total_steps - since > launch.step_limit:
                raise GaveUp("more basic blocks than the step limit")
        state.rows.raise_again()
        if state.written_late is not None:
            raise WrittenLate(state.written_late)
        if result != layout.DONE:
            raise GaveUp(state.reason)
        observers.work.add_batch(int(state.warps.sum()) - before)
        if progress:
            progress(last, total)


def _enter(state: NativeState, observers: Observers) -> None:
    """Add what native code counted to the observers."""
    observers.touches.marks.update(state.touched())
    for site in state.program.sites:
        if site.access == "atomic":
            observers.work.add_atomics(int(state.figures(site.number)[:, 1].sum()))
    if not state.launch.counted:
        return
    observers.ran.add(
        *(table.tolist() for table in (state.threads, state.warps, state.tallies, state.parted,
                                       state.released))
    )  # fmt: skip
    for site in state.program.sites:
        for space, row in zip(COUNTED_SPACES, state.figures(site.number), strict=False):
            if row[0]:
                observers.traffic.add(site, space, row)
