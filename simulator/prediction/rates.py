"""How fast the parts of a GPU are: one table, with each figure's unit and where it comes from.

Lanes, clocks and bandwidths of a data sheet stand in ``gpus/table.py``. What stands here was
measured by ``benchmarks/gpu.py``, or adjusted on launches of the library (``ADJUSTED``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ..gpus.table import GPUS, Gpu


@dataclass(frozen=True)
class Rates:
    """Constants of a GPU; cycles are the multiprocessor's.

    Attributes:
        clock: Cycles a second while it computes.
        launch_us: From event to event around a kernel that does nothing.
        block_start: Cycles from a block's end to its successor's first instruction.
        blocks_per_cycle: Blocks that the whole GPU begins in a cycle.
        dram_bytes: A second, reads and writes together.
        l2_bytes: A second, to and from all multiprocessors.
        l2_requests: A second: lines of requests.
        sm_l2_bytes: A cycle, between one multiprocessor and L2.
        l2_usable: Share of L2 that holds what is used again.
        l1_latency, l2_latency, dram_latency: Cycles of a load that is served there.
        atomic_latency: Cycles of a global atomic that returns.
        atomic_same: Requests a second that atomics make to one KiB.
        atomic_float: The same of floating-point ones.
        atomic_requests: A second, to L2 altogether.
        shared_latency, shuffle_latency: Cycles until a result is there, and so on.
        read_operands: Cycles until a store's registers may be written again.
        tensor_rate: Instructions of tensor cores a cycle and multiprocessor.
        measured: Whether a GPU of this kind was.
        barrier: Cycles of a block barrier where all are there.
        joint: Exponent of how parts that are busy at once delay each other: 1 is one after the
            other, infinity not at all.
        overlap: The same of waiting and working.
    """

    clock: float
    dram_bytes: float
    l2_bytes: float
    l2_requests: float
    atomic_requests: float
    launch_us: float = 6.0
    block_start: float = 200.0
    blocks_per_cycle: float = 1.0
    sm_l2_bytes: float = 64.0
    l2_usable: float = 0.83
    l1_latency: float = 38.0
    l2_latency: float = 270.0
    dram_latency: float = 900.0
    atomic_latency: float = 600.0
    atomic_same: float = 1.3e9
    atomic_float: float = 0.57e9
    shared_latency: float = 29.0
    shuffle_latency: float = 25.0
    sfu_latency: float = 24.0
    fp64_latency: float = 16.0
    tensor_latency: float = 33.0
    alu_latency: float = 12.0
    constant_latency: float = 30.0
    special_latency: float = 25.0
    read_operands: float = 12.0
    barrier: float = 20.0
    tensor_rate: float = 0.5
    joint: float = 8.0
    overlap: float = 5.0
    measured: bool = False


_MEASURED = {
    "h200": {
        "clock": 1.98e9, "dram_bytes": 4.07e12, "l2_bytes": 5.5e12, "l2_requests": 7.0e10,
        "atomic_requests": 6.0e10,
    },
}  # fmt: skip
"""By GPU: what ``python -m benchmarks.gpu`` found on one."""
_REFERENCE = "h200"


def rates(gpu: Gpu) -> Rates:
    """The constants of a GPU.

    One that was never measured has the data sheet's clock and bandwidth, and of what no data sheet
    says the reference's, by multiprocessors and clock.
    """
    if gpu.key in _MEASURED:
        return _table(_MEASURED[gpu.key], True)
    known = GPUS[_REFERENCE]
    base = _MEASURED[_REFERENCE]
    share = gpu.sms * gpu.clock / (known.sms * known.clock)
    scaled = {name: base[name] * share for name in ("l2_bytes", "l2_requests", "atomic_requests")}
    dram = base["dram_bytes"] * gpu.bandwidth / known.bandwidth
    return _table({"clock": gpu.clock, "dram_bytes": dram} | scaled, False)


def _table(known: Mapping[str, float], measured: bool) -> Rates:
    figures = {field.name: known[field.name] for field in fields(Rates) if field.name in known}
    return Rates(measured=measured, **figures)
