"""A run on GPUs: roofline and occupancy of each, predictions, and a table of tile sizes."""

from typing import Any

from simulator import Prediction, Run
from simulator.gpus.occupancy import occupancy
from simulator.gpus.table import GPUS
from simulator.prediction.rates import rates
from simulator.prediction.roofline import roofline

from .describe import shown_path


def prediction(run: Run, found: Prediction | None) -> dict[str, Any] | None:
    """Return a prediction's data, with files named as on the page."""
    if found is None:
        return None
    made = found.to_dict()
    advice = [
        item | {"file": shown_path(item["file"]) if item["file"] else ""} for item in made["advice"]
    ]
    return made | {"name": found.gpu.name, "advice": advice, "flops": _rate(run, found)}


def _rate(run: Run, found: Prediction) -> float:
    """Return the floating-point operations per second at the predicted time."""
    return run.counters.flops / (found.time_ms / 1000)


def limits(run: Run) -> list[dict[str, Any]]:
    """Return roofline and occupancy of a run, for each known GPU.

    The number of registers of a thread is unknown here. Occupancy has no limit by registers.
    """
    trace = run.trace
    assert trace is not None
    arrays = [item.before for item in trace.maps.values() if item.argument]
    threads = run.block[0] * run.block[1] * run.block[2]
    found = []
    for gpu in GPUS.values():
        limit = occupancy(gpu, threads, None, run.shared_bytes)
        found.append(
            {
                "name": gpu.name,
                "roofline": roofline(gpu, run.counters, arrays).to_dict(),
                "occupancy": limit.to_dict() | {"most_warps": limit.max_warps},
            }
        )
    return found


def levels(run: Run, found: Prediction | None) -> list[dict[str, Any]]:
    """Return bytes that pass each level of memory, and the level's bandwidth in bytes per second.

    ``used`` is the share of the level's roof, bandwidth times intensity, that the predicted rate of
    floating-point operations reaches.

    Bytes of threads, shared memory and L1 are counted; L1 has 32 bytes for each sector. L2 and
    DRAM follow from the predicted hit rates and traffic of a launch that finds empty caches. L1
    and shared memory deliver 128 bytes per cycle and multiprocessor. The list is empty without a
    prediction.
    """
    if found is None:
        return []
    gpu, counters = found.gpu, run.counters
    loads, others = counters.global_load, (counters.global_store, counters.global_atomic)
    bulk = (counters.bulk_load, counters.bulk_store, counters.bulk_atomic)
    written = 32 * sum(other.sectors for other in others)
    past = written + 32 * sum(copy.sectors for copy in bulk)  # bulk copies bypass L1
    missed = 32 * loads.sectors * (1 - (found.l1_hit_rate or 0.0))
    shared = (
        counters.shared_load, counters.shared_store, counters.shared_atomic,
        counters.bulk_shared_load, counters.bulk_shared_store, counters.bulk_shared_atomic,
    )  # fmt: skip
    rows = [
        ("threads", "asked for in global memory", counters.global_bytes, 0.0),
        ("shared memory", "read and written", sum(one.bytes for one in shared),
         gpu.shared_bandwidth),
        ("L1", "in sectors of 32 bytes", 32 * loads.sectors + written, gpu.shared_bandwidth),
        ("L2", "missed in L1, or written", missed + past, rates(gpu).l2_bytes),
        ("DRAM", "missed in L2, or written back", found.dram_read_bytes + found.dram_write_bytes,
         gpu.bandwidth),
    ]  # fmt: skip
    made = []
    for name, what, moved, rate in rows:
        intensity = counters.flops / moved if moved else 0.0
        roof = rate * intensity
        made.append(
            {"name": name, "what": what, "bytes": float(moved), "rate": rate,
             "intensity": intensity, "used": _rate(run, found) / roof if roof else 0.0}
        )  # fmt: skip
    return made


def tile_row(tile: int, run: Run | None, threads: int, found: Prediction) -> dict[str, Any]:
    """Return the row of one tile size: resources of a block, and the predicted time.

    ``run``, a run of the launch with this tile, gives shared memory, loads and intensity.
    """
    made: dict[str, Any] = {
        "tile": tile, "threads": threads, "time": found.time_ms, "low": found.low_ms,
        "high": found.high_ms, "limiter": found.limiter, "active": found.warps_active,
    }  # fmt: skip
    if run is not None:
        loads = run.counters.global_load
        moved = 32 * (loads.sectors + run.counters.global_store.sectors)
        made["shared"] = run.shared_bytes
        made["intensity"] = run.counters.flops / moved if moved else 0.0
        made["loads"] = loads.accesses
    return made
