"""``python -m benchmarks.others > others.json``: times of kernels unlike the library's, on a GPU.

No constant of ``predict`` was adjusted on them; ``benchmarks.predictions`` holds predictions to
what was read (``tests/ground_truth/others.json``).
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import device
from kernels import Kernel

_MI = 1 << 20
Case = tuple[int | tuple[int, ...], int | tuple[int, ...], list[Any]]
"""Grid, block and arguments."""


def _floats(count: int) -> Any:
    return np.random.default_rng(0).random(count, dtype=np.float32)


def _integers(count: int, below: int, kind: Any = np.int32) -> Any:
    return np.random.default_rng(1).integers(0, below, count, dtype=kind)


def _zeros(count: int, kind: Any = np.float32) -> Any:
    return np.zeros(count, kind)


def _streams(blocks: int, kind: Any = np.float32) -> list[Any]:
    """An input and an output of 256 threads a block."""
    return [_floats(blocks * 256).astype(kind), _zeros(blocks * 256, kind)]


COMPUTE: dict[str, Callable[[], Case]] = {
    "one_warp": lambda: (1, 32, [_zeros(32), 20000]),
    "one_block": lambda: (1, 1024, [_zeros(1024), 200]),
    "poly64": lambda: (2048, 256, [*_streams(2048, np.float64), 512]),
    "transcendental": lambda: (16384, 256, _streams(16384)),
    "fast_math": lambda: (4096, 256, [*_streams(4096), 100]),
    "divergent": lambda: (1024, 256, [_integers(_MI // 4, 64), _zeros(_MI // 4)]),
    "tensor": lambda: (528, 256, [_integers(4096, 1 << 13), _zeros(528 * 256), 2000]),
    "divide": lambda: (2048, 256, [_integers(_MI // 2, 1 << 30), _zeros(_MI // 2, np.int32), 50]),
    "shuffles": lambda: (2112, 256, [*_streams(2112), 100]),
    "halves": lambda: (2112, 256, [*(_zeros(2112 * 256, np.int32) for _ in "12"), 500]),
    "nbody": lambda: (132, 128, [_floats(132 * 512), _zeros(132 * 512), 132 * 128]),
    "huge": lambda: (528, 1024, [_floats(528 * 1024), _zeros(528 * 1024), 100]),
    "registers": lambda: (528, 128, [_floats(528 * 128), _zeros(528 * 128), 100]),
    "batched": lambda: (65536, (16, 16), [*(_floats(16 * _MI) for _ in "12"), _zeros(16 * _MI)]),
    "scan_rows": lambda: (16384, 1024, [_floats(16 * _MI), _zeros(16 * _MI)]),
    "conv1d": lambda: (65536, 256, [_floats(16 * _MI), _zeros(16 * _MI), 16 * _MI]),
    "layernorm": lambda: (8192, 256, [_floats(8 * _MI), _zeros(8 * _MI), 1024]),
    "nbody64": lambda: (
        132, 128, [np.ones(132 * 512), _zeros(132 * 512, np.float64), 132 * 128],
    ),
    "hash": lambda: (4224, 256, [*(_integers(4224 * 256, 1 << 30, np.uint32) for _ in "12"), 200]),
    "mandel": lambda: ((64, 256), (32, 8), [_zeros(4 * _MI, np.int32), 2048, 200]),
}  # fmt: skip
MEMORY: dict[str, Callable[[], Case]] = {
    "contention": lambda: (1024, 256, [_zeros(64), 64, 8]),
    "cas_max": lambda: (4096, 256, [_zeros(16, np.uint64), _floats(_MI)]),
    "shared_hot": lambda: (
        1056, 256, [_integers(1056 * 256, _MI), _zeros(1056 * 64, np.int32), 100],
    ),
    "strided": lambda: (8192, 256, [_floats(66 * _MI), _zeros(2 * _MI), 2 * _MI, 33]),
    "gather_l2": lambda: (
        16384, 256, [_integers(4 * _MI, 4 * _MI), _floats(4 * _MI), _zeros(4 * _MI)],
    ),
    "resident": lambda: (1056, 256, [_floats(11 * _MI), _zeros(1056 * 256), 11 * _MI // 4, 20]),
    "pipelined": lambda: (2112, 256, [_floats(33 * _MI), _zeros(33 * _MI), 16]),
    "neighbours": lambda: (1024, 256, [*_streams(1024), 200]),
    "local_array": lambda: (1024, 128, [_integers(_MI // 8, 96), _zeros(_MI // 8), 200]),
    "many_chases": lambda: (
        528, 256,
        [np.random.default_rng(2).permutation(32 * _MI).astype(np.int32),
         _zeros(528 * 256, np.int32), 40],
    ),
    "bytes": lambda: (262144, 256, [*(_zeros(64 * _MI, np.uint8) for _ in "12"), 64 * _MI]),
    "few_blocks": lambda: (66, 256, [_floats(8 * _MI), _zeros(66 * 256), 8 * _MI]),
    "fill": lambda: (65536, 256, [_zeros(64 * _MI), 16 * _MI]),
    "triad": lambda: (
        65536, 512, [*(_floats(32 * _MI) for _ in "123"), _zeros(32 * _MI), 32 * _MI],
    ),
    "stencil3d": lambda: ((8, 64, 256), (32, 4), [_floats(16 * _MI), _zeros(16 * _MI), 256]),
    "strided_sum": lambda: (1056, 256, [_floats(64 * _MI), _zeros(1056), 16 * _MI]),
    "histo": lambda: (
        1056, 256, [_integers(16 * _MI, 1 << 32, np.uint32), _zeros(256, np.uint32), 16 * _MI],
    ),
    "transpose_double": lambda: (
        (128, 128), (32, 8), [np.ones(16 * _MI), _zeros(16 * _MI, np.float64), 4096],
    ),
    "gather_rows": lambda: (
        32768, (32, 8), [_floats(32 * _MI), _integers(_MI // 4, _MI // 2), _zeros(16 * _MI)],
    ),
    "scatter_add": lambda: (16384, 256, [_integers(4 * _MI, _MI), _zeros(_MI)]),
}  # fmt: skip
MORE: dict[str, Callable[[], Case]] = {
    "tiny": lambda: (1, 64, [_floats(64), _zeros(64)]),
    "scan_one_block": lambda: (
        1, 1024, [_integers(_MI // 4, 9), _zeros(_MI // 4, np.int32), _MI // 4],
    ),
    "gemv": lambda: (1024, 256, [_floats(32 * _MI), _floats(4096), _zeros(8192), 4096]),
    "column_sums": lambda: (16, 256, [_floats(4 * _MI), _zeros(4096), 1024, 4096]),
    "box_filter": lambda: ((64, 256), (32, 8), [_floats(4 * _MI), _zeros(4 * _MI), 2048]),
    "softmax_wide": lambda: (2048, 256, [_floats(16 * _MI), _zeros(16 * _MI), 8192]),
    "binary_search": lambda: (
        4096, 256,
        [np.arange(4 * _MI, dtype=np.int32) * 3, _integers(_MI, 12 * _MI), _zeros(_MI, np.int32),
         4 * _MI],
    ),
    "hash_insert": lambda: (
        2048, 256, [_integers(_MI // 2, 1 << 30, np.uint32) + 1, _zeros(_MI, np.uint32), _MI - 1],
    ),
    "sum64": lambda: (528, 256, [np.ones(8 * _MI), _zeros(1, np.float64), 8 * _MI]),
    "monte_carlo": lambda: (1056, 256, [_zeros(1, np.uint64), 1000]),
    "sort_blocks": lambda: (1024, 256, [_integers(_MI, 1 << 30), _zeros(_MI, np.int32)]),
    "half_axpy": lambda: (1056, 256, [*(_zeros(16 * _MI, np.uint32) for _ in "12"), 16 * _MI]),
    "wmma_product": lambda: (
        (64, 16), 128, [*(_zeros(_MI, np.float16) for _ in "12"), _zeros(_MI), 1024],
    ),
    "early_out": lambda: (
        4096, 256, [_integers(4096, 4) // 2, _floats(_MI), _zeros(_MI), 500],
    ),
    "lists": lambda: (
        264, 32, [np.random.default_rng(2).permutation(8 * _MI).astype(np.int32),
                  _zeros(264, np.int32), 200],
    ),
    "small_frames": lambda: (
        1056, 256, [_integers(270336, 1 << 30), _zeros(270336, np.int32), 200],
    ),
    "conflicts": lambda: (1056, 256, [_zeros(270336), 200]),
    "heat_steps": lambda: (1056, (32, 8), [_floats(1056 * 34 * 34), _zeros(1056 * 1024), 50]),
    "cluster_sum": lambda: (8192, 256, [_floats(2 * _MI), _zeros(1024)]),
    "nearest": lambda: (
        8192, 256, [_floats(4 * _MI), _floats(128), _zeros(2 * _MI, np.int32), 2 * _MI],
    ),
    "swap_pairs": lambda: (8192, 256, [*(_zeros(16 * _MI, np.uint8) for _ in "12"), 16 * _MI]),
}  # fmt: skip
CASES = COMPUTE | MEMORY | MORE


def kernel(name: str) -> Kernel:
    """The kernel of a case."""
    lot = "compute" if name in COMPUTE else "memory" if name in MEMORY else "more"
    return Kernel.from_cuda(Path(__file__).with_name(f"others_{lot}.cu"), name)


def main() -> None:
    """Time all, and print JSON: milliseconds by case."""
    found: dict[str, float] = {}
    try:
        for name, make in CASES.items():
            timing = device.time_launches(kernel(name), *make(), launches=11, warmup=3)
            found[name] = float(np.median(timing.times_ms))
    except device.DeviceError as error:
        sys.exit(f"error: {error}")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
