"""What copies in bulk cost, held to the words of ``docs/counters.md``: a request a lane."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simulator.memory.event import LaneAddressList
from simulator.observe.counters.banks import SECTOR
from simulator.observe.counters.costs import bulk_cost


def event(where: LaneAddressList, space: str, size: int, offset: int) -> Any:
    return SimpleNamespace(
        address=where, space=space, site=SimpleNamespace(size=size, offset=offset)
    )


def cost(where: LaneAddressList, space: str, size: int, offset: int) -> list[int]:
    """Requests, lanes, bytes, bytes, sectors, nothing, nothing, sectors of as many side by side."""
    copies = list(zip(where.thread.tolist(), where.column.tolist(), strict=True))
    elements, nbytes = Counter(copies), len(copies) * size
    if space == "shared":
        return [len(elements), len(elements), nbytes, nbytes, 0, 0, 0, 0]
    at = (where.address + offset).tolist()
    sectors = {(copy, place // SECTOR) for copy, place in zip(copies, at, strict=True)}
    ideal = sum(-(-count * size // SECTOR) for count in elements.values())
    return [len(elements), len(elements), nbytes, nbytes, len(sectors), 0, 0, ideal]


def drawn(rng: np.random.Generator) -> LaneAddressList:
    """Lanes that copy the same box from somewhere; at times one differs, or all are mixed."""
    copies, each = rng.integers(1, 6), int(rng.integers(1, 9))
    first = rng.integers(0, 50, copies) * rng.choice([4, 32]) + 1000
    box = np.cumsum(rng.choice([4, 4, 4, 128], each))
    address = (first[:, None] + box).reshape(-1)
    thread = np.repeat(rng.integers(0, 3, copies), each)
    column = np.repeat(np.sort(rng.integers(0, 3, copies)), each)
    if rng.random() < 0.3:
        address[rng.integers(len(address))] += 32
    if rng.random() < 0.3:
        turn = rng.permutation(len(address))
        thread, column, address = thread[turn], column[turn], address[turn]
    left = len(address) - int(rng.integers(0, 2))
    return LaneAddressList(thread[:left], column[:left], address[:left])


@pytest.mark.parametrize("seed", range(20))
def test_costs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        where, size = drawn(rng), int(rng.choice([1, 4, 8]))
        for space in ("global", "shared"):
            given = where, space, size, int(rng.integers(-2, 3) * 16)
            assert bulk_cost(event(*given), 3).tolist() == cost(*given)
