"""Inclusive prefix sums of int32, within blocks of 256 elements and of the whole array."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_WIDTH = 256


def block_prefix_sums(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return prefix sums within each block, modulo 2**32 as integers of CUDA wrap; exact."""
    values = np.asarray(args[0], np.int64)
    rows = np.zeros(-(-len(values) // _WIDTH) * _WIDTH, np.int64)
    rows[: len(values)] = values
    sums = rows.reshape(-1, _WIDTH).cumsum(axis=1).reshape(-1)[: len(values)]
    return {"out": Expected(sums.astype(np.int32).astype(np.float64), np.float64(0))}


def _launch(size: Size, rng: np.random.Generator, threads: int) -> Launch:
    (n,) = size
    args = [rng.integers(-1000, 1000, n, dtype=np.int32), np.zeros(n, np.int32), n]
    return Launch((-(-n // _WIDTH),), (threads,), args, {"out": 1}, block_prefix_sums)


def prefix_sums(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return all prefix sums modulo 2**32, and the blocks' final messages; exact."""
    sums = np.asarray(args[0], np.int64).cumsum()
    blocks = len(args[2]) - 1
    totals = np.append(sums[_WIDTH - 1 :: _WIDTH], sums[-1])[:blocks] % 2**32 + 2 * 2**32
    return {
        "out": Expected(sums.astype(np.int32).astype(np.float64), np.float64(0)),
        "state": Expected(np.append(blocks, totals).astype(np.float64), np.float64(0)),
    }


def _look_back(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    launch = _launch(size, rng, _WIDTH)
    values, out, n = launch.args
    args = [values, out, np.zeros(launch.grid[0] + 1, np.uint64), n]
    return replace(launch, args=args, outputs={"out": 1, "state": 2}, reference=prefix_sums)


_SOURCE, _AXES, _SIZE = "scan/scan.cu", ("N",), (1 << 15,)

KERNELS = (
    LibraryKernel("scan_hillis_steele", "doubling distances, two buffers", _SOURCE, "hillis_steele",
                  _AXES, _SIZE, lambda size, tile, rng: _launch(size, rng, 256)),
    LibraryKernel("scan_blelloch", "a tree up and down: fewer additions", _SOURCE, "blelloch",
                  _AXES, _SIZE, lambda size, tile, rng: _launch(size, rng, 128)),
    LibraryKernel("scan_look_back", "the whole array in one pass: blocks look back",
                  "scan/look_back.cu", "look_back", _AXES, _SIZE, _look_back),
)  # fmt: skip
