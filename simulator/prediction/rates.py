"""Rates of GPU parts, each with its unit and source.

Lanes, clocks and bandwidths of data sheets are in ``gpus/table.py``. The rates here were measured
by ``benchmarks/gpu.py``, or fitted on launches of the library (``ADJUSTED``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from ..gpus.table import GPUS, Gpu, find


@dataclass(frozen=True)
class Rates:
    """Constants of a GPU; cycles are the multiprocessor's.

    Attributes:
        clock: Cycles a second while it computes.
        launch_us: From event to event around a kernel that does nothing.
        block_start: Cycles from a block's end to its successor's first instruction.
        blocks_per_cycle: Blocks that the whole GPU begins in a cycle.
        dram_apart: Bytes a second of DRAM where 64 are read here and there;
            ``dram_written_apart``: where 128 are written.
        dram_bytes: A second, of reads alone or writes alone; ``dram_mixed``: of both, where a
            quarter or more goes the other way.
        l2_bytes: A second, to and from all multiprocessors.
        l2_written: A second, that stores hand to L2, sectors counted whole.
        l2_requests: A second: lines that stores go to; ``l2_read_requests``: that loads do.
        sm_l2_bytes: A cycle, between one multiprocessor and L2.
        l1_latency, l2_latency, dram_latency: Cycles of a load that is served there.
        atomic_latency: Cycles of a global atomic that returns.
        atomic_same: Passes of atomics a second in 512 bytes (``AtomicWatch`` says what passes are).
        atomic_float: Floating-point ones a second to one word.
        atomic_passes: A second, in all of L2.
        shared_atomic: Cycles of a multiprocessor that a pass of atomics of shared memory takes, of
            lanes that go to different words; ``shared_atomic_float``: of floating-point ones.
        shared_latency, shuffle_latency: Cycles until a result is there, and so on.
        read_operands: Cycles until a store's registers may be written again.
        cluster_request: Cycles of a multiprocessor that a warp's access to shared memory of
            another block takes.
        tensor_rate: Instructions of tensor cores a cycle and multiprocessor.
        measured: Whether a GPU of this kind was.
        barrier: Cycles of a block barrier where all are there, and ``barrier_warp`` for each warp
            of the block; as many of a multiprocessor does each warp's arrival take.
        joint: Exponent of how parts that are busy at once delay each other: 1 is one after the
            other, infinity not at all.
        overlap: The same of waiting and working.
        l1_fill: Cycles of L1 that a line from L2 takes.
    """

    clock: float
    dram_bytes: float
    dram_mixed: float
    dram_apart: float
    dram_written_apart: float
    l2_bytes: float
    l2_written: float
    l2_requests: float
    l2_read_requests: float
    atomic_passes: float
    launch_us: float = 6.6
    block_start: float = 395.0
    blocks_per_cycle: float = 0.85
    sm_l2_bytes: float = 64.0
    l1_latency: float = 43.0
    l2_latency: float = 270.0
    dram_latency: float = 660.0
    atomic_latency: float = 278.0
    atomic_same: float = 1.6e9
    atomic_float: float = 0.57e9
    shared_atomic: float = 0.6
    shared_atomic_float: float = 13.2
    shared_latency: float = 29.0
    shuffle_latency: float = 25.0
    sfu_latency: float = 24.0
    fp64_latency: float = 16.0
    tensor_latency: float = 33.0
    alu_latency: float = 12.0
    constant_latency: float = 30.0
    special_latency: float = 25.0
    read_operands: float = 12.0
    barrier: float = 13.0
    barrier_warp: float = 1.75
    cluster_request: float = 19.6
    tensor_rate: float = 0.61
    joint: float = 2.8
    overlap: float = 3.0
    l1_fill: float = 0.2
    measured: bool = False


_MEASURED = {
    "h200": {
        "clock": 1.98e9, "launch_us": 6.6, "dram_bytes": 4.6e12, "dram_mixed": 4.1e12,
        "dram_apart": 2.9e12, "dram_written_apart": 3.6e12, "l2_bytes": 8.8e12,
        "l2_written": 5.7e12, "l2_requests": 1.12e11,
        "l2_read_requests": 1.28e11, "atomic_passes": 1.19e11,
    },
    "h100": {
        "clock": 1.98e9, "launch_us": 8.2, "dram_bytes": 3.2e12, "dram_mixed": 2.9e12,
        "dram_apart": 2.0e12, "dram_written_apart": 2.5e12, "l2_bytes": 8.0e12,
        "l2_written": 5.2e12, "l2_requests": 1.0e11,
        "l2_read_requests": 1.13e11, "atomic_passes": 0.99e11,
    },
}  # fmt: skip
"""By GPU: what ``python -m benchmarks.gpu`` found on one."""
_REFERENCE = "h200"
ADJUSTED = (
    "launch_us", "l2_requests", "l2_latency", "atomic_same",
    "joint", "overlap", "l1_fill",
)  # fmt: skip
"""What was adjusted on launches after the microbenchmarks; with them ``block_timeline.ALONE`` and
``levels.SPREAD``."""


def rates(gpu: Gpu) -> Rates:
    """Return the constants of a GPU.

    One that was never measured has the data sheet's clock and bandwidth, and of what no data sheet
    says the reference's, by multiprocessors and clock.
    """
    if gpu.key in _MEASURED:
        return _table(_MEASURED[gpu.key], True)
    known = GPUS[_REFERENCE]
    base = _MEASURED[_REFERENCE]
    share = gpu.sms * gpu.clock / (known.sms * known.clock)
    scaled = {
        name: base[name] * share
        for name in ("l2_bytes", "l2_written", "l2_requests", "l2_read_requests", "atomic_passes")
    }
    wide = gpu.bandwidth / known.bandwidth
    scaled |= {
        name: base[name] * wide
        for name in (
            "dram_bytes",
            "dram_mixed",
            "dram_apart",
            "dram_written_apart",
        )
    }
    return _table({"clock": gpu.clock} | scaled, False)


def _table(known: Mapping[str, float], measured: bool) -> Rates:
    figures = {field.name: known[field.name] for field in fields(Rates) if field.name in known}
    return Rates(measured=measured, **figures)


@dataclass(frozen=True)
class Measured:
    """Measurements of a GPU: its name in the table, and its constants."""

    gpu: str
    rates: Rates


def read_measured(text: str) -> Measured:
    """Read what ``python -m benchmarks.gpu`` writes.

    Raises:
        ValueError: It is not one; says why.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or not isinstance(content.get("rates"), dict):
        raise ValueError("not what python -m benchmarks.gpu writes: no table of rates")
    gpu, found = str(content.get("gpu", "")), content["rates"]
    known = {field.name for field in fields(Rates)} - {"measured"}
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"no constant is called {name!r}")
        if not isinstance(value, int | float) or not value > 0:
            raise ValueError(f"{name} is not a positive number")
    figures = {name: float(value) for name, value in found.items()}
    return Measured(gpu, replace(rates(find(gpu)), measured=True, **figures))
