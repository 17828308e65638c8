"""Time of a launch from the demands on each part of the GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..gpus.table import Gpu
from .critical_path import Chain
from .rates import Rates
from .work import Work

_ACCESSES = frozenset(
    f"{what}_{where}" for what in ("load", "store", "atomic") for where in ("shared", "global")
)
_PIPES = ("issue", "fp32", "fp64", "int", "sfu", "tensor")
_MULTIPLY = ("fma", "imad", "alu_imad", "half")


@dataclass(frozen=True)
class Shape:
    """A grid on a GPU.

    Attributes:
        blocks: Blocks of the grid.
        warps: Warps of a block.
        resident: Blocks resident on a multiprocessor.
    """

    blocks: int
    warps: int
    resident: int


def demands(
    work: Work, memory: tuple[float, float], row_misses: tuple[float, float], gpu: Gpu,
    rates: Rates, sms: int, blocks: int,
) -> dict[str, float]:  # fmt: skip
    """Return the cycles that a block needs of each part of a multiprocessor.

    Args:
        work: Work of a block.
        memory: Bytes of the launch that DRAM reads and writes.
        row_misses: Shares of these bytes, read and written, that miss the open DRAM row.
        gpu: The GPU.
        rates: Constants of the GPU.
        sms: Active multiprocessors, among which shared resources are divided.
        blocks: Blocks of the grid.
    """
    chip = gpu.architecture
    issued: Mapping[str, float] = work.issued
    single = chip.fp32_lanes / 32
    pipes = {
        "fp32": (("fma",), single),
        "fp64": (("fp64",), chip.fp64_lanes / 32),
        "int": (("alu",), 2.0),
        "int mul": (("imad", "alu_imad", "half"), 2.0),
        "sfu": (("sfu",), 0.5),
        "tensor": (("tensor",), rates.tensor_rate),
    }
    needs = {"issue": sum(issued.values()) / 4}
    for name, (which, rate) in pipes.items():
        needs[name] = sum(issued.get(pipe, 0.0) for pipe in which) / rate
    needs["fp32"] = max(needs["fp32"], sum(issued.get(p, 0.0) for p in _MULTIPLY) / 4)
    if needs["fp32"] <= needs["issue"] and single >= 4:
        needs.pop("fp32")  # as wide as the issue slots: an issued warp does not wait
    needs["int"] = max(needs["int"], needs.pop("int mul"))
    needs["tensor"] = max(needs["tensor"], work.tensor / chip.tensor_flops)
    tags = data = shared = 0.0
    a_pass = rates.shared_atomic
    for one in work.sites:
        if one.space == "shared" and one.site.access == "atomic":
            if one.site.type.startswith("f"):
                a_pass = rates.shared_atomic_float
            shared += one.wavefronts * a_pass / (2 if one.site.operation == "cas" else 1)
        elif one.space == "shared":
            shared += one.wavefronts
        elif one.space == "cluster":
            shared += one.requests * rates.cluster_request
        else:
            tags += one.tags
            data += max(one.requests, one.bytes / 128)
    shared += work.issued.get("shuffle", 0.0)
    # An access with every lane off takes its turn as well.
    asked = sum(one.requests for one in work.sites)
    shared += max(0.0, sum(n for pipe, n in issued.items() if pipe in _ACCESSES) - asked)
    needs["shared"] = shared
    needs["l1"] = shared + work.spilled + max(tags, data) + rates.l1_fill * work.l2_reads
    per_second = sms * 1.0
    l2 = (work.l2_read + work.l2_write) * 32
    needs["l2"] = max(
        l2 / rates.l2_bytes * rates.clock * per_second,
        (
            work.l2_reads / rates.l2_read_requests
            + work.l2_writes / rates.l2_requests
            + work.l2_write * 32 / rates.l2_written
        )
        * rates.clock
        * per_second,
        l2 / rates.sm_l2_bytes,
    )
    needs["barriers"] = issued.get("barrier", 0.0) * rates.barrier_warp
    needs["dram"] = _dram(memory, row_misses, rates) / blocks * rates.clock * per_second
    needs["atomics"] = (
        rates.clock
        * per_second
        * max(
            work.atomic_passes * work.atomic_hottest / rates.atomic_same,
            work.atomic_word / rates.atomic_float,
            work.atomic_passes / rates.atomic_passes,
        )
    )
    return needs


def _dram(memory: tuple[float, float], row_misses: tuple[float, float], rates: Rates) -> float:
    """Return the seconds that DRAM needs.

    Read/write turnaround costs as much for a quarter of opposite traffic as for a half.
    ``row_misses``: shares of the bytes read and written that miss the open row.
    """
    fewer = min(memory) / sum(memory) if any(memory) else 0.0
    speed = rates.dram_bytes + (rates.dram_mixed - rates.dram_bytes) * min(1.0, 4 * fewer)
    slow = rates.dram_apart, rates.dram_written_apart
    slower = sum(
        moved * share * (1 / pace - 1 / rates.dram_bytes)
        for moved, share, pace in zip(memory, row_misses, slow, strict=True)
    )
    return sum(memory) / speed + slower


def block_time(
    needs: Mapping[str, float], chain: Chain, shape: Shape, together: int, barriers: bool,
    rates: Rates,
) -> float:  # fmt: skip
    """Return the cycles of a multiprocessor for each block, with ``together`` resident blocks.

    Executing blocks compete, waiting blocks do not. With n resident blocks, each takes the longer
    of its work and an n-th of the time that it would take alone.
    """
    busy = _busy(needs, rates)
    if barriers:  # while one warp works others do, but none while data are on their way
        own = _busy({name: n for name, n in needs.items() if name != "barriers"}, rates)
        alone = chain.away + _joint((chain.cycles - chain.away, own), rates.overlap)
    else:
        alone = chain.cycles + busy / shape.warps
    alone += rates.block_start
    return _joint((busy, alone / together), rates.overlap)


def _busy(needs: Mapping[str, float], rates: Rates) -> float:
    """Return the cycles in which all parts together are busy.

    An instruction of a pipe also takes an issue slot, and these hardly delay each other. Traffic
    from L2 to DRAM needs both at once. Shared memory is a part of L1.
    """
    pipes = [needs.get(name, 0.0) for name in _PIPES]
    memory = max(needs.get("l2", 0.0), needs.get("dram", 0.0))
    rest = [n for name, n in needs.items() if name not in (*_PIPES, "l2", "dram", "shared")]
    return _joint([_joint(pipes, 2 * rates.joint), memory, *rest], rates.joint)


def _joint(times: Iterable[float], power: float) -> float:
    values = [time for time in times if time > 0]
    longest = max(values, default=0.0)
    return longest * sum((t / longest) ** power for t in values) ** (1 / power) if longest else 0.0


@dataclass(frozen=True)
class Times:
    """Components of ``bounds``, in seconds."""

    total: float
    bounds: dict[str, float]


def times(
    work: Work, chain: Chain, memory: tuple[float, float], row_misses: tuple[float, float],
    gpu: Gpu, rates: Rates, shape: Shape,
) -> Times:  # fmt: skip
    """Return the seconds of a launch, and those that each part would need alone."""
    slots = shape.resident * gpu.sms
    waves, rest = divmod(shape.blocks, slots)
    cycles = 0.0
    bounds: dict[str, float] = {}
    waiting = 0.0
    for rounds, blocks in ((waves, slots), (1, rest)):
        if not rounds or not blocks:
            continue
        sms = min(blocks, gpu.sms)
        here = math.ceil(blocks / gpu.sms)
        needs = demands(work, memory, row_misses, gpu, rates, sms, shape.blocks)
        each = block_time(needs, chain, shape, here, work.barriers > 0, rates)
        cycles += rounds * here * each
        for name, need in needs.items():
            bounds[name] = bounds.get(name, 0.0) + rounds * here * need
        waiting += rounds * (chain.cycles + rates.block_start)
    begun = shape.blocks / rates.blocks_per_cycle
    late = begun if begun > cycles else 0.0  # blocks take longer to begin than to run
    cycles = max(cycles, begun)
    launch = rates.launch_us * 1e-6
    found = {name: value / rates.clock for name, value in bounds.items() if value > 0}
    found |= {"latency": waiting / rates.clock}
    found["launch"] = launch + late / rates.clock
    return Times(launch + cycles / rates.clock, found)
