"""How often a launch is run for its verdict."""

from typing import Any

import pytest
from launches import compiled, ints

import simulator
from simulator import attempts
from simulator.observe.observers import Observers

BOTH = (
    'extern "C" __global__ void k(int* d, int* e) { int i = blockIdx.x * blockDim.x + threadIdx.x; '
)


@pytest.mark.parametrize(
    ("body", "times"),
    [
        ("d[i] = e[i];", 1),
        ("atomicAdd(d + i, e[i]);", 1),
        ("d[i] = d[i] + 1;", 2),  # read and written: a table of owners
        ("d[0] = d[i] + 1;", 3),  # races: the exact table
    ],
)
def test_a_launch_runs_again_where_the_first_checks_do_not_suffice(
    body: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[attempts.Observers]()

    def noted(*given: Any) -> attempts.Observers:
        made.append(Observers(*given))
        return made[-1]

    monkeypatch.setattr(attempts, "Observers", noted)
    simulator.launch(compiled(BOTH + body + " }"), 2, 32, ints(64, 64))
    assert len(made) == times
