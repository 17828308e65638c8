"""How often each byte occurs, by atomics in global memory, in a copy a block or a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..catalog import Expected, Launch, LibraryKernel, Size

_WIDTH = 256


def counts(args: Sequence[Any]) -> Mapping[str, Expected]:
    """Return the exact reference: the counts, added to the bins' initial contents."""
    found = np.bincount(args[0], minlength=256).astype(np.float64)
    return {"bins": Expected(args[1] + found, np.float64(0))}


def _launch(size: Size, rng: np.random.Generator, elements: int, cluster: int = 1) -> Launch:
    """Return a launch on bytes, some of them frequent; a thread takes ``elements`` of them.

    ``cluster``: blocks of a cluster.
    """
    (n,) = size
    values = np.clip(rng.normal(100, 20, n), 0, 255).astype(np.uint8)
    args = [values, np.zeros(256, np.uint32), n]
    blocks = -(-n // (_WIDTH * elements * cluster)) * cluster
    return Launch((blocks,), (_WIDTH,), args, {"bins": 1}, counts)


_SOURCE, _AXES, _SIZE = "histogram/histogram.cu", ("N",), (1 << 16,)

KERNELS = (
    LibraryKernel("histogram_global", "atomics in global memory", _SOURCE, "global_atomics", _AXES,
                  _SIZE, lambda size, tile, rng: _launch(size, rng, 1)),
    LibraryKernel("histogram_shared", "a copy a block in shared memory", _SOURCE, "privatised",
                  _AXES, _SIZE, lambda size, tile, rng: _launch(size, rng, 8)),
    LibraryKernel("histogram_cluster", "a copy a cluster, spread over its blocks' shared memory",
                  "histogram/distributed.cu", "distributed", _AXES, _SIZE,
                  lambda size, tile, rng: _launch(size, rng, 8, 4)),
)  # fmt: skip
