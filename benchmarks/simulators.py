"""Simulators of GPU kernels on CPUs in one table: PoCL, Oclgrind, Numba's simulator, both engines.

Each runs the same kernels (``simulators.cu``, ``simulators.cl``, and Python for Numba) on the same
arguments, in a process of its own where it is not tilescope. Figures are milliseconds of CPU time
of a warm launch, all threads together, the fastest of some. *Bare* is without checks and counters.
*Checked* is with all that a tool has: tilescope's checks and counters, Oclgrind's ``--data-races
--uninitialized``. PoCL and Numba check nothing; Oclgrind always looks at bounds. Results are
compared with the NumPy engine's.
*Given up*: native code does not take the launch, and NumPy runs it.
"""

import functools
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import command_line, packages, processor, table

SOURCE = Path(__file__).with_name("simulators.cu")
SECONDS = 300
"""Of a tool for all kernels."""
ABSENT = "not installed"


@dataclass(frozen=True)
class Workload:
    """A kernel's launch; ``output``: which argument is compared."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: Sequence[Any]
    output: int
    is_set: bool = False

    def fresh(self) -> list[Any]:
        """Arguments whose arrays are copies."""
        return [a.copy() if isinstance(a, np.ndarray) else a for a in self.args]


def workloads() -> list[Workload]:
    """The launches."""
    random = np.random.default_rng(1)
    keys = random.integers(1, 1 << 31, 256).astype(np.uint32)
    a, b = (random.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    sums = random.standard_normal(4096).astype(np.float32)
    return [
        Workload("few", (1,), (32,), [np.arange(32, dtype=np.float32), 500], 0),
        Workload("mandelbrot", (8,), (256,), [np.zeros(2048, np.int32), 64, 32, 200], 0),
        Workload("hash", (1,), (32,), [np.zeros(512, np.uint32), keys, 256, 511], 0, True),
        Workload("matmul", (2, 2), (16, 16), [a, b, np.zeros_like(a), 32], 2),
        Workload("reduction", (16,), (256,), [sums, np.zeros(16, np.float32)], 1),
    ]


Measured = dict[str, tuple[float, Any]]
"""By kernel: seconds, and the output."""


def fastest(launch: Callable[[list[Any]], None], work: Workload, repeat: int) -> tuple[float, Any]:
    """Return the seconds of the fastest warm launch, and its output."""
    best = float("inf")
    for number in range(repeat + 1):
        args = work.fresh()
        began = time.process_time()
        launch(args)
        if number:
            best = min(best, time.process_time() - began)
    return best, args[work.output]


# -- in other processes --------------------------------------------------------------------


def measure_opencl(repeat: int) -> Measured:
    """OpenCL's first device, whatever it is."""
    import pyopencl as cl

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue, flags = cl.CommandQueue(context), cl.mem_flags
    program = cl.Program(context, SOURCE.with_suffix(".cl").read_text()).build()
    found: Measured = {}
    for work in workloads():
        kernel = getattr(program, work.name)
        size = tuple(g * b for g, b in zip(work.grid, work.block, strict=True))
        best = float("inf")
        for number in range(repeat + 1):
            args = work.fresh()
            buffers = [
                cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=a)
                if isinstance(a, np.ndarray) else np.int32(a) for a in args
            ]  # fmt: skip
            queue.finish()
            began = time.process_time()
            kernel(queue, size, work.block, *buffers)
            queue.finish()
            if number:
                best = min(best, time.process_time() - began)
        cl.enqueue_copy(queue, args[work.output], buffers[work.output])
        queue.finish()
        found[work.name] = best, args[work.output]
    return found


def measure_numba(repeat: int) -> Measured:
    """Numba's CUDA simulator."""
    from benchmarks import numba_kernels

    def launch(work: Workload, args: list[Any]) -> None:
        numba_kernels.kernel(work.name)[work.grid, work.block](*args)

    return {
        work.name: fastest(functools.partial(launch, work), work, repeat) for work in workloads()
    }


CHILDREN = {"opencl": measure_opencl, "numba": measure_numba}


