"""Sets of observers that share the batches of a launch see, merged, what one set sees.

Of kernels whose blocks hand nothing on to each other: the library's, and faulty ones.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kernels import Kernel, library
from simulator.execute import batches
from simulator.execute.prepare import prepare
from simulator.observe.observers import chosen
from simulator.observe.trace.trace import Trace
from simulator.rerun.driver import run_to_verdict
from simulator.run import Run, report

HAND_ON = ("faulty_last_block", "faulty_last_block_fixed", "scan_look_back")
"""Their blocks count each other, and take over what others did."""
SIZES = {1: (1500,), 2: (50, 70), 3: (32, 32, 32)}
NAMES = [name for name in library.names() if name not in HAND_ON and not name.endswith("_fixed")]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is one block."""
    monkeypatch.setattr(batches, "LANES", 1)


def run(
    kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], parts: int, shared: int = 0,
    trace: Trace | None = None, schedule: str | int = "lockstep",
) -> Run:  # fmt: skip
    prepared = prepare(kernel, grid, block, args, shared, schedule, 100_000, trace is not None)
    checks = chosen("all")
    seen = run_to_verdict(prepared, checks, trace, None, parts)
    return report(prepared, seen.observers, checks, 0.0)


def told(run: Run) -> dict[str, Any]:
    """What a run says, but for the time it took."""
    return run.to_dict() | {"seconds": 0}


@pytest.mark.slow  # test_workers has them in two processes
@pytest.mark.parametrize("name", NAMES)
def test_library(name: str) -> None:
    entry = library.get(name)
    size = (6,) if entry.axes == ("blocks",) else SIZES[len(entry.axes)]

    def one(parts: int) -> dict[str, Any]:
        launch = entry.launch(size)
        shape = launch.grid, launch.block, launch.args
        return told(run(entry.kernel(), *shape, parts, launch.shared_bytes))

    assert one(3) == one(1)


KERNELS = {
    "several values": "out[threadIdx.x] = 1; __threadfence(); out[threadIdx.x] = VALUE;",
    "equal values": "out[threadIdx.x] = 1;",
    "an atomic that adds nothing, and one that adds": (
        "if (blockIdx.x == 0) out[2] = *(volatile int*)out;"
        "else { atomicAdd(out, 0); if (blockIdx.x > 2) atomicAdd(out, 1); }"
    ),
    "a reader before writers": "if (blockIdx.x) out[0] = VALUE; else out[1] = out[0];",
    "readers after a writer": "if (blockIdx.x) out[blockIdx.x] = out[0]; else out[0] = 4;",
    "strong accesses of two sizes": (
        "if (blockIdx.x % 2) atomicAdd(out, 1); else atomicAdd((unsigned long long*)out, 1ull);"
    ),
    "lanes that take no part": (
        "if (threadIdx.x < 16) out[blockIdx.x * 16 + threadIdx.x] = __shfl_sync(0xffff, VALUE, 20);"
    ),
    "out of bounds": "out[blockIdx.x * 32 + threadIdx.x] = VALUE;",
}


@pytest.mark.parametrize("body", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize(("parts", "schedule"), [(2, "lockstep"), (4, "lockstep"), (3, 1)])
def test_between_blocks(body: str, parts: int, schedule: str | int) -> None:
    """What two blocks do to each other, of which each is watched by another observer."""
    body = body.replace("VALUE", "int(blockIdx.x + threadIdx.x)")
    kernel = Kernel.from_cuda(f'extern "C" __global__ void k(int* out) {{ {body} }}', "k")
    one, other = (
        told(run(kernel, 5, 32, [np.zeros(64, np.int32)], n, schedule=schedule)) for n in (1, parts)
    )
    assert other == one
    assert one["hazards"]


def test_pairs_that_are_too_many_to_list() -> None:
    """Some are in order, at a barrier that one observer alone has seen."""
    source = (
        "(int* out) { int* o = out + blockIdx.x, t = threadIdx.x; if (t < 512) *o = t;"
        " if (blockIdx.x == 0) __syncthreads(); if (t >= 512) *o = t; }"
    )
    kernel = Kernel.from_cuda(f'extern "C" __global__ void k{source}', "k")
    one, other = (told(run(kernel, 3, 1024, [np.zeros(3, np.int32)], n)) for n in (1, 3))
    assert other == one
    assert "at least 4,096 pairs of threads" in str(one["hazards"])


def test_trace() -> None:
    entry = library.get("transpose_tiled")
    traces = []
    for parts in (1, 3):
        launch, trace = entry.launch((40, 70)), Trace(blocks=4)
        run(entry.kernel(), launch.grid, launch.block, launch.args, parts, trace=trace)
        traces.append(trace)
    one, other = traces
    assert [batch.blocks for batch in other.batches] == [batch.blocks for batch in one.batches]
    for mine, theirs in zip(one.batches, other.batches, strict=True):
        assert [str(event) for event in mine.events] == [str(event) for event in theirs.events]
    for number, found in one.maps.items():
        same = other.maps[number]
        for name in ("before", "after", "reads", "writes", "owner"):
            assert np.array_equal(getattr(found, name), getattr(same, name)), (number, name)
