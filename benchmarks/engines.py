"""Both engines side by side, with all checks and counters, in one run.

`numpy` and `native` are warm launches; `first` is the first native one of a process, with an empty
folder of machine code; `auto` a warm launch as users get it. The last rows are of many lanes, where
NumPy takes native forms. The results, counters and hazards of all are compared. Seconds are CPU
time, on one core. ``--threads``: native launches of many blocks on one core and on two, with
the CPU time of the longest way through the threads, which is the wall clock's where cores are free.
"""

import functools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import simulator
from benchmarks.machine import command_line, packages, processor, table
from kernels import Kernel, library
from simulator.native import block_ranges

SOURCE = Path(__file__).with_name("engines.cu")
SETTLED = 0.7
"""Seconds of launches after which a program's code is optimised, or it has native forms."""


@dataclass(frozen=True)
class Case:
    """A launch; ``make`` gives fresh arguments."""

    name: str
    kernel: Kernel
    grid: Any
    block: Any
    make: Callable[[], Sequence[Any]]
    shared_bytes: int = 0


def _csr(rows: int, each: int) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    counts = random.integers(0, 2 * each, rows)
    starts = np.append(0, np.cumsum(counts)).astype(np.int32)
    return starts, random.integers(0, rows, starts[-1]).astype(np.int32)


def _few_arguments(threads: int) -> list[Any]:
    return [np.arange(threads, dtype=np.float32), 2000]


def cases() -> list[Case]:
    """The kernels of ``engines.cu``."""
    source = SOURCE.read_text()
    random = np.random.default_rng(1)

    def kernel(name: str) -> Kernel:
        return Kernel.from_cuda(source, name)

    starts, edges = _csr(4096, 6)
    level = np.where(random.random(4096) < 0.3, 2, -1).astype(np.int32)
    values = random.standard_normal(len(edges)).astype(np.float32)
    x = random.standard_normal(4096).astype(np.float32)
    keys = random.integers(1, 1 << 31, 1500).astype(np.uint32)
    numbers = random.integers(0, 1 << 20, 4096).astype(np.int32)

    def few(threads: int) -> Case:
        name = f"few, {threads} thread{'s' * (threads > 1)}"
        make = functools.partial(_few_arguments, threads)
        return Case(name, kernel("few"), 1, threads, make)

    return [
        few(1), few(32), few(1024),
        Case("mandelbrot 160x90", kernel("mandelbrot"), 57, 256,
             lambda: [np.zeros(160 * 90, np.int32), 160, 90, 500]),
        Case("bfs level, 4,096 vertices", kernel("bfs_level"), 16, 256,
             lambda: [starts, edges, level, np.full(4096, -1, np.int32), 4096, 2]),
        Case("hash table, 32 threads", kernel("hash_insert"), 1, 32,
             lambda: [np.zeros(2048, np.uint32), keys, 1500, 2047]),
        Case("8 queens, 64 threads", kernel("queens"), 1, 64,
             lambda: [np.zeros(1, np.int32), 8]),
        Case("spmv, 4,096 rows", kernel("spmv"), 16, 256,
             lambda: [starts, edges, values, x, np.zeros(4096, np.float32), 4096]),
        Case("bitonic sort, 1,024", kernel("bitonic"), 1, 1024, lambda: [numbers[:1024].copy()]),
        Case("insertion sort, 32 x 64", kernel("insertion"), 1, 32,
             lambda: [numbers[:2048].copy(), 64]),
        Case("append, 4,096", kernel("append"), 16, 256,
             lambda: [numbers, np.zeros(4096, np.int32), np.zeros(1, np.int32), 200]),
        Case("sums of floats, 4,096", kernel("float_sums"), 16, 256,
             lambda: [x, np.zeros(32, np.float32), 200]),
        Case("collatz, 4,096", kernel("collatz"), 16, 256,
             lambda: [np.zeros(4096, np.uint32), 4096]),
    ]  # fmt: skip


def many_lanes() -> list[Case]:
    """The library's products of two 256 x 256 matrices, most with a thread for each element."""
    names = [name for name in library.names() if name.startswith("matmul")]
    entries = [library.get(name) for name in names]
    return [_of_library(entry, (256, 256, 256)) for entry in entries if not entry.racy]


def _of_library(entry: library.LibraryKernel, size: Any = None) -> Case:
    launch = entry.launch(size)
    make = lambda: [  # noqa: E731
        np.array(a, copy=True, subok=True) if isinstance(a, np.ndarray) else a for a in launch.args
    ]
    return Case(entry.name, entry.kernel(), launch.grid, launch.block, make, launch.shared_bytes)


def _timed(case: Case, engine: str, repeat: int) -> tuple[float, float, Any, list[Any]]:
    """Seconds of the first launch, of the fastest later one, its run, and its arguments."""
    seconds = list[float]()
    while len(seconds) <= repeat or sum(seconds) < SETTLED:
        args = list(case.make())
        began = time.process_time()
        run = simulator.launch(
            case.kernel, case.grid, case.block, args, case.shared_bytes, engine=engine
        )
        seconds.append(time.process_time() - began)
    return seconds[0], min(seconds[1:]), run, args


