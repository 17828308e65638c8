"""``python -m benchmarks.predictions > docs/predicted.md``: predictions beside an H200's readings.

Runs ``simulator.predict`` for every launch of ``tests/ground_truth/time_h200.json``; some minutes,
and no GPU. Launches whose SHA-256 of the case begins with an even byte are those on which constants
were adjusted.
"""

import hashlib
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import simulator
from benchmarks.adjusted import GPU, Kept, keep, left_out
from benchmarks.machine import table
from kernels import library
from simulator import Prediction
from simulator.prediction.rates import ADJUSTED, rates

READINGS = Path(__file__).parents[1] / "tests" / "ground_truth" / "time_h200.json"
_THROUGHPUTS = {"l1tex__throughput": "l1", "lts__throughput": "l2", "dram__throughput": "dram",
                "smsp__issue_active": "issue"}  # fmt: skip
_LEAST = 60.0
"""Percent of its peak from which on a part of the GPU is the limit; below, waiting is."""
FAMILIES: dict[str, Callable[[str], bool]] = {
    name: lambda case, name=name: case.startswith(name)  # type: ignore[misc]
    for name in ("matmul", "transpose", "reduction", "scan", "histogram", "stencil", "softmax")
}
_L1 = ("l1", "shared")
_WAITING = ("latency", "launch", "atomics")


def predicted(case: str, **options: Any) -> Prediction:
    """The prediction of a case, ``name:size[:tTILE]``."""
    name, size, *tile = case.split(":")
    entry, number = library.get(name), int(tile[0][1:]) if tile else None
    launch = entry.launch(entry.parse_size(size), number, np.random.default_rng(0))
    return simulator.predict(
        entry.kernel(number), launch.grid, launch.block, launch.args,
        shared_bytes=launch.shared_bytes, **options,
    )  # fmt: skip


def tuned(case: str) -> bool:
    """Whether constants were adjusted on this launch."""
    return hashlib.sha256(case.encode()).digest()[0] % 2 == 0


def metric(reading: dict[str, Any], start: str) -> float:
    """A reading of Nsight Compute by the beginning of its name."""
    return next(float(v) for k, v in reading["ncu"].items() if k.startswith(start))


def right_limiter(reading: dict[str, Any], limiter: str) -> bool:
    """Whether the part named is within 5 points of the busiest; or none is busy, and it waits."""
    busy = {name: metric(reading, start) for start, name in _THROUGHPUTS.items()}
    highest = max(busy.values())
    named = "l1" if limiter in _L1 else limiter
    if named in _WAITING:
        return highest < _LEAST
    return busy.get(named, busy["issue"]) >= highest - 5


def main() -> None:
    """Print the page."""
    readings = json.loads(READINGS.read_text())
    words = sys.argv[1:]
    if words:
        readings = [r for r in readings if any(word in r["case"] for word in words)]
    found = [(reading, predicted(reading["case"])) for reading in readings]
    print("# Predicted\n")
    print(
        "What `tilescope predict` says of 57 launches of the library on an H200, beside what was\n"
        "measured there (`tests/ground_truth/README.md`).\n"
        "Made by `python -m benchmarks.predictions`. Constants were adjusted on the half\n"
        "marked *; these are "
        f"{', '.join(f'`{name}`' for name in ADJUSTED)}\n"
        "(`simulator/prediction/rates.py` says what each is).\n"
    )
    print(
        "\n".join(
            table(["launches", "median error", "nine in ten within", "largest"], _summary(found))
        )
    )
    print()
    print("\n".join(table(["", "right", "of"], _others(found))))
    print()
    if not words:
        _print_left_out(readings)
    head = [
        "launch", "us", "predicted", "limited by", "ncu: L1 L2 DRAM issue %", "DRAM read MB",
        "predicted", "written MB", "predicted", "L1 hit %", "predicted",
    ]  # fmt: skip
    print("\n".join(table(head, [_row(*pair) for pair in found])))


def _kept(reading: dict[str, Any]) -> Kept:
    name, size, *tile = reading["case"].split(":")
    entry, number = library.get(name), int(tile[0][1:]) if tile else None
    launch = entry.launch(entry.parse_size(size), number, np.random.default_rng(0))
    return keep(reading["case"], float(reading["ms"]), entry.kernel(number), launch)


