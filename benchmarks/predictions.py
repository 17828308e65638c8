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
from benchmarks.machine import table
from kernels import library
from simulator import Prediction
from simulator.prediction.rates import ADJUSTED

READINGS = Path(__file__).parents[1] / "tests" / "ground_truth" / "time_h200.json"
_THROUGHPUTS = {"l1tex__throughput": "l1", "lts__throughput": "l2", "dram__throughput": "dram",
                "smsp__issue_active": "issue"}  # fmt: skip
_LEAST = 60.0
"""Percent of its peak from which on a part of the GPU is the limit; below, waiting is."""
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
    head = [
        "launch", "us", "predicted", "limited by", "ncu: L1 L2 DRAM issue %", "DRAM read MB",
        "predicted", "written MB", "predicted", "L1 hit %", "predicted",
    ]  # fmt: skip
    print("\n".join(table(head, [_row(*pair) for pair in found])))


def _error(reading: dict[str, Any], prediction: Prediction) -> float:
    return abs(prediction.time_ms / float(reading["ms"]) - 1)


Pair = tuple[dict[str, Any], Prediction]


def _summary(found: Sequence[Pair]) -> list[list[str]]:
    halves: dict[str, Callable[[dict[str, Any]], bool]] = {
        "all": lambda r: True,
        "adjusted on": lambda r: tuned(r["case"]),
        "held back": lambda r: not tuned(r["case"]),
    }
    families = dict.fromkeys(reading["case"].split("_")[0] for reading, _ in found)
    for family in families:
        halves[family] = lambda r, family=family: r["case"].startswith(family)  # type: ignore[misc]
    rows = []
    for name, chosen in halves.items():
        errors = sorted(_error(*pair) for pair in found if chosen(pair[0]))
        if errors:
            ninth = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
            cells = (statistics.median(errors), ninth, errors[-1])
            rows.append([f"{name} ({len(errors)})", *(f"{100 * cell:.0f} %" for cell in cells)])
    return rows


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
