"""What NumPy itself sets: the same exact fused multiply-adds and row gathers, nothing else."""

import time

import numpy as np

from simulator.execute.batches import LANES
from simulator.isa.numerics.arithmetic import fma_f32


def steps_per_second(size: int, tile: int = 16) -> float:
    """Inner-product steps a second of a bare loop over one batch's arrays.

    The product that is stood in for has M = N = K = ``size``; ``tile``: threads along a side of the
    block.
    """
    threads = tile * tile
    blocks = min((size // tile) ** 2, LANES // threads)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((2 * threads, blocks), dtype=np.float32)
    y, x = np.divmod(np.arange(threads), tile)
    rows = [(y * tile + k, threads + k * tile + x) for k in range(tile)]
    total = np.zeros((threads, blocks), np.float32)
    batches = (size // tile) ** 2 / blocks
    rounds = max(1, int(size / tile * batches / 8))
    began = time.perf_counter()
    with np.errstate(all="ignore"):
        for _ in range(rounds):
            for a, b in rows:
                total = fma_f32(
                    shared.take(a, axis=0, mode="clip"), shared.take(b, axis=0, mode="clip"), total
                )
    return rounds * tile * threads * blocks / (time.perf_counter() - began)
