"""Two schedules, two results: in words."""

from __future__ import annotations

from ..demonstrate import SCHEDULES, Difference
from .findings import wrapped
from .layout import percent

_TRIED = f"{len(SCHEDULES)} schedules (lockstep, warps, reverse, seeds 0 to {SCHEDULES[-1]})"


def demonstration(difference: Difference | None, racy: bool) -> str:
    """What ``--demonstrate`` has to say."""
    if difference is None:
        text = f"demonstration: the same bits under {_TRIED}"
        if racy:
            text += "; the race is there nevertheless: no schedule tried here shows it"
        return wrapped(text)
    d = difference
    place = f"{d.array}[{', '.join(str(i) for i in d.index)}]"
    width = max(len(d.first), len(d.second), len("reference"))
    lines = [f"demonstration, {d.build} build: {place} depends on the schedule"]
    if d.first == "reference":
        lines = [f"demonstration, {d.build} build: {place} is wrong under {d.second}"]
    lines.append(f"  {d.first:<{width}}  {d.values[0]}")
    lines.append(f"  {d.second:<{width}}  {d.values[1]}")
    if d.reference is not None and d.first != "reference":
        lines.append(f"  {'reference':<{width}}  {d.reference}")
    share = percent(d.count / d.elements)
    lines.append(f"  {d.count:,} of {d.elements:,} elements differ ({share})")
    if not racy and d.first != "reference":
        lines.append(
            wrapped(
                "  no race was found: the order of floating-point atomics, perhaps, which "
                "no barrier fixes"
            )
        )
    return "\n".join(lines)
