"""Stencils in float32 with tiles in shared memory: 1-D of a radius, and 2-D of five points."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_RADIUS, _WIDTH, _SIDE = 3, 128, 16
_UNIT = 2.0**-24


def neighbour_sums(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return sums of 2 * radius + 1 neighbours, zeros outside."""
    padded = np.pad(np.asarray(args[0], np.float64), _RADIUS)
    return _sums("out", np.lib.stride_tricks.sliding_window_view(padded, 2 * _RADIUS + 1), 1.0)


def neighbour_means(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return a quarter of the sum of the four neighbours, zeros outside."""
    p = np.pad(np.asarray(args[0], np.float64), 1)
    around = (p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:])
    return _sums("out", np.stack(around, axis=-1), 0.25)


def _sums(name: str, terms: Any, factor: float) -> Mapping[str, Expected]:
    """Return sums along the last axis; any order of float32 additions is within the bound."""
    n = terms.shape[-1]
    gamma = n * _UNIT / (1 - n * _UNIT)
    with np.errstate(invalid="ignore", over="ignore"):
        value = factor * terms.sum(axis=-1)
        return {name: Expected(value, factor * gamma * np.abs(terms).sum(axis=-1) + 2.0**-149)}


def _line(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    (n,) = size
    args = [rng.standard_normal(n, dtype=np.float32), np.zeros(n, np.float32), n]
    return Launch((-(-n // _WIDTH),), (_WIDTH,), args, {"out": 1}, neighbour_sums)


def _plane(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    m, n = size
    args = [rng.standard_normal(size, dtype=np.float32), np.zeros(size, np.float32), m, n]
    grid = (-(-n // _SIDE), -(-m // _SIDE))
    return Launch(grid, (_SIDE, _SIDE), args, {"out": 1}, neighbour_means)


KERNELS = (
    LibraryKernel("stencil_line", f"1-D, radius {_RADIUS}, tile with halo", "stencil/stencil.cu",
                  f"line<{_RADIUS}>", ("N",), (1 << 15,), _line),
    LibraryKernel("stencil_five_point", "2-D, four neighbours, tile with halo",
                  "stencil/stencil.cu", "five_point", ("M", "N"), (256, 256), _plane),
)  # fmt: skip
