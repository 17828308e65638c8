"""Sorting int32 keys within blocks of 256."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_KEYS = 256


def sorted_blocks(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return each block sorted; exact."""
    keys = np.asarray(args[0], np.float64)
    blocks = np.full((-(-len(keys) // _KEYS), _KEYS), np.inf)
    blocks.reshape(-1)[: len(keys)] = keys
    return {"out": Expected(np.sort(blocks).reshape(-1)[: len(keys)], np.float64(0))}


def _launch(size: Size, tile: int, rng: np.random.Generator) -> Launch:
    (n,) = size
    args = [rng.integers(-1000, 1000, n, dtype=np.int32), np.zeros(n, np.int32), n]
    return Launch((-(-n // _KEYS),), (_KEYS // 2,), args, {"out": 1}, sorted_blocks)


KERNELS = (
    LibraryKernel("sort_bitonic", "blocks of 256 keys in shared memory", "sort/sort.cu",
                  "bitonic", ("N",), (1 << 14,), _launch),
)  # fmt: skip
