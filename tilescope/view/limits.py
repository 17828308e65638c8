"""What the page says of a run on a GPU: roofline and occupancy of each, and what is predicted."""

from typing import Any

from simulator import Prediction, Run
from simulator.gpus.occupancy import occupancy
from simulator.gpus.table import GPUS
from simulator.prediction.roofline import roofline

from .describe import shown_path


def prediction(found: Prediction | None) -> dict[str, Any] | None:
    """What is expected on a GPU; files as the page names them."""
    if found is None:
        return None
    made = found.to_dict()
    advice = [
        item | {"file": shown_path(item["file"]) if item["file"] else ""} for item in made["advice"]
    ]
    return made | {"name": found.gpu.name, "advice": advice}


def limits(run: Run) -> list[dict[str, Any]]:
    """One entry a GPU. Registers a thread are the driver's business: that limit stays open."""
    trace = run.trace
    assert trace is not None
    arrays = [item.before for item in trace.maps.values() if item.argument]
    threads = run.block[0] * run.block[1] * run.block[2]
    found = []
    for gpu in GPUS.values():
        held = occupancy(gpu, threads, None, run.shared_bytes)
        found.append(
            {
                "name": gpu.name,
                "sms": gpu.sms,
                "roofline": roofline(gpu, run.counters, arrays).to_dict(),
                "occupancy": held.to_dict() | {"most_warps": held.most_warps},
            }
        )
    return found


def tile_row(tile: int, run: Run | None, threads: int, found: Prediction) -> dict[str, Any]:
    """One tile size of a table: what a block takes, and what is predicted of the launch.

    ``run`` is a run of that launch, for its shared memory and loads, if there is one.
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
