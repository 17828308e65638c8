"""Steps of one block: act, instruction, and active threads of each warp."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.core.geometry import WARP
from simulator.observe.trace.trace import RELEASE as RELEASED
from simulator.observe.trace.trace import Batch, TraceEvent

from .roles import QUIET, RELEASE, Roles

Ints = NDArray[np.int64]

MAX_STEPS = 40_000
"""Steps of a block that the page plays. Later steps are not in beats."""


@dataclass
class StorySteps:
    """Steps of one block in order, without quiet instructions.

    Attributes:
        block: Linear number of the block.
        column: Its column in the batch.
        events: Number of each step's event in the batch.
        acts: Act of each step.
        watched: Instruction of each step; -1 for the release of a barrier.
        lanes: Active threads of each warp, in shape ``(steps, warps)``.
    """

    block: int
    column: int
    events: Ints
    acts: Ints
    watched: Ints
    lanes: NDArray[np.uint8]

    @property
    def key(self) -> bytes:
        """Bytes that are equal for blocks with equal steps."""
        return self.watched.tobytes() + self.lanes.tobytes()


def steps_of(
    batch: Batch, roles: Roles, columns: list[int], extent: tuple[int, ...], count: int
) -> list[StorySteps]:
    """Return the steps of some blocks in the first ``count`` events of a batch."""
    numbers, acts = [], []
    for number, event in enumerate(batch.events[:count]):
        act = RELEASE if event.watched == RELEASED else roles.acts[event.watched]
        if act != QUIET:
            numbers.append(number)
            acts.append(act)
        if len(numbers) >= MAX_STEPS:
            break
    lanes = np.zeros((len(numbers), -(-_size(extent) // WARP), len(columns)), np.uint8)
    for row, number in enumerate(numbers):
        lanes[row] = _lanes(batch.events[number], columns, extent)
    watched = np.array([batch.events[n].watched for n in numbers], np.int64)
    found = []
    for place, column in enumerate(columns):
        on = lanes[:, :, place].any(axis=1)
        found.append(
            StorySteps(
                batch.blocks[column], column, np.array(numbers, np.int64)[on],
                np.array(acts, np.int64)[on], watched[on], lanes[on][:, :, place],
            )
        )  # fmt: skip
    return found


def threads_on(event: TraceEvent, column: int, extent: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the mask of a block's threads that are active in an event, in shape ``(threads,)``."""
    if event.mask is None:
        return np.ones(_size(extent), np.bool_)
    on: NDArray[np.bool_] = flat(event.mask, column, extent).astype(np.bool_)
    return on


def flat(value: Any, column: int, extent: tuple[int, ...]) -> Any:
    """Return a register's values of one block, in shape ``(threads,)``."""
    array = np.asarray(value)
    if array.ndim == 0:
        return np.broadcast_to(array, _size(extent))
    array = array[..., column if array.shape[3] > 1 else 0]
    return np.broadcast_to(array, extent).reshape(-1)


def _lanes(event: TraceEvent, columns: list[int], extent: tuple[int, ...]) -> Any:
    threads = _size(extent)
    warps = -(-threads // WARP)
    if event.mask is None or event.mask.ndim == 0:
        full = np.full(warps, WARP, np.uint8)
        full[-1] = threads - WARP * (warps - 1)
        return np.repeat(full[:, None], len(columns), axis=1)
    mask = event.mask if event.mask.shape[3] == 1 else event.mask[..., columns]
    on = np.broadcast_to(mask, (*extent, len(columns))).reshape(threads, len(columns))
    padded = np.zeros((warps * WARP, len(columns)), np.uint8)
    padded[:threads] = on
    return padded.reshape(warps, WARP, len(columns)).sum(axis=1)


def _size(extent: tuple[int, ...]) -> int:
    return int(np.prod(extent))