def _result(run: Any, args: Sequence[Any]) -> list[Any]:
    results = run.to_dict()
    del results["seconds"]
    return [results, [a.tobytes() for a in args if isinstance(a, np.ndarray)]]


def row(case: Case, repeat: int) -> tuple[list[str], tuple[float, float, float]]:
    """A line of the table, and the seconds in it."""
    _, one, numpy_run, numpy_args = _timed(case, "numpy", repeat)
    first, other, native_run, native_args = _timed(case, "native", repeat)
    _, auto, auto_run, auto_args = _timed(case, "auto", repeat)
    wanted = _result(numpy_run, numpy_args)
    same = wanted == _result(native_run, native_args) == _result(auto_run, auto_args)
    taken = native_run.engine == "native"
    cells = [
        case.name, f"{one * 1e3:.1f}", f"{other * 1e3:.2f}" if taken else "-",
        f"{first * 1e3:.0f}" if taken else "-", f"{one / other:.1f}x" if taken else "-",
        f"{auto * 1e3:.1f} ({auto_run.engine})", "yes" if same else "NO",
        "" if taken else native_run.engine_note,
    ]  # fmt: skip
    return cells, (one, other if taken else one, auto)


def _threads(repeat: int) -> None:
    """Print what threads gain."""
    random, source = np.random.default_rng(1), SOURCE.read_text()
    starts, edges = _csr(1 << 16, 12)
    values, x = (random.standard_normal(n).astype(np.float32) for n in (len(edges), 1 << 16))
    many = [
        Case("mandelbrot 1920x1080", Kernel.from_cuda(source, "mandelbrot"), 8100, 256,
             lambda: [np.zeros(1920 * 1080, np.int32), 1920, 1080, 1000]),
        Case("spmv, 65,536 rows", Kernel.from_cuda(source, "spmv"), 256, 256,
             lambda: [starts, edges, values, x, np.zeros(1 << 16, np.float32), 1 << 16]),
        Case("collatz, 262,144", Kernel.from_cuda(source, "collatz"), 1024, 256,
             lambda: [np.zeros(1 << 18, np.uint32), 1 << 18]),
    ]  # fmt: skip
    guarded, busy = block_ranges.BlockRange.run_guarded, list[float]()

    def timed(one: Any) -> None:
        guarded(one)
        busy.append(time.thread_time())

    setattr(block_ranges.BlockRange, "run_guarded", timed)  # noqa: B010
    rows, cores = [], sorted(os.sched_getaffinity(0))
    for case in many:
        cells, results = [case.name], []
        for count in (1, 2):
            os.sched_setaffinity(0, cores[:count])
            best = [float("inf")] * 3
            for number in range(repeat + 1):
                busy.clear()
                began, used, mine = time.perf_counter(), time.process_time(), time.thread_time()
                args = list(case.make())
                run = simulator.launch(case.kernel, case.grid, case.block, args, engine="native")
                figures = (
                    time.perf_counter() - began, time.process_time() - used,
                    time.thread_time() - mine + max(busy, default=0.0),
                )  # fmt: skip
                best = [min(pair) for pair in zip(best, figures, strict=True)] if number else best
            results.append(_result(run, args))
            cells += [f"{seconds * 1e3:.0f}" for seconds in best]
        rows.append([*cells, "yes" if results[0] == results[1] else "NO", run.engine])
    each = [f"{what} ms, {count}" for count in (1, 2) for what in ("wall", "CPU", "longest")]
    print(*table(["launch", *each, "equal", "engine"], rows), sep="\n")
    print(f"\n{processor()}, {packages('numpy', 'llvmlite')}")


def main() -> None:
    """Print the table."""
    parser = command_line("engines", __doc__)
    parser.add_argument("--library", action="store_true", help="the whole library, too")
    parser.add_argument("--repeat", type=int, default=2, help="warm launches; the fastest counts")
    parser.add_argument("--threads", action="store_true", help="one core and two instead")
    options = parser.parse_args()
    if options.threads:
        _threads(options.repeat)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TILESCOPE_CACHE"] = folder
        every = [_of_library(library.get(name)) for name in library.names()]
        chosen = [*cases(), *many_lanes(), *(every if options.library else [])]
        found = [(case, *row(case, options.repeat)) for case in chosen]
    head = ["launch", "numpy ms", "native ms", "first ms", "ratio", "auto ms", "equal", "why not"]
    print(*table(head, [cells for _, cells, _ in found]), sep="\n")
    sums = [sum(seconds[i] for _, _, seconds in found) for i in range(3)]
    print(f"\nsums: numpy {sums[0]:.2f} s, native or numpy {sums[1]:.2f} s, auto {sums[2]:.2f} s")
    print(f"{processor()}, {packages('numpy', 'llvmlite')}")


if __name__ == "__main__":
    main()
