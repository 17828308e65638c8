"""What is measured: the matmul family by size, a kernel of every family, and irregular kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Kernel, library

_IRREGULAR = Path(__file__).parent / "irregular.cu"


@dataclass(frozen=True)
class Shape:
    """Grid, block, arguments, dynamic shared memory; ``work``: units of what is counted."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[Any]
    shared_bytes: int
    work: int


@dataclass(frozen=True)
class Case:
    """A kernel at a size; ``kernel`` takes the build, ``unit`` is of its work."""

    name: str
    kernel: Callable[[str], Kernel]
    shape: Callable[[], Shape]
    unit: str


def _from_library(name: str, size: tuple[int, ...]) -> Case:
    entry = library.get(name)
    unit = "step" if name.startswith("matmul") else "element"

    def shape() -> Shape:
        launch = entry.launch(size)
        work = int(np.prod(size))
        return Shape(launch.grid, launch.block, launch.args, launch.shared_bytes, work)

    label = f"{name} {'x'.join(str(n) for n in dict.fromkeys(size))}"
    return Case(label, lambda build: entry.kernel(build=build), shape, unit)


def _own(name: str, label: str, unit: str, shape: Callable[[], Shape]) -> Case:
    return Case(label, lambda build: Kernel.from_cuda(_IRREGULAR, name, build=build), shape, unit)


def _saxpy(n: int) -> Shape:
    x = np.ones(n, np.float32)
    return Shape((n // 256,), (256,), [2.0, x, x.copy()], 0, n)


def _in_place(n: int) -> Shape:
    a = np.ones((n, n), np.float32)
    return Shape((n // 16, n // 16), (16, 16), [a, a.copy(), np.zeros_like(a), n], 0, n**3)


def _bfs(n: int) -> Shape:
    """The third level of a graph whose nodes have 1 to 64 neighbours, most of them few."""
    rng = np.random.default_rng(0)
    degree = (64 * rng.random(n) ** 4 + 1).astype(np.int32)
    begin = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    edges = rng.integers(0, n, int(begin[-1])).astype(np.int32)
    level = np.where(rng.random(n) < 0.3, np.int32(2), np.int32(-1)).astype(np.int32)
    visited = int(degree[level == 2].sum())
    return Shape((n // 256,), (256,), [begin, edges, level, np.zeros_like(level), 2], 0, visited)


def _mandelbrot(n: int) -> Shape:
    rounds = np.zeros((n, n), np.int32)
    return Shape((n // 16, n // 16), (16, 16), [rounds, n, 256], 0, n * n)


def _bodies(n: int) -> Shape:
    bodies = np.random.default_rng(0).random((n, 4), np.float32)
    return Shape((n // 128,), (128,), [bodies, np.zeros_like(bodies), n], 0, n * n)


def _count(n: int) -> Shape:
    return Shape((n // 256,), (256,), [np.zeros(1, np.uint32)], 0, n)


def _sort_own(n: int) -> Shape:
    data = np.random.default_rng(0).integers(0, 1000, n * 16).astype(np.int32)
    return Shape((n // 128,), (128,), [data], 0, n * 16)


SIZES = (64, 128, 256, 512, 1024)
_FAMILIES = {
    "attention": (128, 128), "convolution": (512, 512), "histogram_global": (1 << 22,),
    "histogram_shared": (1 << 22,), "layer_norm": (512, 1024), "reduction_shared": (1 << 22,),
    "reduction_shuffle": (1 << 22,), "scan_blelloch": (1 << 20,), "scan_look_back": (1 << 18,),
    "softmax_rows": (512, 1024), "sort_bitonic": (1 << 18,), "spmv_thread": (4096, 4096),
    "spmv_warp": (4096, 4096), "stencil_line": (1 << 20,), "stencil_five_point": (1024, 1024),
    "transpose_naive": (4096, 4096), "transpose_tiled": (4096, 4096),
}  # fmt: skip
CASES = [
    *(_from_library("matmul_tiled", (n, n, n)) for n in SIZES),
    *(_from_library("matmul_naive", (n, n, n)) for n in (128, 512)),
    _from_library("matmul_register_tiled", (256, 256, 256)),
    _from_library("matmul_tensor", (256, 256, 256)),
    *(_from_library(name, size) for name, size in _FAMILIES.items()),
    _own("saxpy", "saxpy 2^22", "element", lambda: _saxpy(1 << 22)),
    _own("saxpy", "saxpy 2^24", "element", lambda: _saxpy(1 << 24)),
    _own("matmul_in_place", "c[i] += a * b 256", "step", lambda: _in_place(256)),
    _own("bfs_level", "BFS level 2^18", "edge", lambda: _bfs(1 << 18)),
    _own("mandelbrot", "Mandelbrot 512", "pixel", lambda: _mandelbrot(512)),
    _own("n_body", "n-body 4096", "pair", lambda: _bodies(4096)),
    _own("count_up", "one counter 2^20", "add", lambda: _count(1 << 20)),
    _own("sort_own", "local arrays 2^14", "element", lambda: _sort_own(1 << 14)),
]
