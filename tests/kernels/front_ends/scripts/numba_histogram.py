"""A histogram of numbers between two bounds; ``--faulty`` counts without an atomic."""

import sys

import numpy as np
from numba import cuda

FAULTY = "--faulty" in sys.argv


@cuda.jit(device=True)
def bin_of(value, bins, low, high):
    """The bin of a value; -1: none."""
    if value < low or value >= high:
        return np.int32(-1)
    return np.int32((value - low) * bins / (high - low))


@cuda.jit
def histogram(values, low, high, counts):
    """A loop over the grid."""
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        bin_number = bin_of(values[i], counts.shape[0], low, high)
        if bin_number >= 0:
            if FAULTY:
                counts[bin_number] += 1  # named
            else:
                cuda.atomic.add(counts, bin_number, 1)


numbers = np.random.default_rng(3).uniform(-5, 5, 900).astype(np.float32)
found = cuda.to_device(np.zeros(10, np.int32))
histogram[2, 64](cuda.to_device(numbers), np.float32(-4), np.float32(4), found)
if not FAULTY:
    expected = np.histogram(numbers, 10, (-4, 4))[0]
    assert abs(found.copy_to_host() - expected).max() <= 1
    assert found.copy_to_host().sum() == expected.sum()
