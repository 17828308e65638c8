"""What GPUs said of launches, and predictions of the same ones.

``time_h200.json``: launches of the library, with Nsight Compute's counters; constants were adjusted
on the half of them whose case's SHA-256 begins with an even byte. ``more_times.json``: by GPU and
case, of the library and of ``benchmarks/others.py``, on which nothing was.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import others
from benchmarks.adjusted import Kept, keep
from kernels import Kernel, library
from simulator import Prediction
from simulator.caches.traffic import follow, observe
from simulator.execute.prepare import PreparedLaunch, prepare
from simulator.gpus.table import find
from simulator.prediction.model_input import case as case_of
from simulator.prediction.predict import prediction_of
from simulator.prediction.rates import rates

_FOLDER = Path(__file__).parents[1] / "tests" / "ground_truth"
_NCU = {
    "dram_read": "dram__bytes_read", "dram_write": "dram__bytes_write",
    "l1": "l1tex__throughput", "l2": "lts__throughput", "dram": "dram__throughput",
    "issue": "smsp__issue_active",
    "l1_loads": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit",
    "l2_reads": "lts__t_sectors_op_read.sum", "l2_hits": "lts__t_sectors_op_read_lookup_hit",
}  # fmt: skip
"""Our names of Nsight Compute's metrics, by how these begin."""
FAMILIES = ("matmul", "transpose", "reduction", "scan", "histogram", "stencil", "softmax")


_TOLD = ("neighbours", "tensor", "fill", "swap_pairs", "small_frames", "hash")
"""Kernels of ``benchmarks.others`` that constants were read off (``docs/predict.md``)."""


@dataclass(frozen=True)
class Reading:
    """A launch on a GPU.

    Attributes:
        case: ``name:size[:tTILE]`` of the library, or a name of ``benchmarks.others``.
        gpu: Its key; ``ms``: from event to event, warm.
        ncu: Counters of a cold launch by ``_NCU``'s names: bytes, percent of a peak, sectors.
        main: Whether it is one of the 57.
    """

    case: str
    gpu: str
    ms: float
    ncu: Mapping[str, float]
    main: bool

    @property
    def tuned(self) -> bool:
        """Whether constants were adjusted on it."""
        even = hashlib.sha256(self.case.encode()).digest()[0] % 2 == 0
        return (self.main and even) or self.case in _TOLD

    def hit_rate(self, level: str) -> float | None:
        """Of loads in ``l1``, of reads in ``l2``."""
        asked = self.ncu.get(f"{level}_{'loads' if level == 'l1' else 'reads'}", 0.0)
        return self.ncu[f"{level}_hits"] / asked if asked else None


@dataclass(frozen=True)
class Held:
    """A reading, what is predicted of it, and what that was worked out from.

    ``again``: whether some of what DRAM reads is said to have been in L2.
    """

    reading: Reading
    said: Prediction
    kept: Kept
    again: bool

    @property
    def error(self) -> float:
        """Of the time."""
        return off(self.said.time_ms, self.reading.ms)


def off(said: float, read: float) -> float:
    """By how much the larger of two is more than the smaller, as a share of that."""
    return max(said, read) / min(said, read) - 1 if min(said, read) > 0 else math.inf


def readings() -> list[Reading]:
    """All of them, those of one case together."""
    found = []
    for row in json.loads((_FOLDER / "time_h200.json").read_text()):
        ncu = {
            ours: next(float(v) for k, v in row["ncu"].items() if k.startswith(theirs))
            for ours, theirs in _NCU.items()
        }
        found.append(Reading(row["case"], "h200", float(row["ms"]), ncu, True))
    for gpu, cases in json.loads((_FOLDER / "more_times.json").read_text()).items():
        for case, row in cases.items():
            ncu = {name: float(value) for name, value in row.items() if name != "ms"}
            found.append(Reading(case, gpu, float(row["ms"]), ncu, False))
    cases = {reading.case: number for number, reading in reversed(list(enumerate(found)))}
    return sorted(found, key=lambda reading: cases[reading.case])


def held(some: Sequence[Reading]) -> Iterator[Held]:
    """Predictions of readings; a case is run once, and its traffic followed for each GPU."""
    last, launch, seen = "", None, None
    for reading in some:
        chip = find(reading.gpu)
        known = rates(chip)
        if launch is None or seen is None or reading.case != last:
            last, launch = reading.case, ready(reading.case)
            seen = observe(launch, chip)
        elif seen.gpu != chip:  # which differ in L2 and DRAM
            seen = follow(dataclasses.replace(seen, gpu=chip))
        it = case_of(launch, seen, known, "")
        kept = keep(reading.case, reading.ms, it)
        yield Held(reading, prediction_of(it, "", advised=False), kept, seen.reads_again)


def ready(case: str) -> PreparedLaunch:
    """The launch of a case."""
    kernel: Kernel
    if case in others.CASES:
        kernel, shared = others.kernel(case), 0
        grid, block, args = others.CASES[case]()
    else:
        name, size, *tile = case.split(":")
        entry, number = library.get(name), int(tile[0][1:]) if tile else None
        made = entry.launch(entry.parse_size(size), number, np.random.default_rng(0))
        kernel, shared = entry.kernel(number), made.shared_bytes
        grid, block, args = made.grid, made.block, made.args
    return prepare(kernel, grid, block, args, shared, "lockstep", 50_000_000, False)
