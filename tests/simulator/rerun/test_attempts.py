"""How often a launch is run for its verdict."""

from typing import Any

import pytest

import simulator
from simulator.observe.observers import Observers
from simulator.rerun import driver
from tests.support.launches import compiled, ints

BOTH = (
    "__device__ __noinline__ void put(int* to, int i) { to[i] = 1; }\n"
    'extern "C" __global__ void k(int* d, int* e) {'
    " int i = blockIdx.x * blockDim.x + threadIdx.x; "
)


@pytest.mark.parametrize(
    ("body", "times"),
    [
        ("d[i] = d[i] + 1;", 1),
        ("int old = d[i]; int* at = i % 2 ? d + i : d; at[i % 2 ? 0 : i] = old;", 1),
        ("int old = d[i]; put(d + old, i);", 1),
        ("atomicAdd(d + i, e[i]);", 1),
        ("e[d[i]] = 1; d[i] = e[i];", 2),  # races, and is looked at closely
    ],
)
def test_what_a_pointer_reads_and_writes_is_known_beforehand(
    body: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[driver.Observers]()

    def noted(*given: Any) -> driver.Observers:
        made.append(Observers(*given))
        return made[-1]

    monkeypatch.setattr(driver, "Observers", noted)
    simulator.launch(compiled(BOTH + body + " }"), 2, 32, ints(64, 64))
    assert len(made) == times
