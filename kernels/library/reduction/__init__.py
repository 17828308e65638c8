"""Sums of float32: by a tree in shared memory, by shuffles, and with atomics at the end."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_WIDTH = 256


def block_sums(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return each block's sum in float64; any order of float32 additions is within the bound."""
    values = np.asarray(args[0], np.float64)
    blocks = -(-len(values) // _WIDTH)
    rows = np.zeros(blocks * _WIDTH)
    rows[: len(values)] = values
    return {"sums": _sum(rows.reshape(blocks, _WIDTH))}


def total(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return the sum of everything.

    An atomic addition in global memory takes subnormal operands for zero and gives none
    (PTX ISA, ``atom``): each block's may lose three numbers below the smallest normal one.
    """
    rows = np.asarray(args[0], np.float64)[None]
    exact = _sum(rows)
    flushed = 3 * -(-rows.size // _WIDTH) * float(np.finfo(np.float32).smallest_normal)
    return {"sum": Expected(exact.value, exact.bound + flushed)}


def _sum(rows: Any) -> Expected:
    """Row sums; n - 1 roundings in any order err by less than n*u times the magnitudes."""
    gamma = rows.shape[1] * 2.0**-24 / (1 - rows.shape[1] * 2.0**-24)
    with np.errstate(invalid="ignore", over="ignore"):
        return Expected(rows.sum(axis=1), gamma * np.abs(rows).sum(axis=1))


def _launch(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    (n,) = size
    blocks = -(-n // _WIDTH)
    args = [rng.standard_normal(n, dtype=np.float32), np.zeros(blocks, np.float32), n]
    return Launch((blocks,), (_WIDTH,), args, {"sums": 1}, block_sums)


def _atomic(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    launch = _launch(size, tile, rng)
    args = [launch.args[0], np.zeros(1, np.float32), *size]
    return Launch(launch.grid, launch.block, args, {"sum": 1}, total)


_SOURCE, _AXES, _SIZE = "reduction/reduction.cu", ("N",), (1 << 16,)

KERNELS = (
    LibraryKernel("reduction_shared", "a tree in shared memory, a sum a block", _SOURCE,
                  "shared_tree", _AXES, _SIZE, _launch),
    LibraryKernel("reduction_shuffle", "warps by shuffles, a sum a block", _SOURCE, "shuffle",
                  _AXES, _SIZE, _launch),
    LibraryKernel("reduction_atomic", "the same, blocks added up by atomics", _SOURCE, "atomics",
                  _AXES, _SIZE, _atomic),
)  # fmt: skip
