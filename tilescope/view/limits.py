"""What GPUs would allow a launch: roofline and occupancy, for each GPU in the table."""

from __future__ import annotations

from typing import Any

from device.gpus import GPUS
from device.occupancy import occupancy
from device.roofline import roofline
from simulator import Run


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
