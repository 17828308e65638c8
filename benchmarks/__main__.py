"""Inner-product steps a second of the simulator, the floor, and peers; one run, one core."""

import argparse
import contextlib
import os
import platform

with contextlib.suppress(AttributeError, OSError):  # one core, where the system lets us choose
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np

import simulator
from benchmarks import floor, peers
from kernels import library
from kernels.nvrtc import nvrtc_version

_KERNELS = {"naive": "matmul_naive", "tiled": "matmul_tiled"}


def steps_per_second(name: str, size: int, checks: str, repeat: int) -> tuple[float, int]:
    """The fastest of some runs, and the bytes of memory the process has taken at most."""
    entry = library.get(name)
    kernel = entry.kernel()
    best = float("inf")
    for _ in range(repeat):
        launch = entry.launch((size, size, size))
        run = simulator.launch(kernel, launch.grid, launch.block, launch.args, checks=checks)
        best = min(best, run.seconds)
    return size**3 / best, _peak_bytes()


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if platform.system() == "Darwin" else 1024
    )


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", default="128,256,512", help="M = N = K, comma-separated")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each; the fastest counts")
    parser.add_argument("--peers", action="store_true", help="also Oclgrind and Numba's simulator")
    options = parser.parse_args()
    print(f"{_processor()}, one core; {platform.system()}, Python {platform.python_version()}, "
          f"NumPy {np.__version__}, NVRTC {nvrtc_version()}")  # fmt: skip
    print("million inner-product steps a second (a step: two loads and one exact fma)\n")
    print(f"{'kernel':<7}{'size':>6}{'all checks':>12}{'no checks':>11}{'ratio':>7}"
          f"{'NumPy floor':>13}{'of floor':>10}{'peak memory':>13}")  # fmt: skip
    fastest = 0.0
    for size in (int(text) for text in options.sizes.split(",")):
        base = max(floor.steps_per_second(size) for _ in range(options.repeat))
        for label, name in _KERNELS.items():
            checked, peak = steps_per_second(name, size, "all", options.repeat)
            bare, _ = steps_per_second(name, size, "none", options.repeat)
            fastest = max(fastest, checked) if label == "naive" else fastest
            print(f"{label:<7}{size:>6}{checked / 1e6:>12.0f}{bare / 1e6:>11.0f}"
                  f"{bare / checked:>7.2f}{base / 1e6:>13.0f}{checked / base:>10.0%}"
                  f"{peak / 2**20:>9.0f} MiB")  # fmt: skip
    if options.peers:
        print("\nthe naive product elsewhere, in this run:")
        for label, measure in (
            ("Numba's CUDA simulator", peers.numba_steps),
            ("Oclgrind", peers.oclgrind_steps),
        ):
            rate, why = measure()
            if rate:
                times = f"tilescope is {fastest / rate:,.0f} times that"
                print(f"  {label}: {rate / 1e6:.3f} million; {times}")
            else:
                print(f"  {label}: not measured ({why})")


if __name__ == "__main__":
    main()
