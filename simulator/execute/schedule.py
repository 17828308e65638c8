"""Schedules: the order in which warps and blocks take steps. Hardware may take any of them."""

import functools
from typing import Literal

import numpy as np

from kernels.errors import LaunchError

from ..core.geometry import Flat, Geometry, Mask, as_mask

PATIENCE = (16, 4096)
"""Basic blocks that one warp may run before another gets its turn: the fewer, the more
often warps had to be stopped, which is what those do that spin for one another. (It is half as many
each time, so that warps spin for some twice the most in all.)"""
_WAITS = 256
"""Basic blocks that a warp may run if one warp of one block runs at a time."""
FAIR = 64
"""After so many steps that did not bring all lanes together, the warps that have waited
longest go: a warp that polls cannot starve the one it waits for."""
NAMES = ("lockstep", "warps", "reverse")

Part = Mask | None | Literal[False]
"""Lanes; ``None``: all of the batch, ``False``: nobody."""
Groups = dict[int, Mask | None]
"""Lanes that stand at a block, by its number."""
Pick = tuple[int, Mask | None, bool]
"""A block's number, the lanes that run it, and whether they are all that stand there."""


class Schedule:
    """``lockstep``: all lanes at the lowest block go together.

    A schedule chooses among warps. The order of lanes within a warp is the same under every
    schedule.
    """

    def start(self, geometry: Geometry) -> None:
        """Begin a batch."""

    def pick(self, groups: Groups) -> tuple[int, Mask | None]:
        """Choose lanes to run: of each chosen warp those at the lowest block."""
        number = min(groups)
        return number, groups[number]


def _lowest(groups: Groups, mine: Mask) -> tuple[int, Mask | None] | None:
    """Return the lanes of some warps at their lowest block; ``None``: none is runnable."""
    for number in sorted(groups):
        mask = groups[number]
        lanes = mine if mask is None else mask & mine
        if lanes.any():
            return number, lanes if (as_mask(mask) & ~mine).any() else mask
    return None


class _ByWarp(Schedule):
    """``warps``: one warp at a time runs as far as it can."""

    def start(self, geometry: Geometry) -> None:
        self.order = self.warp_order(geometry)
        self.warps = geometry.warp_ids
        self.at = 0
        self.turns = 0
        self.patience = PATIENCE[1]
        self.random = np.random.default_rng(0)

    def warp_order(self, geometry: Geometry) -> list[int]:
        """Return the order in which warps are tried."""
        return list(range(geometry.warps))

    def pick(self, groups: Groups) -> tuple[int, Mask | None]:
        self.turns += 1
        if self.turns > self.patience:  # it may be spinning for what another warp has to do
            self.patience = max(self.patience // 2, PATIENCE[0])
            self.turns = 0
            self.at = (self.at + 1) % len(self.order)
        for _ in range(len(self.order) + 1):
            found = _lowest(groups, self.warps == self.order[self.at])
            if found is not None:
                return found
            self.next_warp()
        return super().pick(groups)

    def next_warp(self) -> None:
        """Advance to the next warp; the turn's length adapts to the last one."""
        if self.turns > self.patience // 2:
            self.patience = min(self.patience * 2, PATIENCE[1])
        self.turns = 0
        self.at = (self.at + 1) % len(self.order)


class _Reverse(_ByWarp):
    def warp_order(self, geometry: Geometry) -> list[int]:
        return list(range(geometry.warps))[::-1]


class _Random(_ByWarp):
    """Random schedule: each step runs one warp, of all blocks or (``shuffle_blocks``) of some."""

    def __init__(self, seed: int, shuffle_blocks: bool) -> None:
        self.seed, self.shuffle_blocks = seed, shuffle_blocks

    def start(self, geometry: Geometry) -> None:
        super().start(geometry)
        self.random = np.random.default_rng((self.seed, int(geometry.blocks[0])))
        self.shuffle_blocks &= geometry.columns > 1
        self.columns = geometry.columns
        self.every = self.warps

    def pick(self, groups: Groups) -> tuple[int, Mask | None]:
        self.at = int(self.random.integers(len(self.order)))
        if self.shuffle_blocks:
            some = self.random.integers(2, size=self.columns) == 1
            self.warps = np.where(some, self.every, -1)
        return super().pick(groups)


class _InTurn(_ByWarp):
    """Round robin: each warp of each block executes one basic block in turn."""

    def start(self, geometry: Geometry) -> None:
        super().start(geometry)
        self.geometry = geometry
        self.warps = geometry.warp_ids + geometry.warps * np.arange(geometry.columns)

    def warp_order(self, geometry: Geometry) -> list[int]:
        return list(range(geometry.warps * geometry.columns))

    def pick(self, groups: Groups) -> tuple[int, Mask | None]:
        ready = self.ready(groups)
        following = np.roll(ready, -self.at - 1)
        self.at = (self.at + 1 + int(following.argmax())) % len(ready)
        return _lowest(groups, self.warps == self.at) or Schedule.pick(self, groups)

    def ready(self, groups: Groups) -> Flat:
        """Return which warps, by their number in the batch, are runnable."""
        lanes = functools.reduce(np.logical_or, map(as_mask, groups.values()))
        return self.geometry.any_of_warp(lanes).ravel(order="F")


class _ByBlock(_InTurn):
    """Schedule that runs the first runnable warp of the first runnable block.

    Slow blocks move to the end.
    """

    def start(self, geometry: Geometry) -> None:
        super().start(geometry)
        self.running, self.patience = -1, _WAITS

    def pick(self, groups: Groups) -> tuple[int, Mask | None]:
        self.turns += 1
        if self.turns > self.patience:  # it may be spinning for what another one has to do
            self.patience = max(self.patience // 2, PATIENCE[0])
            self.order.remove(self.running)
            self.order.append(self.running)
        number = self.order[int(self.ready(groups)[self.order].argmax())]
        if (found := _lowest(groups, self.warps == number)) is not None:
            self.turns = self.turns if number == self.running else 0
            self.running = number
            return found
        return Schedule.pick(self, groups)


class _ByBlockReverse(_ByBlock):
    """Reverse of ``_ByBlock``: begins with the last warp of the last block."""

    def warp_order(self, geometry: Geometry) -> list[int]:
        return super().warp_order(geometry)[::-1]


_ORDERS = {"by block": _ByBlock, "by block, reverse": _ByBlockReverse, "in turn": _InTurn}
ORDERS = tuple(_ORDERS)
"""In which blocks and warps come one by one: what atomics put in order by chance then differs."""


def make(schedule: str | int, shuffle_blocks: bool = False) -> Schedule:
    """Return the schedule of a name or seed; ``shuffle_blocks``: a seed also varies blocks.

    Raises:
        LaunchError: Unknown name.
    """
    if isinstance(schedule, bool) or not isinstance(schedule, (str, int, np.integer)):
        raise LaunchError(f"schedule must be one of {', '.join(NAMES)} or a seed, not {schedule!r}")
    if not isinstance(schedule, str):
        if schedule < 0:
            raise LaunchError(f"a schedule's seed cannot be negative: {schedule}")
        return _Random(int(schedule), shuffle_blocks)
    if schedule.isdecimal():
        return _Random(int(schedule), shuffle_blocks)
    if schedule in _ORDERS:
        return _ORDERS[schedule]()
    named = {"lockstep": Schedule, "warps": _ByWarp, "reverse": _Reverse}
    if schedule not in named:
        raise LaunchError(f"unknown schedule {schedule!r}; there are {', '.join(NAMES)}, or a seed")
    return named[schedule]()
