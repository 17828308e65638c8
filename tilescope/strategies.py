"""Hypothesis strategies for tests of kernels: shapes, sizes, contents, schedules.

Needs ``hypothesis``, which tilescope itself does not.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simulator.execute.schedule import NAMES

__all__ = ["float_arrays", "launch_shapes", "ragged_sizes", "schedules"]

Shape = tuple[int, ...]
_MAX_THREADS = 1024
_BLOCK_LIMITS = (1024, 1024, 64)


@st.composite
def launch_shapes(
    draw: st.DrawFn, dimensions: int = 3, max_blocks: int = 16, max_threads: int = 256
) -> tuple[Shape, Shape]:
    """Return a grid and a block, x first, of one to ``dimensions`` numbers each.

    Blocks of whole warps, of a warp and a bit, and of less than a warp all come up.

    Args:
        draw: Given by Hypothesis.
        dimensions: At most this many numbers, 1 to 3.
        max_blocks: Blocks of the grid, at most.
        max_threads: Threads of a block, at most.
    """
    if not 1 <= dimensions <= 3:
        raise ValueError(f"dimensions must be 1, 2 or 3, not {dimensions}")
    limits = (max_blocks,) * 3
    grid = draw(_boxes(dimensions, max_blocks, limits))
    block = draw(_boxes(dimensions, min(max_threads, _MAX_THREADS), _BLOCK_LIMITS))
    return grid, block


@st.composite
def _boxes(draw: st.DrawFn, dimensions: int, volume: int, limits: Sequence[int]) -> Shape:
    """Return numbers whose product is at most ``volume``."""
    if volume < 1:
        raise ValueError(f"a launch needs at least one block and one thread, not {volume}")
    sides: list[int] = []
    volume_left = volume
    for limit in limits[: draw(st.integers(1, dimensions))]:
        largest = min(volume_left, limit)
        near = [n for n in (1, 2, 16, 31, 32, 33, 64, largest) if n <= largest]
        sides.append(draw(st.sampled_from(near) | st.integers(1, largest)))
        volume_left //= sides[-1]
    return tuple(sides)


def ragged_sizes(tile: int = 16, max_size: int = 100, min_size: int = 1) -> st.SearchStrategy[int]:
    """Sizes that do and do not divide by a tile: multiples, one more, one less, and others."""
    if tile < 1 or not 0 <= min_size <= max_size:
        raise ValueError(f"no sizes from {min_size} to {max_size} around a tile of {tile}")
    multiples = range(0, max_size + tile + 1, tile)
    edges = {n + d for n in multiples for d in (-1, 0, 1) if min_size <= n + d <= max_size}
    whole = st.integers(min_size, max_size)
    return st.sampled_from(sorted(edges)) | whole if edges else whole


def float_arrays(
    shape: int | Shape | st.SearchStrategy[Any], dtype: Any = np.float32, special: bool = True
) -> st.SearchStrategy[Any]:
    """Arrays of floating-point numbers, of all magnitudes.

    Args:
        shape: Of the array, or a strategy for it.
        dtype: ``np.float16``, ``np.float32`` or ``np.float64``.
        special: Whether NaN, infinities, subnormals, signed zeros, and the largest and
            smallest numbers come up; without it all numbers are finite and normal.
    """
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise ValueError(f"float_arrays needs a floating-point type, not {kind}")
    shapes = shape if isinstance(shape, st.SearchStrategy) else st.just(shape)
    return shapes.flatmap(lambda s: _contents(s, kind, special))


def special_values(dtype: Any = np.float32) -> list[Any]:
    """Return the values that arithmetic goes wrong on, as scalars of the type."""
    info = np.finfo(dtype)
    tiny, least = info.smallest_normal, info.smallest_subnormal
    positive = [0.0, least, tiny - least, tiny, info.eps, 1.0, 1.0 + info.eps, info.max, np.inf]
    with np.errstate(over="ignore"):
        values = [np.dtype(dtype).type(v) for v in (*positive, np.nan)]
        return [*values, *(-v for v in values)]


def _contents(shape: Any, kind: Any, special: bool) -> st.SearchStrategy[Any]:
    """Return a random filling from a seed (cheap for large arrays), with special values."""
    size = int(np.prod(shape))
    places = st.integers(0, max(0, size - 1))
    values = st.sampled_from(special_values(kind.type))
    strewn = st.dictionaries(places, values, max_size=min(size, 8)) if special else st.just({})
    scales = st.sampled_from([0, 3, _exponents(kind)])

    def fill(seed: int, scale: int, extra: dict[int, Any]) -> Any:
        rng = np.random.default_rng(seed)
        mantissa = rng.uniform(1.0, 2.0, size) * rng.choice([-1.0, 1.0], size)
        flat = np.ldexp(mantissa, rng.integers(-scale, scale, size, endpoint=True)).astype(kind)
        for place, value in extra.items():
            flat[place] = value
        return flat.reshape(shape)

    return st.builds(fill, st.integers(0, 2**32 - 1), scales, strewn)


def _exponents(kind: Any) -> int:
    """Powers of two, up and down, that the type surely holds."""
    return int(np.finfo(kind).maxexp) - 3


def schedules(max_seed: int = 2**31 - 1) -> st.SearchStrategy[str | int]:
    """Return a strategy of ``schedule`` arguments of ``simulator.launch``: names and seeds."""
    return st.sampled_from(NAMES) | st.integers(0, max_seed)
