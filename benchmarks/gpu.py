"""``python -m benchmarks.gpu > mygpu.json``: what ``tilescope predict`` wants to know of a GPU.

Small kernels (``gpu.cu``), each of which waits for one thing alone. Takes ten seconds on an H200;
prints JSON that ``predict --gpu mygpu.json`` reads: the name of the GPU in the table, and its
constants with their units as ``simulator/prediction/rates.py`` has them; ``raw``: every figure.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import device
from kernels import Kernel
from simulator.gpus.table import Gpu, UnknownGpu, find

SOURCE = Path(__file__).with_name("gpu.cu")
_MIB = 1 << 20
_SPIN = 5000
"""Cycles that a block spins for."""


def seconds(
    entry: str, grid: int, block: int, args: Sequence[Any], launches: int = 9, shared: int = 0
) -> float:
    """Median time of a launch, from event to event."""
    kernel = Kernel.from_cuda(SOURCE, entry)
    timing = device.time_launches(
        kernel, grid, block, list(args), shared, launches=launches, warmup=3
    )
    return float(np.median(timing.times_ms)) / 1e3


def cycles(entry: str, block: int, args: Sequence[Any], steps: int) -> float:
    """Cycles a step, as the kernel counts them."""
    out = np.zeros(1, np.int64)
    given = [out if arg is None else arg for arg in args]
    device.launch(Kernel.from_cuda(SOURCE, entry), 1, block, given)
    return float(out[0]) / steps


def ring(nbytes: int, line: int = 128) -> Any:
    """Indices that lead through every line of an array once, in no order."""
    each, lines = line // 4, nbytes // line
    order = np.random.default_rng(0).permutation(lines) * each
    found = np.zeros(nbytes // 4, np.int32)
    found[order] = np.roll(order, -1)
    return found


def latencies(gpu: Gpu) -> dict[str, float]:
    """Cycles of a load, wherever it is served, of an atomic and of a barrier."""
    sink, found = np.zeros(1024, np.int32), {}
    for name, nbytes, past, steps in (
        ("l1_latency", 16 << 10, 0, 2000),
        ("l2_latency", 4 * _MIB, 1, 20000),
        ("dram_latency", int(8 * gpu.l2), 1, 20000),
    ):
        found[name] = cycles("chase", 1, [ring(nbytes), steps, past, None, sink], steps)
    places = np.arange(1024, dtype=np.int32)
    found["shared_latency"] = cycles("chase_shared", 32, [places, 2000, None, sink], 2000)
    found["atomic_latency"] = cycles(
        "chase_atomic", 1, [np.zeros(32, np.int32), 2000, None, sink], 2000
    )
    few, many = (cycles("barriers", 32 * warps, [2000, None], 2000) for warps in (2, 32))
    found["barrier_warp"] = (many - few) / 30
    found["barrier"] = few - 2 * found["barrier_warp"]
    return found


def launches(gpu: Gpu, clock: float, l2_latency: float) -> dict[str, float]:
    """What beginning takes: a launch, a block after another, blocks of the whole GPU.

    A kernel that does nothing ends before the event behind it is looked at, so a launch is timed by
    one that copies a little, less what that waits for. Blocks that take as long as they are told
    stand alone on their multiprocessors: what a further wave of them takes beyond that is a start.
    """
    empty = seconds("nothing", 1, 32, [], 50)
    many = 1 << 20
    small = seconds("nothing", many, 32, []) - empty
    alone = gpu.architecture.shared_per_block
    few, more = (seconds("spin", waves * gpu.sms, 32, [_SPIN], shared=alone) for waves in (10, 60))
    start = (more - few) * clock / 50 - _SPIN
    little = np.zeros(128, np.float32)
    copied = seconds("copy", 1, 32, [little, little.copy(), 32], 50)
    return {
        "launch_us": (copied - (l2_latency + start) / clock) * 1e6,
        "blocks_per_cycle": many / (small * clock),
        "block_start": start,
        "empty_us": empty * 1e6,
    }


def traffic(gpu: Gpu) -> dict[str, float]:
    """Bytes and requests a second of DRAM and L2."""
    empty = seconds("nothing", 1, 32, [], 20)
    count = 256 * _MIB // 16
    big = np.zeros(count * 4, np.float32)
    took = seconds("copy", count // 256, 256, [big, big.copy(), count]) - empty
    found = {"dram_mixed": 512 * _MIB / took}
    small = np.zeros(16 * _MIB // 4, np.float32)
    sink, grid = np.zeros(1, np.float32), gpu.sms * 8
    took = seconds("read_l2", grid, 256, [big, count, 1, sink]) - empty
    found["dram_bytes"] = 256 * _MIB / took
    moved = grid * 512 * 16 * 8
    for name, entry, each, more in (
        ("dram_apart", "read_pieces", 4, [sink]), ("dram_written_apart", "write_pieces", 8, []),
    ):  # fmt: skip
        took = seconds(entry, grid, 512, [big, each, count // each, 8, *more]) - empty
        found[name] = moved / took
    took = seconds("write_l2", grid, 256, [small, _MIB, 40]) - empty
    whole = took / (40 * 16 * _MIB // 128)
    took = seconds("read_l2", grid, 256, [small, _MIB, 40, sink]) - empty
    found["l2_bytes"] = 40 * 16 * _MIB / took
    lines = len(small) // 32
    took = seconds("read_apart", grid, 256, [small, lines, 40, sink]) - empty
    found["l2_read_requests"] = 40 * lines / took
    took = seconds("write_apart", grid, 256, [small, lines, 40]) - empty
    # A line takes one request, and its sectors: here four of them, there one. Noise leaves some.
    apart = took / (40 * lines)
    found["l2_written"] = 96 / max(whole - apart, whole / 4)
    found["l2_requests"] = 1 / max(apart - 32 / found["l2_written"], apart / 4)
    return found


def atomics(gpu: Gpu) -> dict[str, float]:
    """Atomics a second: on one word, and with more and more places to go to."""
    empty = seconds("nothing", 1, 32, [], 20)
    grid, found = gpu.sms * 8, {}
    warps = grid * 8
    sums = np.zeros(4 * _MIB, np.int32)

    def rate(count: int, entry: str, array: Any, *rest: int) -> float:
        return count / (seconds(entry, grid, 256, [array, *rest], 5) - empty)

    found["atomic_same"] = rate(warps * 50, "add_one", sums, 1, 1, 50)
    found["atomic_float"] = rate(warps * 50, "add_one_float", sums.astype(np.float32), 1, 1, 50)
    for words, stride in ((8, 1), (32, 1), (256, 1), (8, 32), (32, 32), (1024, 32), (65536, 32)):
        found[f"one:{words}x{stride}"] = rate(warps * 50, "add_one", sums, words, stride, 50)
    for rows in (1, 8, 32, 256, 65536):
        found[f"row:{rows}"] = rate(warps * 50, "add_row", sums, rows, 50)
    for words in (32, 256, 4096, 1 << 20):
        found[f"random:{words}"] = rate(warps * 32 * 20, "add_random", sums, words, 20)
    found["atomic_passes"] = 4 * found["row:65536"]
    out = np.zeros(grid, np.int64)
    for name, entry in (("shared_atomic", "shared_max"), ("shared_atomic_float", "shared_add")):
        device.launch(Kernel.from_cuda(SOURCE, entry), grid, 256, [out, 0, 400])
        found[name] = float(np.median(out)) / (400 * 64 * 32)  # 64 warps, 32 passes each
    return found


def measure() -> dict[str, Any]:
    """The GPU that is here.

    Raises:
        DeviceError: There is none.
        UnknownGpu: The table has none of its name.
    """
    gpu = find(device.device_name())
    out, sink = np.zeros(1, np.int64), np.zeros(1, np.float32)
    rounds = 2_000_000
    counted = cycles("cycles", 1, [None, sink, rounds], rounds)
    took = seconds("cycles", 1, 1, [out, sink, rounds]) - seconds("nothing", 1, 32, [])
    raw = {"clock": counted * rounds / took}
    raw |= latencies(gpu)
    raw |= launches(gpu, raw["clock"], raw["l2_latency"]) | traffic(gpu) | atomics(gpu)
    known = (
        "clock", "launch_us", "blocks_per_cycle", "block_start", "l1_latency", "l2_latency",
        "dram_latency", "shared_latency", "atomic_latency", "barrier", "barrier_warp",
        "dram_bytes", "dram_mixed", "dram_apart", "dram_written_apart", "l2_bytes", "l2_written",
        "l2_requests", "l2_read_requests", "atomic_same", "atomic_float", "atomic_passes",
        "shared_atomic", "shared_atomic_float",
    )  # fmt: skip
    return {"gpu": gpu.key, "rates": {name: raw[name] for name in known}, "raw": raw}


def main() -> None:
    """Measure, and print JSON."""
    try:
        print(json.dumps(measure(), indent=1))
    except (device.DeviceError, UnknownGpu) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
