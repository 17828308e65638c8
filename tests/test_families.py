"""The library beside matrix products: right for every size and content, and without hazards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from kernels import library

NAMES = [name for name in library.names() if name.partition("_")[0] not in ("matmul", "faulty")]
SIZES = {
    1: [(1,), (31,), (256,), (257,), (1000,), (2049,)],
    2: [(1, 1), (32, 32), (33, 70), (5, 100), (100, 3), (17, 257)],
}
SPECIAL = np.array(
    [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        2.0**-149,
        -(2.0**-130),
        3.4e38,
        -3.4e38,
        1.0,
        -100.0,
        89.0,
    ],
    np.float32,
)


def run(
    name: str, launch: library.Launch, build: str = "device", schedule: str | int = "lockstep"
) -> simulator.Run:
    """Run, and hold the output to the reference."""
    expected = launch.expected()
    kernel = library.get(name).kernel(build=build)
    result = simulator.launch(kernel, launch.grid, launch.block, launch.args, schedule=schedule)
    for output in launch.compare(expected):
        assert output.within, output
    return result


def schedules() -> st.SearchStrategy[str | int]:
    return st.one_of(st.sampled_from(["lockstep", "warps", "reverse"]), st.integers(0, 1 << 30))


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("name", NAMES)
def test_equals_the_reference_and_has_no_hazard(name: str, build: str) -> None:
    entry = library.get(name)
    for size in SIZES[len(entry.axes)]:
        assert run(name, entry.launch(size), build).hazards == [], size


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_size_content_and_schedule(name: str, data: st.DataObject) -> None:
    entry = library.get(name)
    longest = 1200 if len(entry.axes) == 1 else 80
    size = tuple(data.draw(st.integers(1, longest), label=axis) for axis in entry.axes)
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30), label="seed"))
    launch = entry.launch(size, rng=rng)
    values = launch.args[0]
    kind = data.draw(st.sampled_from(["usual", "extreme", "equal"]), label="content")
    if kind == "extreme" and values.dtype == np.float32:
        special = rng.random(values.shape) < data.draw(st.sampled_from([0.01, 0.5]), label="share")
        values[special] = rng.choice(SPECIAL, np.count_nonzero(special))
        if name.startswith(("reduction", "stencil")):
            # A sum that overflows on the way depends on its order: no such values.
            values[np.abs(values) > 1e37] = np.inf
    elif kind == "extreme":
        limits = np.iinfo(values.dtype)
        values[...] = rng.integers(
            limits.min, limits.max, values.shape, values.dtype, endpoint=True
        )
    elif kind == "equal":
        values[...] = values.flat[0]
    result = run(name, launch, schedule=data.draw(schedules(), label="schedule"))
    assert result.hazards == []


@pytest.mark.parametrize("name", [n for n in NAMES if n != "reduction_atomic"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_the_same_bits_under_every_schedule(name: str, data: st.DataObject) -> None:
    """But for float atomics, whose order is left to the schedule."""
    entry = library.get(name)
    size = tuple(
        data.draw(st.integers(1, 600 // len(entry.axes) ** 3), label=a) for a in entry.axes
    )
    outputs: list[Any] = []
    for schedule in ("lockstep", data.draw(schedules(), label="schedule")):
        launch = entry.launch(size)
        run(name, launch, schedule=schedule)
        outputs.append(launch.args[next(iter(launch.outputs.values()))].tobytes())
    assert outputs[0] == outputs[1]


# -- what each family is there to show ------------------------------------------------------


def counters(name: str, size: tuple[int, ...]) -> Any:
    return run(name, library.get(name).launch(size)).counters


def test_tiles_coalesce_both_sides_of_a_transpose() -> None:
    naive, tiled, padded = (
        counters(f"transpose_{variant}", (256, 256)) for variant in ("naive", "tiled", "padded")
    )
    requests = 256 * 256 // 32
    assert naive.global_load.sectors_per_request == 4
    assert naive.global_store.sectors_per_request == 32
    assert tiled.global_store.sectors_per_request == padded.global_store.sectors_per_request == 4
    assert tiled.shared_load.bank_conflicts == 31 * requests
    assert padded.bank_conflicts == 0


def test_shuffles_save_shared_memory() -> None:
    n = 1 << 14
    tree, shuffle = counters("reduction_shared", (n,)), counters("reduction_shuffle", (n,))
    assert shuffle.shared_store.accesses == n // 32
    assert tree.shared_store.accesses == n + (n - n // 256)
    assert shuffle.barriers < tree.barriers


def test_blelloch_adds_less() -> None:
    n = 1 << 12
    steps, tree = counters("scan_hillis_steele", (n,)), counters("scan_blelloch", (n,))
    assert tree.shared_store.accesses < steps.shared_store.accesses / 2


def test_private_bins_save_global_atomics() -> None:
    n = 1 << 16
    alone, private = counters("histogram_global", (n,)), counters("histogram_shared", (n,))
    assert alone.global_atomic.accesses == n
    assert private.shared_atomic.accesses == n
    assert private.global_atomic.accesses <= 256 * -(-n // 2048)


def test_stencils_load_each_input_once_but_for_the_halo() -> None:
    n = 1 << 12
    blocks = n // 128
    assert counters("stencil_line", (n,)).global_load.accesses == n + 2 * 3 * (blocks - 1)
    plane = counters("stencil_five_point", (64, 64))
    assert plane.global_load.accesses == 64 * 64 + 2 * 64 * 2 * 3


def test_softmax_reads_its_row_three_times() -> None:
    assert counters("softmax_rows", (64, 200)).global_load.accesses == 3 * 64 * 200
