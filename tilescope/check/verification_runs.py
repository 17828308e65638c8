"""Verification runs: the launches that an edited kernel must pass before its fix is reported."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.errors import SimulatorError
from kernels.library import LibraryKernel, Size
from simulator import Hazard, Run
from simulator.fixes.verification import Trial, nothing_new

from ..cli.target import Target
from ..text.layout import shape
from .launcher import Launcher
from .policy import judge

SCHEDULES: tuple[str | int, ...] = ("lockstep", "warps", "reverse", 1)
"""A fix holds under each of these."""

LIGHT = 4_000_000
"""Instructions of all threads up to which a launch is repeated under every schedule."""
_NO_RACES = ("memory", "uninitialised")
_AXIS = {1: 3000, 2: 200}
_DEEP = 70
"""Elements of an axis that another size of a library kernel has at most."""


def trials(
    launcher: Launcher, kernels: Mapping[str, Kernel], known: Sequence[Hazard], weight: int,
    in_any_order: bool,
) -> list[Trial]:  # fmt: skip
    """Return the checked launch and one of another shape, each under four schedules.

    A launch of more than some million instructions runs only under its own schedule if the other
    shape covers the rest. If the race check holds for any order, so does the other shape, unless
    it is a library kernel's small size: each run proves the order of accesses for all schedules,
    and those but the launch's own are slow.

    ``known``: hazards without an edit; a shape with other hazards does not suit the kernel or its
    arguments. ``weight``: thread instructions of the launch. ``in_any_order``: whether its races
    were found for every order of locks and counters.
    """
    target = launcher.target
    schedules = tuple(dict.fromkeys((launcher.schedule, *SCHEDULES)))
    other = _other(launcher, kernels, known)
    here = schedules if weight <= LIGHT or other is None else schedules[:1]
    made = [_trial(launcher, target, schedule) for schedule in here]
    if other is not None:
        is_long = weight > LIGHT and target.entry is None
        some = schedules[:1] if is_long and in_any_order else schedules
        made += [_trial(launcher, other, schedule) for schedule in some]
    return made


def _other(
    launcher: Launcher, kernels: Mapping[str, Kernel], known: Sequence[Hazard]
) -> Target | None:
    """Return the target in another shape, ragged if possible.

    A shape at which shuffles read lanes that do not run is left out, unless those of the target do
    so too: the kernel may need whole warps.
    """
    target = launcher.target
    if target.entry is not None:
        return _resized(target, target.entry)

    def behind(at: Target) -> Run:
        """Run without a check of races, which might hide other hazards."""
        kernel = next(iter(kernels.values()))
        return launcher.observe(kernel, _NO_RACES, launcher.schedule, at)[0]

    @functools.cache
    def here() -> Run:
        return behind(target)

    for grid, block in _shapes(target.grid, target.block):
        other = dataclasses.replace(target, grid=grid, block=block, expected=None)
        try:
            suits = all(
                nothing_new(_run(launcher, other, kernel, launcher.schedule)[0].hazards, known)
                for kernel in kernels.values()
            )
            there = behind(other) if suits else None
            if there and (there.hazards or there.inactive_reads):
                suits = nothing_new(there.hazards, [*known, *here().hazards])
                suits = suits and {*there.inactive_reads} <= {*here().inactive_reads}
        except (SimulatorError, ValueError):
            continue
        if suits:
            return other
    return None


def _shapes(grid: Sequence[int], block: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """Yield shapes with fewer threads (one partial warp), fewer blocks, and more blocks."""
    x, *rest = block
    if x > 4:
        yield tuple(grid), (x - x // 5 if (x - x // 5) % 32 else x - x // 5 - 1, *rest)
    if len(block) > 1 and block[1] > 4:
        yield tuple(grid), (x, block[1] - 3, *block[2:])
    blocks, *more = grid
    if blocks > 1:
        yield (blocks - 1, *more), tuple(block)
    if len(grid) > 1 and grid[1] > 1:
        yield (blocks, grid[1] - 1, *grid[2:]), tuple(block)
    yield (blocks + 1, *more), tuple(block)


def _resized(target: Target, entry: LibraryKernel) -> Target | None:
    """Return a library kernel at a size that its tiles do not divide, if it has one."""
    for size in _sizes(target.size):
        if size == tuple(target.size):
            continue
        try:
            launch = entry.launch(size, target.tile or None, np.random.default_rng(0))
        except ValueError:
            continue
        return dataclasses.replace(
            target, size=size, grid=launch.grid, block=launch.block, args=launch.args,
            shared_bytes=launch.shared_bytes, launch=launch,
            expected=launch.expected() if target.expected is not None else None,
        )  # fmt: skip
    return None


def _sizes(size: Size) -> Iterator[Size]:
    largest = _AXIS.get(len(size), _DEEP)
    ragged = [min(n, largest) * 5 // 8 | 1 for n in size]
    yield tuple(n + 2 * i for i, n in enumerate(ragged))
    for multiple in (4, 16, 32, 64):
        yield tuple(max(n // multiple, 1) * multiple for n in ragged)
    yield tuple(2 * n for n in size)


def _trial(launcher: Launcher, target: Target, schedule: str | int) -> Trial:
    return Trial(
        _words(target, target is not launcher.target), schedule,
        lambda kernel: _run(launcher, target, kernel, schedule),
    )  # fmt: skip


def _words(target: Target, is_other: bool) -> str:
    """Return a trial's shape; ``is_other``: it is not the launch's own."""
    if target.entry is not None:
        return f"{'another ' * is_other}size {shape(target.size)}"
    at = f"grid {shape(target.grid)}, block {shape(target.block)}"
    return f"another shape, {at}" if is_other else at


def _run(
    launcher: Launcher, target: Target, kernel: Kernel, schedule: str | int
) -> tuple[Run, bool]:
    """Run with all checks; return the run, and whether its result is right, if known."""
    run, args = launcher.observe(kernel, "all", schedule, target)
    right = True
    if target.launch is not None and target.expected is not None:
        filled = dataclasses.replace(target.launch, args=args)
        right = all(agreement.within for agreement in filled.compare(target.expected))
    return dataclasses.replace(run, hazards=judge(launcher.policy, run.hazards, run.kernel)), right
