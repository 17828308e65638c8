"""Runs a launch natively, to its end; or gives up, and the NumPy engine runs it from the start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..execute.batches import Progress
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation
from ..observe.counters.traffic_counter import COUNTED_SPACES
from ..observe.observers import Observers
from . import jit
from .block_ranges import Exchanged, GaveUp, WrittenLate, run_ranges
from .compiled_kernel import compiled
from .eligibility import max_threads, why_not_launch
from .state import NativeState, settle


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
    memo = launch.program.memo("native exchange", launch.block)
    while True:
        try:
            return _attempt(launch, checks, progress, tracked, "exchanged" in memo)
        except WrittenLate as late:
            tracked.add(late.array)
        except Exchanged:
            memo["exchanged"] = True


def _attempt(
    launch: PreparedLaunch, checks: Collection[str], progress: Progress | None, tracked: set[int],
    is_alone: bool,
) -> tuple[Observers, dict[int, Allocation]]:  # fmt: skip
    allocations = launch.allocations()
    if why := why_not_launch(launch, checks, allocations):
        raise GaveUp(why)
    kernel = compiled(launch.program, launch.block)
    if isinstance(kernel, str):
        raise GaveUp(kernel)
    observers = Observers(launch, checks, None, allocations, {})

    def make() -> NativeState:
        return NativeState(launch, kernel, checks, allocations, tracked)

    limit = 1 if is_alone else max_threads(launch, checks, allocations)
    ranges = run_ranges(launch, make, limit, progress)
    states, steps = [one.state for one in ranges], Counter[int]()
    for one in ranges:
        steps.update(one.steps)
    if not settle(states):
        raise GaveUp("an array is written, and read through the read-only path")
    for batch in sorted(steps):
        observers.work.add_batch(steps[batch])
    for state in states:
        _enter(state, observers)
    observers.end()
    return observers, allocations


def _enter(state: NativeState, observers: Observers) -> None:
    """Add what native code counted to the observers."""
    marks = observers.touches.marks
    for key, found in state.touched().items():
        marks[key] = marks[key] | found if key in marks else found
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
