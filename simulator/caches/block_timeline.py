"""Timeline of a launch's blocks: they start in order, wherever there is room.

A multiprocessor serves its blocks by age: the oldest runs at full speed, and the youngest gets the
remaining capacity. Blocks that start together therefore end at different times, and after some
waves they are spread over all stages. Start and end times on an H200 confirm this: of two blocks
that start together one takes 0.75 and the other 1.12 of the usual time, and from the fourth on a
block starts every half of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.geometry import Flat

ALONE = 0.8
"""Time of a block that is served first, of that of one among others: 0.37 to 0.97 were measured,
0.75 mostly."""
_VARIES = 0.03
"""How much that differs from block to block."""
_SM_PATTERNS = 4
"""Multiprocessors that are followed; the others do as one of these."""
_FOLLOWED = 300_000
"""Blocks that are followed; those of a larger launch run in waves."""


@dataclass(frozen=True)
class BlockTimeline:
    """Timeline with one entry for each block.

    Attributes:
        begins: Start, in units of a block's execution time.
        takes: Duration, in the same unit.
        sm: Multiprocessor of the block.
    """

    begins: NDArray[np.float64]
    takes: NDArray[np.float64]
    sm: Flat


def turns(blocks: int, sms: int, resident: int) -> BlockTimeline:
    """Return the timeline for multiprocessors with some resident blocks."""
    slots, every = sms * resident, np.arange(blocks)
    if not slots < blocks <= _FOLLOWED:
        return BlockTimeline((every // slots).astype(np.float64), np.ones(blocks), every % sms)
    each = -(-blocks // sms)
    found = [
        _by_age(resident, each, np.random.default_rng(number)) for number in range(_SM_PATTERNS)
    ]
    begins, finishes = (
        np.stack([found[sm % _SM_PATTERNS][at] for sm in range(sms)], axis=1).reshape(-1)
        for at in (0, 1)
    )
    order = np.argsort(begins, kind="stable")[:blocks]
    return BlockTimeline(begins[order], (finishes - begins)[order], order % sms)


def _by_age(
    resident: int, blocks: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return start and end of the blocks of one multiprocessor, in order."""
    fastest = (1 / (ALONE * (1 + _VARIES * rng.standard_normal(blocks)))).tolist()
    begins, finishes = np.zeros(blocks), np.zeros(blocks)
    there = list(range(min(resident, blocks)))
    remaining = [1.0] * len(there)
    begun, now = len(there), 0.0
    while there:
        room, speeds = float(resident), []
        for block in there:
            speeds.append(min(fastest[block], room))
            room -= speeds[-1]
        step = min(work / speed for work, speed in zip(remaining, speeds, strict=True) if speed > 0)
        now += step
        remaining = [work - step * speed for work, speed in zip(remaining, speeds, strict=True)]
        for place in range(len(there) - 1, -1, -1):
            if remaining[place] < 1e-9:
                finishes[there.pop(place)] = now
                remaining.pop(place)
        while len(there) < resident and begun < blocks:
            begins[begun] = now
            there.append(begun)
            remaining.append(1.0)
            begun += 1
    return begins, finishes