def measured_in_child(
    what: str, repeat: int, before: Sequence[str], package: str, **extra: str
) -> Measured | str:
    """Measure in a process; return why not if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "measured")
        command = [*before, sys.executable, "-m", "benchmarks.simulators", "--repeat", str(repeat),
                   "--child", what, str(out)]  # fmt: skip
        try:
            done = subprocess.run(
                command, env=os.environ | extra, capture_output=True, text=True, timeout=SECONDS,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no end in {SECONDS} s"
        if done.returncode == 0:
            found: Measured = pickle.loads(out.read_bytes())
            return found
    if f"No module named '{package}'" in done.stderr or "PLATFORM_NOT_FOUND" in done.stderr:
        return ABSENT
    return (done.stderr.strip().splitlines() or ["no output"])[-1]


# -- in this process -----------------------------------------------------------------------


def measure_engine(engine: str, is_checked: bool, repeat: int) -> Measured | str:
    """One of tilescope's engines."""
    import simulator
    from kernels import Kernel
    from kernels.errors import LaunchError

    checks, counters = ("all", "all") if is_checked else ("none", "none")
    found: Measured = {}
    engines = dict[str, str]()
    for work in workloads():
        kernel = Kernel.from_cuda(SOURCE.read_text(), work.name)

        def launch(args: list[Any], kernel: Any = kernel, work: Workload = work) -> None:
            run = simulator.launch(
                kernel, work.grid, work.block, args, engine=engine, checks=checks,
                counters=counters,
            )  # fmt: skip
            engines[work.name] = run.engine

        try:
            found[work.name] = fastest(launch, work, repeat)
        except LaunchError as error:
            return ABSENT if "not installed" in str(error) else str(error)
        if engines[work.name] != engine:
            found.pop(work.name)
    return found


def agrees(work: Workload, one: Any, other: Any) -> bool:
    """Whether two outputs are the same but for rounding, in at least 98 of 100 elements."""
    if work.is_set:
        one, other = np.sort(one), np.sort(other)
    return bool(np.isclose(one, other, 1e-4, 1e-4).mean() >= 0.98)


def rows(repeat: int) -> list[list[str]]:
    """The table's rows: a tool each."""
    opencl = functools.partial(measured_in_child, "opencl", repeat, package="pyopencl")
    grind, racing = ["oclgrind"], ["oclgrind", "--data-races", "--uninitialized"]
    has_grind = shutil.which("oclgrind") is not None
    found: dict[str, Measured | str] = {
        "tilescope, NumPy, bare": measure_engine("numpy", False, repeat),
        "tilescope, NumPy, checked": measure_engine("numpy", True, repeat),
        "tilescope, native, bare": measure_engine("native", False, repeat),
        "tilescope, native, checked": measure_engine("native", True, repeat),
        "PoCL, bare": opencl(before=[]),
        "Oclgrind, bare": opencl(before=grind) if has_grind else ABSENT,
        "Oclgrind, checked": opencl(before=racing) if has_grind else ABSENT,
        "Numba's simulator, bare": measured_in_child(
            "numba", 1, [], "numba", NUMBA_ENABLE_CUDASIM="1"
        ),
    }
    reference = found["tilescope, NumPy, bare"]
    assert not isinstance(reference, str)
    made = []
    for name, measured in found.items():
        if isinstance(measured, str):
            made.append([name, *[measured] * len(workloads())])
            continue
        cells = []
        for work in workloads():
            if work.name not in measured:
                cells.append("given up")
                continue
            seconds, output = measured[work.name]
            right = agrees(work, output, reference[work.name][1])
            cells.append(f"{seconds * 1e3:.3g}" if right else "wrong result")
        made.append([name, *cells])
    return made


def main() -> None:
    """Print the table."""
    parser = command_line("simulators", __doc__)
    parser.add_argument("--repeat", type=int, default=3, help="warm launches; the fastest counts")
    parser.add_argument("--child", nargs=2, help="measure one tool; where to write it")
    options = parser.parse_args()
    if options.child:
        what, path = options.child
        Path(path).write_bytes(pickle.dumps(CHILDREN[what](options.repeat)))
        return
    head = ["CPU milliseconds", *(f"{w.name} ({np.prod(w.grid) * np.prod(w.block)} threads)"
                              for w in workloads())]  # fmt: skip
    print(*table(head, rows(options.repeat)), sep="\n")
    used = packages("numpy", "llvmlite", "pyopencl", "pocl-binary-distribution", "numba")
    print(f"\n{processor()}, {used}")


if __name__ == "__main__":
    main()
