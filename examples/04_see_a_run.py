"""Draw four runs as pages: who reads what, step by step, a race, bank conflicts.

    python examples/04_see_a_run.py [folder]

Each page is one HTML file that opens from disk. `tilescope view` does the same from a command
line; in a notebook, `run.show()` draws a page inline.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import simulator
from kernels import Kernel, library
from simulator.fixes import find_fixes
from tilescope.view import show

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tilescope-"))
folder.mkdir(parents=True, exist_ok=True)


def launch(name: str, size: str, tile: int, kernel: Kernel | None = None) -> simulator.Run:
    """A library kernel with every step recorded, one warp running at a time."""
    entry = library.get(name)
    ready = entry.launch(entry.parse_size(size), tile)
    return simulator.launch(
        kernel or entry.kernel(tile), ready.grid, ready.block, ready.args,
        schedule="warps", trace=True,
    )  # fmt: skip


def tell(name: str, story: str, *runs: simulator.Run) -> None:
    """Write a page and say what to look at."""
    path = show(*runs).save(folder / f"{name}.html")
    print(f"{path}\n    {story}")


# 1. Who reads what: tiling turns 64 reads of each element into 4.
naive, tiled = launch("matmul_naive", "64", 16), launch("matmul_tiled", "64", 16)
tell("1-reads", "pick an element of C, and see what its thread read", naive, tiled)

# 2. Step by step, small enough to follow with a pencil: 6x6 matrices, tiles of 2.
A = np.arange(36, dtype=np.float32).reshape(6, 6)
B = np.ones((6, 6), np.float32)
C = np.zeros((6, 6), np.float32)
kernel = Kernel.from_cuda(library.get("matmul_tiled").path, "tiled<2>")
small = simulator.launch(kernel, (3, 3), (2, 2), [A, B, C, 6, 6, 6], trace=True)
assert np.array_equal(C, A @ B)
tell("2-steps", "press 2, then the right arrow", small)

# 3. A race: without its first barrier a warp uses tiles that others have yet to write.
racy = launch("matmul_missing_first_barrier", "32", 16)
faulty = library.get("matmul_missing_first_barrier").kernel(16)
find_fixes(faulty, racy, lambda fixed: launch("matmul_missing_first_barrier", "32", 16, fixed))
assert racy.hazards
tell("3-race", "press 'Go to the moment'", racy)

# 4. Bank conflicts: a transposed tile, and the same with a column of padding.
stacked, padded = launch("matmul_transposed", "64", 32), launch("matmul_padded", "64", 32)
assert stacked.counters.bank_conflicts > padded.counters.bank_conflicts == 0
tell("4-banks", "press 4, and choose a shared load of line 21", stacked, padded)