def _print_left_out(readings: Sequence[dict[str, Any]]) -> None:
    """Each family foretold by constants that were adjusted without it."""
    print(
        "Each family, foretold by constants that were adjusted without it on the half marked *,\n"
        "from what `benchmarks.gpu` measured on (`benchmarks/adjusted.py`; `l2_usable` stays),\n"
        "and which of them came out more than a quarter from those in use.\n"
    )
    launches = [_kept(reading) for reading in readings]
    rows = []
    for name, (known, errors) in left_out(launches, FAMILIES, tuned).items():
        usual = rates(GPU)
        moved = [
            f"`{one}`"
            for one in ADJUSTED
            if not 0.8 < getattr(known, one) / getattr(usual, one) < 1.25
        ]
        rows.append([f"{name} ({len(errors)})", *_cells(errors), ", ".join(moved) or "none"])
    head = ["left out", "median error", "nine in ten within", "largest", "moved"]
    print("\n".join(table(head, rows)))
    print()


def _error(reading: dict[str, Any], prediction: Prediction) -> float:
    return abs(prediction.time_ms / float(reading["ms"]) - 1)


Pair = tuple[dict[str, Any], Prediction]


def _summary(found: Sequence[Pair]) -> list[list[str]]:
    halves: dict[str, Callable[[dict[str, Any]], bool]] = {
        "all": lambda r: True,
        "adjusted on": lambda r: tuned(r["case"]),
        "held back": lambda r: not tuned(r["case"]),
    }
    halves |= {
        name: lambda r, member=member: member(r["case"])  # type: ignore[misc]
        for name, member in FAMILIES.items()
    }
    rows = []
    for name, chosen in halves.items():
        errors = [_error(*pair) for pair in found if chosen(pair[0])]
        if errors:
            rows.append([f"{name} ({len(errors)})", *_cells(errors)])
    return rows


def _cells(errors: Sequence[float]) -> list[str]:
    """Median, what nine in ten are within, and the largest."""
    ordered = sorted(errors)
    ninth = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    return [f"{100 * cell:.0f} %" for cell in (statistics.median(ordered), ninth, ordered[-1])]


def _others(found: Sequence[Pair]) -> list[list[str]]:
    """Order of pairs of one size, limiters, DRAM bytes and hit rates."""
    pairs = right = 0
    for number, (one, first) in enumerate(found):
        for other, second in found[:number]:
            family = one["case"].split("_")[0] == other["case"].split("_")[0]
            same = one["case"].split(":")[1] == other["case"].split(":")[1]
            slower = max(one["ms"], other["ms"]) > 1.15 * min(one["ms"], other["ms"])
            if family and same and slower:
                pairs += 1
                right += (one["ms"] < other["ms"]) == (first.time_ms < second.time_ms)
    limits = sum(right_limiter(r, p.limiter) for r, p in found)
    moved = [
        abs(said / metric(r, name) - 1) <= 0.1
        for r, p in found
        for name, said in (
            ("dram__bytes_read", p.dram_read_bytes), ("dram__bytes_write", p.dram_write_bytes),
        )
        if metric(r, name) > 1e7
    ]  # fmt: skip
    hits = [
        abs((p.l1_hit_rate or 0.0) - _hits(r)) <= 0.05
        for r, p in found
        if p.l1_hit_rate is not None
    ]
    return [
        ["pairs of one size in order, where they differ by 15 %", str(right), str(pairs)],
        ["limiters", str(limits), str(len(found))],
        ["DRAM bytes within 10 %, where over 10 MB", str(sum(moved)), str(len(moved))],
        ["L1 hit rates within 5 points", str(sum(hits)), str(len(hits))],
    ]


def _hits(reading: dict[str, Any]) -> float:
    start = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
    return metric(reading, f"{start}_lookup_hit") / max(1.0, metric(reading, f"{start}.sum"))


def _row(reading: dict[str, Any], p: Prediction) -> list[str]:
    busy = " ".join(f"{metric(reading, start):.0f}" for start in _THROUGHPUTS)
    return [
        f"{reading['case']}{' *' if tuned(reading['case']) else ''}",
        f"{1e3 * reading['ms']:.1f}", f"{1e3 * p.time_ms:.1f}", p.limiter, busy,
        f"{metric(reading, 'dram__bytes_read') / 1e6:.1f}", f"{p.dram_read_bytes / 1e6:.1f}",
        f"{metric(reading, 'dram__bytes_write') / 1e6:.1f}", f"{p.dram_write_bytes / 1e6:.1f}",
        f"{100 * _hits(reading):.0f}", f"{100 * (p.l1_hit_rate or 0):.0f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
