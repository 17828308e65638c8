"""Report of occupancy and roofline on a named GPU."""

from device import Occupancy
from simulator.prediction.roofline import RooflineBound

from ..gpu.placement import Placement
from .findings import count
from .layout import human_bytes, percent, table, wrapped

_WIDTHS = (22, 14, 14, 28)


def placement(place: Placement, name: str = "") -> str:
    """Return both as text; ``name``: the kernel, if there are several."""
    gpu = place.gpu
    head = (
        f"{name} on {gpu.name}: {gpu.sms} multiprocessors, {gpu.fp32 / 1e12:g} TFLOP/s of FP32, "
        f"{gpu.bandwidth / 1e9:,.0f} GB/s ({gpu.source})"
    )
    return "\n".join([wrapped(head.lstrip()), "", *_occupancy(place), "", *_roofline(place)])


def _occupancy(place: Placement) -> list[str]:
    found = place.occupancy
    if not found.blocks:
        return [wrapped(f"occupancy: a block does not fit, for {' and '.join(found.limiters)}")]
    bound = "" if found.complete else "at most "
    lines = [
        wrapped(
            f"occupancy: {bound}{percent(found.share)}, {found.warps} of {found.max_warps} warps, "
            f"{count(found.blocks, 'block')} a multiprocessor; limited by "
            f"{' and '.join(found.limiters)}"
        )
    ]
    lines.append(wrapped(f"  blocks that each would allow: {_limits(found)}"))
    if found.complete:
        lines.append(f"  {count(found.registers or 0, 'register')} a thread, {place.source}")
    else:
        lines.append("  registers: not checked (no such GPU here, and no --registers)")
    waves = place.waves
    resident = place.gpu.sms * found.blocks
    lines.append(
        f"  {count(place.blocks, 'block')} in the grid, {bound}{resident:,} at a time: "
        f"{count(waves or 0, 'wave')}{'' if found.complete else ' or more'}"
    )
    return lines


def _limits(found: Occupancy) -> str:
    return ", ".join(
        f"{name} {'not checked' if limit is None else limit}"
        for name, limit in found.limits.items()
    )


def _roofline(place: Placement) -> list[str]:
    roof = place.roofline
    if not roof.bounds:
        return ["roofline: nothing to place, it neither computes nor accesses memory"]
    rows = []
    for bound in roof.bounds:
        rate = roof.attainable(bound)
        reached = "-" if rate is None else f"{rate / 1e9:,.0f}"
        rows.append((bound.name, _time(bound.seconds), reached, _amount(bound)))
    lines = table(("roofline", "least time", "GFLOP/s", "has to do"), rows, _WIDTHS)
    if roof.best is not None and roof.best == roof.worst:
        lines.append(wrapped(f"bound by {_bound(place, roof.best)}"))
    else:
        for condition, limit in (("caches keep all", roof.best), ("no cache helps", roof.worst)):
            if limit is not None:
                lines.append(wrapped(f"if {condition}: bound by {_bound(place, limit)}"))
    if roof.sms < place.gpu.sms:
        lines.append(f"only {roof.sms} of {place.gpu.sms} multiprocessors get a block")
    if place.roofline.shared.amount:
        lines.append("wavefronts as the PTX asks; ptxas may merge shared loads into fewer")
    return lines


def _bound(place: Placement, bound: RooflineBound) -> str:
    name, rate = bound.name.partition(",")[0], place.roofline.attainable(bound)
    if rate is None:
        return f"{name}, {_time(bound.seconds)} at least"
    share = percent(rate / place.gpu.fp32)
    return f"{name}, at most {rate / 1e9:,.0f} GFLOP/s ({share} of the FP32 peak)"


def _amount(bound: RooflineBound) -> str:
    if bound.unit == "bytes":
        return human_bytes(bound.amount)
    return f"{bound.amount:,.0f} {bound.unit.removesuffix(' instructions')}"


def _time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
