"""When each block of a launch runs, and where: blocks begin in order, wherever there is room.

A multiprocessor serves the blocks on it by age: the oldest goes as fast as it would alone, and the
youngest has what is left. So blocks that begin together do not end together, and after some waves
they stand at all stages at once. Times at which blocks began and ended on an H200 say so: of two
that begin together one takes 0.75 and one 1.12 of the usual time, and from the fourth on every
half of it one begins.
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
    """One entry a block.

    Attributes:
        begins: In units of a block's time among others; ``takes``: likewise.
        sm: The multiprocessor that it runs on.
    """

    begins: NDArray[np.float64]
    takes: NDArray[np.float64]
    sm: Flat


def turns(blocks: int, sms: int, resident: int) -> BlockTimeline:
    """Blocks on multiprocessors that run some at a time."""
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
    """When the blocks of a multiprocessor begin and end, one after the other."""
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
