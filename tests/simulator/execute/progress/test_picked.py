"""Lanes that are picked out of a batch do, and are told of, what they would be among all of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from simulator.execute.progress import lane_compaction
from tests.support.launches import ONE_FIRST, compiled

SOURCE = Path(__file__).parent / "picked.cu"
SIZE = 300
OTHERS = {
    "k_nested": [np.zeros(SIZE, np.uint8), np.linspace(0, 9, SIZE, dtype=np.float32)],
    "k_wide": [np.linspace(0, 1, SIZE), np.ones((SIZE, 4), np.float32)],
    "k_bad": [np.arange(8, dtype=np.int32)],
    "k_long": [],
    "k_alike": [np.zeros(SIZE, np.int32)],
}


@pytest.mark.slow_but("(2,)-(5, 4, 3)-k_alike", "(40,)-(1,)-k_alike")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    ("grid", "block"), [((3,), (100,)), ((2,), (5, 4, 3)), ((40,), (1,))], ids=str
)
def test_picked_out_or_not(
    name: str, build: str, grid: tuple[int, ...], block: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    rounds = (12 * np.random.default_rng(0).random(SIZE) ** 2).astype(np.int32)
    ran: list[int] = []
    run = lane_compaction.LaneCompaction.run
    monkeypatch.setattr(
        lane_compaction.LaneCompaction,
        "run",
        lambda self, *lanes: ran.append(lanes[0]) or run(self, *lanes),
    )  # fmt: skip
    seen = []
    for least in (1 << 30, 0):
        monkeypatch.setattr(lane_compaction, "LEAST", least)
        for limit, value in (("SHARE", 1), ("SHORT", 0)):
            monkeypatch.setattr(lane_compaction, limit, value)
        args: list[Any] = [np.arange(2 * SIZE, dtype=np.int32), rounds]
        args += [array.copy() for array in OTHERS[name]] + [SIZE]
        assert not ran
        found = simulator.launch(compiled(SOURCE, name, build), grid, block, args)
        seen.append((found.to_dict() | {"seconds": 0}, [a.tobytes() for a in args[:-1]]))
    assert ran
    assert seen[0] == seen[1]
