"""``python -m benchmarks.counters``: the simulator's counters beside Nsight Compute's.

Runs library kernels as ``tilescope counters`` does, twice each under ncu, and prints a
Markdown table: how many counters equal the GPU's at level 0 of the driver's compiler, which
do not, and what its default level changes.
"""

import json
import subprocess
import sys
from pathlib import Path

import device
from benchmarks.machine import command_line, provenance, table
from kernels import library
from simulator import SimulatorError
from tilescope.check.outcome import execute
from tilescope.cli.errors import UserError
from tilescope.cli.request import Request
from tilescope.cli.target import resolve
from tilescope.commands.counters import command_words
from tilescope.gpu.ncu import Figure, figures, find_ncu, measure
from tilescope.text.hardware import explanations

_SIZES = {1: "4096", 2: "256x192", 3: "70x52x92"}
"""By the number of axes; ragged, and with N and K as 128-bit loads need them."""


def family(name: str) -> list[str]:
    """The correct kernels of a family, by the first part of their names; all for ``all``."""
    return [
        entry for entry in library.names()
        if (name == "all" or entry.partition("_")[0] == name)
        and not entry.startswith("faulty") and not library.get(entry).twin
    ]  # fmt: skip


def size_of(name: str) -> str:
    """A size that the kernel takes."""
    entry = library.get(name)
    wanted = _SIZES[len(entry.axes)]
    try:
        entry.launch(entry.parse_size(wanted))
    except ValueError:
        return "64"
    return wanted


def compared(name: str, size: str) -> list[Figure]:
    """A kernel's counters, three times.

    Raises:
        UserError: ncu failed.
    """
    request = Request(name, size=size)
    run = execute(resolve(request), "lockstep", "none", quiet=True).run
    words = command_words(request)
    return figures(run.counters, measure(words, 0), measure(words, None))


def main() -> int:
    """Measure, and print the table."""
    parser = command_line("counters", __doc__)
    parser.add_argument("--family", default="matmul", help="first part of the names, or all")
    parser.add_argument("--out", default="", help="folder for all figures, as JSON")
    options = parser.parse_args()
    there, why = device.available()
    if not there:
        print(f"error: benchmarks.counters needs a GPU: {why}", file=sys.stderr)
        return 2
    try:
        ncu = find_ncu()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    version = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False)
    last = (version.stdout.strip().splitlines() or ["unknown version"])[-1]
    print("\n\n".join(provenance()) + f"\n\nncu {last}\n", flush=True)
    rows, all_figures, wrong = [], {}, 0
    for name in family(options.family):
        size = size_of(name)
        try:
            found = compared(name, size)
        except (UserError, SimulatorError) as error:
            rows.append([name, size, "not measured", str(error)])
            wrong += 1
            continue
        all_figures[f"{name} {size}"] = [figure.__dict__ for figure in found]
        equal = sum(figure.equal for figure in found)
        varying = sum(figure.varies for figure in found)
        unsettled = f", {varying} vary" if varying else ""
        wrong += any(figure.verdict == "NOT" for figure in found)
        rows.append(
            [name, size, f"{equal} of {len(found)}{unsettled}", "; ".join(explanations(found))]
        )
    print("\n".join(table(["kernel", "size", "equal at level 0", "notes"], rows, right=4)))
    if options.out:
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "counters.json").write_text(json.dumps(all_figures, indent=2) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
