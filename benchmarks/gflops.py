"""``python -m benchmarks.gflops``: matrix products on the GPU, beside the vendor's own.

Prints a Markdown table. GFLOP/s are of the 2 M N K useful operations of a product, at the
median of many launches, each timed by itself between two events.
"""

import argparse
import gc
import sys

import numpy as np

import device
from benchmarks.machine import command_line, provenance, table
from device.timing import LAUNCHES
from kernels import library
from tilescope.cli.target import Target
from tilescope.gpu.timing import Row, vendor_row, work

KERNELS = (
    "matmul_naive", "matmul_tiled", "matmul_double_buffered", "matmul_vectorised",
    "matmul_register_tiled:64", "matmul_register_tiled:128",
)  # fmt: skip
_BUDGET_MS = 4000.0
"""Milliseconds of launches to spend on a row: slow kernels get fewer launches."""


def target_of(name: str, size: int) -> Target:
    """A library kernel's launch; ``NAME:TILE`` picks the tile."""
    plain, _, tile = name.partition(":")
    entry = library.get(plain)
    chosen = entry.check_tile(int(tile) if tile else None)
    launch = entry.launch((size, size, size), chosen, np.random.default_rng(0))
    kernel = entry.kernel(chosen)
    return Target(
        name, kernel, launch.grid, launch.block, launch.args, launch.shared_bytes, entry,
        (size, size, size), chosen,
    )  # fmt: skip


def timed(target: Target, index: int, launches: int) -> Row:
    """One kernel; the number of launches follows from a first short look."""
    where = (target.kernel, target.grid, target.block, target.args, target.shared_bytes, index)
    look = device.time_launches(*where, launches=3, warmup=1)
    count = max(5, min(launches, int(_BUDGET_MS / max(look.median_ms, 1e-3))))
    timing = device.time_launches(*where, launches=count)
    return Row(target, timing.times_ms, timing.restored, work(target), timing)


def cells(row: Row, size: int, vendor: Row | None) -> list[str]:
    """One line of the table."""
    if row.error:
        return [row.name, f"{size}³", "not timed", "-", "-", "-", "-"]
    low, high = row.quartiles_ms
    share = "-"
    if vendor is not None and vendor.gflops and row.gflops:
        share = f"{row.gflops / vendor.gflops:.1%}"
    registers = str(row.timing.output.registers) if row.timing else "-"
    return [
        row.name, f"{size}³", f"{row.median_ms:.4f}", f"{low:.4f} to {high:.4f}",
        f"{row.gflops or 0:,.0f}", share, registers,
    ]  # fmt: skip


def main() -> int:
    """Measure, and print the table."""
    parser = command_line("gflops", __doc__)
    parser.add_argument("--sizes", default="1024,4096", help="M = N = K, comma-separated")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="NAME or NAME:TILE, likewise")
    parser.add_argument("--launches", type=int, default=LAUNCHES, help="to time of each, at most")
    parser.add_argument("--device", type=int, default=0, help="which GPU")
    options = parser.parse_args()
    there, why = device.available(options.device)
    if not there:
        print(f"error: benchmarks.gflops needs a GPU: {why}", file=sys.stderr)
        return 2
    print("\n\n".join(provenance(options.device)) + "\n", flush=True)
    with device.context(options.device):
        measure(options)
    return 0


def measure(options: argparse.Namespace) -> None:
    """Time every kernel at every size, and print the table."""
    lines, notes = [], []
    for size in (int(text) for text in options.sizes.split(",")):
        names = options.kernels.split(",")
        vendor = vendor_row(target_of(names[0], size), options.device, options.launches)
        if vendor.error:
            notes.append(f"{vendor.name} at {size}³: {vendor.error}")
        for name in names:
            row = timed(target_of(name, size), options.device, options.launches)
            lines.append(cells(row, size, vendor))
        lines.append(cells(vendor, size, vendor))
        gc.collect()
    head = ["kernel", "size", "median ms", "middle half ms", "GFLOP/s", "of cuBLAS", "registers"]
    print("\n".join(table(head, lines, right=2)))
    print(
        "\nGFLOP/s: 2 M N K operations over the median. cuBLAS: of FP32 without TF32; of FP16 with "
        "FP32 sums and an FP16 result."
    )
    for note in notes:
        print(note)


if __name__ == "__main__":
    sys.exit(main())
