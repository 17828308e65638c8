"""The Hypothesis strategies draw what they promise, and what is worth drawing."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from kernels.arguments.convert import check_shape, dim3
from simulator.execute import schedule
from tilescope.strategies import (
    float_arrays,
    launch_shapes,
    ragged_sizes,
    schedules,
    special_values,
)


def comes_up(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], Any]) -> bool:
    """Whether something of the kind is drawn within a reasonable number of examples."""
    try:
        find(strategy, wanted, settings=settings(max_examples=2000, phases=[Phase.generate]))
    except NoSuchExample:
        return False
    return True


@given(st.integers(1, 3), st.integers(1, 40), st.integers(1, 1024), st.data())
def test_launch_shapes_can_be_launched(
    dimensions: int, blocks: int, threads: int, data: st.DataObject
) -> None:
    grid, block = data.draw(launch_shapes(dimensions, blocks, threads))
    check_shape(dim3(grid, "grid"), dim3(block, "block"))
    assert 1 <= len(grid) <= dimensions
    assert 1 <= len(block) <= dimensions
    assert math.prod(grid) <= blocks
    assert math.prod(block) <= threads


@pytest.mark.slow_but("31")
@pytest.mark.parametrize("threads", [31, 32, 33, 64, 256])
def test_launch_shapes_around_a_warp_come_up(threads: int) -> None:
    assert comes_up(launch_shapes(), lambda shape: math.prod(shape[1]) == threads)
    assert comes_up(launch_shapes(), lambda shape: len(shape[1]) == 3 and min(shape[1]) > 1)


@given(st.integers(1, 64), st.integers(1, 50), st.integers(0, 100), st.data())
def test_ragged_sizes_are_in_range(tile: int, low: int, more: int, data: st.DataObject) -> None:
    assert low <= data.draw(ragged_sizes(tile, low + more, low)) <= low + more


def test_ragged_sizes_around_multiples_come_up() -> None:
    for size in (1, 15, 16, 17, 31, 32, 33, 70):
        assert comes_up(ragged_sizes(16, 100), lambda n, size=size: n == size)


@given(st.data(), st.sampled_from([np.float16, np.float32, np.float64]))
def test_float_arrays_have_their_shape_and_type(data: st.DataObject, dtype: Any) -> None:
    shape = data.draw(st.sampled_from([0, 5, (3, 4), (2, 0, 3)]))
    array = data.draw(float_arrays(shape, dtype))
    assert array.dtype == dtype
    assert array.shape == (shape if isinstance(shape, tuple) else (shape,))
    plain = data.draw(float_arrays(shape, dtype, special=False))
    assert np.isfinite(plain).all()
    assert (np.abs(plain) >= np.finfo(dtype).smallest_normal).all()


@pytest.mark.slow_but("float64")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_special_values_come_up(dtype: Any) -> None:
    tiny = np.finfo(dtype).smallest_normal
    kinds: tuple[Callable[[Any], Any], ...] = (
        lambda a: np.isnan(a).any(),
        lambda a: np.isposinf(a).any(),
        lambda a: np.isneginf(a).any(),
        lambda a: ((a != 0) & (np.abs(a) < tiny)).any(),
        lambda a: ((a == 0) & np.signbit(a)).any(),
        lambda a: ((a == 0) & ~np.signbit(a)).any(),
    )
    seen: set[int] = set()

    def all_came(array: Any) -> bool:
        seen.update(i for i, kind in enumerate(kinds) if kind(array))
        return len(seen) == len(kinds)

    assert comes_up(float_arrays((4, 4), dtype), all_came), seen


def test_special_values_are_of_the_type() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        assert {type(value) for value in special_values(dtype)} == {dtype}


def test_shapes_may_be_drawn() -> None:
    arrays = float_arrays(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    assert comes_up(arrays, lambda a: a.shape == (3, 2))


@given(schedules())
def test_schedules_are_schedules(name: str | int) -> None:
    schedule.make(name)


def test_all_schedules_come_up() -> None:
    for name in schedule.NAMES:
        assert comes_up(schedules(), lambda drawn, name=name: drawn == name)
    assert comes_up(schedules(), lambda drawn: isinstance(drawn, int))


@pytest.mark.parametrize(
    "make",
    [
        lambda: launch_shapes(0).example(),
        lambda: launch_shapes(1, 0).example(),
        lambda: ragged_sizes(0),
        lambda: ragged_sizes(16, 3, 4),
        lambda: float_arrays(3, np.int32),
    ],
)
@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
def test_what_cannot_be_drawn(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        make()
