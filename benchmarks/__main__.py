"""What a launch costs on one core: the first in a fresh process, later ones, and memory.

With all checks and counters, with neither, and with each alone; of the build that a GPU runs and of
the unoptimised one. `floor` is NumPy doing the same multiply-adds and gathers and nothing else, in
the same run. Seconds are the CPU's: NVRTC's are not among them, the simulator's own compilation is.
"""

import argparse
import fnmatch
import json
import platform

from benchmarks.measure import WAYS, Figures, figures, one_core, peak_bytes

one_core()

import numpy as np  # noqa: E402 - one core is chosen before NumPy starts threads

from benchmarks import floor, machine, peers  # noqa: E402
from benchmarks.cases import CASES, SIZES, Case  # noqa: E402
from kernels.compiler.nvrtc import nvrtc_version  # noqa: E402

_MATMUL = "matmul_tiled "
_HEAD = (
    f"{'kernel':<30}{'first':>8}{'bare':>8}{'ratio':>7}{'warm':>9}{'counted':>9}{'checked':>9}"
    f"{'bare':>9}{'Munits/s':>10}{'of floor':>10}{'memory':>11}{'arrays':>9}"
)


def _row(case: Case, found: dict[str, Figures], base: float) -> str:
    full, bare = found["all"], found["bare"]
    rate = full.work / full.warm
    share = f"{rate / base:>10.0%}" if base else f"{'-':>10}"
    return (
        f"{case.name:<30}{full.first:>8.3f}{bare.first:>8.3f}{full.first / bare.first:>7.1f}"
        f"{full.warm:>9.3f}{found['counted'].warm:>9.3f}{found['checked'].warm:>9.3f}"
        f"{bare.warm:>9.3f}{rate / 1e6:>10.2f}{share}"
        f"{full.peak / 2**20:>7.0f} MiB{full.arrays / 2**20:>5.0f} MiB"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--only", default="*", help="cases by name, as in 'matmul_tiled*'")
    parser.add_argument("--builds", default="device,source", help="which of them")
    parser.add_argument("--repeat", type=int, default=3, help="later launches; the fastest counts")
    parser.add_argument("--fresh", type=int, default=1, help="processes; the fastest first counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures as well")
    parser.add_argument("--peers", action="store_true", help="also what else runs a matmul on CPUs")
    options = parser.parse_args()
    print(
        f"{machine.cpu_name()}, one core; {platform.system()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, NVRTC {nvrtc_version()}"
    )
    print("seconds; first and warm: all checks and counters; Munits/s: steps, elements, edges, "
          "pairs ... of a warm launch\n")  # fmt: skip
    floors = {f"{_MATMUL}{n}": max(floor.steps_per_second(n) for _ in range(3)) for n in SIZES}
    base = f"{peak_bytes() / 2**20:.0f} MiB are Python, NumPy and the simulator"
    told, fastest = [], 0.0
    for build in options.builds.split(","):
        print(f"{build} build; of the memory {base}\n{_HEAD}")
        for case in CASES:
            if not fnmatch.fnmatch(case.name, options.only):
                continue
            try:
                found = {
                    way: figures(case.name, build, way, options.repeat, options.fresh)
                    for way in WAYS
                }
            except RuntimeError as failed:
                print(f"{case.name:<30}failed: {failed}")
                continue
            print(_row(case, found, floors.get(case.name, 0.0)), flush=True)
            if case.name.startswith("matmul"):
                fastest = max(fastest, found["all"].work / found["all"].warm)
            told.append(
                {"kernel": case.name, "build": build, "floor": floors.get(case.name),
                 "unit": case.unit} | {way: f.__dict__ for way, f in found.items()}
            )  # fmt: skip
        print()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
    if options.peers:
        _peers(fastest)


def _peers(fastest: float) -> None:
    """What others need for a product in this run; not all of them check anything."""
    print("the naive product elsewhere, in this run (steps a second):")
    for label, measure in peers.PEERS.items():
        rate, why = measure()
        if rate:
            times = f"; tilescope's fastest above is {fastest / rate:,.2f} times that" * bool(
                fastest
            )
            print(f"  {label}: {rate / 1e6:.3f} million{times}")
        else:
            print(f"  {label}: not measured ({why})")


if __name__ == "__main__":
    main()
