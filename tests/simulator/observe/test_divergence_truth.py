"""Divergent kernels measured on an H200: the same requests, sectors and bytes under every schedule.

``ground_truth/divergent_h200.json`` has the readings at levels 0 and 4 of the driver's compiler of
16 blocks of 256 threads; ``in`` is as ``ground_truth/README.md`` says of set ``access``.
"""

import json
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.observe.test_ground_truth import METRICS
from tests.support.paths import GROUND_TRUTH

FOLDER = GROUND_TRUTH
CASES: dict[str, dict[str, Any]] = {
    case["kernel"]: case for case in json.loads((FOLDER / "divergent_h200.json").read_text())
}
MORE = {
    "local_load.requests": "l1tex__t_requests_pipe_lsu_mem_local_op_ld",
    "local_store.requests": "l1tex__t_requests_pipe_lsu_mem_local_op_st",
    "local_load.sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld",
    "local_store.sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_st",
}
CALLS = {"two_calls", "call_in_loop", "recursion", "pointers", "calls"}
"""Kernels with calls: machine code saves registers to local memory, of which PTX says nothing."""
BY_ORDER = {"queue", "probe"}
"""Whose control flow depends on the order of atomics: read once, they differ from run to run."""
NOT_FOLLOWED = {"recursion"}
"""See docs/counters.md."""
SPINS = {"chain", "lock", "lock_inside", "pair_poll"}
"""How often lanes poll depends on time; what they do besides does not."""
STRAY = {("chain", f"shared_store.{what}") for what in ("wavefronts", "bank_conflicts")}
"""Stores of different warps collided, as in ``h200.json`` (ground_truth/README.md)."""
EQUAL = [name for name in CASES if name not in BY_ORDER | NOT_FOLLOWED]


def metrics(name: str) -> dict[str, str]:
    """Our counters and what the GPU calls them."""
    return METRICS if name in CALLS else METRICS | MORE


def counted(name: str, schedule: str | int, workers: int = 1) -> dict[str, int]:
    """The counters that have a reading."""
    case = CASES[name]
    given = np.random.default_rng(7).standard_normal(4096).astype(np.float32)
    kernel = Kernel.from_cuda(FOLDER / case["file"], name)
    args = [given, np.zeros(8192, np.float32), 4096]
    run = simulator.launch(kernel, 16, 256, args, schedule=schedule, checks="none", workers=workers)
    found = {}
    for ours, metric in metrics(name).items():
        if metric in case["O0"] and (name, ours) not in STRAY:
            group, _, one = ours.rpartition(".")
            found[ours] = getattr(getattr(run.counters, group) if group else run.counters, one)
    return found


def read(name: str) -> dict[str, int]:
    """What the H200 counted at level 0."""
    case = CASES[name]["O0"]
    return {
        ours: case[metric]
        for ours, metric in metrics(name).items()
        if metric in case and (name, ours) not in STRAY
    }


QUICK = [
    "two_calls",
    "exits_join",
    "exit_one_side",
    "circuits",
    "pair_poll",
    "tree",
    "votes",
    "spill",
]


@pytest.mark.parametrize(
    "name", [name for name in CASES if CASES[name]["file"] == "divergent.cu"] + QUICK
)
def test_lockstep_counts_what_the_gpu_counts(name: str) -> None:
    assert counted(name, "lockstep") == read(name)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 1])
@pytest.mark.parametrize("name", EQUAL)
def test_every_schedule_counts_what_the_gpu_counts(name: str, schedule: str | int) -> None:
    assert counted(name, schedule) == read(name)


@pytest.mark.parametrize("name", sorted(NOT_FOLLOWED))
def test_what_is_not_followed_is_the_same_under_every_schedule(name: str) -> None:
    first = counted(name, "lockstep")
    assert first != read(name)  # else docs/counters.md is to say so
    assert counted(name, 3) == first


@pytest.mark.parametrize("name", ["two_exits", "states"])
def test_workers_count_the_same(name: str) -> None:
    assert counted(name, "warps", workers=2) == read(name)
