"""Moments of the hazards of a run: one step each at which the page shows what goes wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from simulator import Run
from simulator.hazards.hazard import Hazard

from .accesses import access_moments
from .lanes import lane_moments
from .races import meeting_moments, race_moments
from .recorded import Moment, Recording
from .standstill import standstill_moments

_MAX_CAUSE = 40
"""Characters of a heading up to which the page's header shows it."""


def moments_of(recording: Recording) -> list[dict[str, Any]]:
    """Return the moments of the first error that has any, then those of other hazards.

    Races come before other errors, errors before warnings. A race that is lucky in this run comes
    after all others.
    """
    found: list[tuple[int, int, list[Moment]]] = []
    for number, hazard in enumerate(recording.run.hazards):
        moments = _of_hazard(number, hazard, recording)
        if moments:
            found.append((_rank(hazard, moments), number, moments))
    ordered = [moments for _, _, moments in sorted(found, key=lambda one: one[:2])]
    return [_plain(moment) for moments in ordered for moment in moments]


def _of_hazard(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    return _pictured(number, hazard, recording) or lane_moments(number, hazard, recording)


def _pictured(number: int, hazard: Hazard, recording: Recording) -> list[Moment]:
    """Return the moments of a hazard whose array or block of threads can be drawn."""
    if hazard.row.is_endless or hazard.row.check == "barriers":
        return standstill_moments(number, hazard, recording)
    found = access_moments(number, hazard, recording)
    if not found and hazard.row.is_race and hazard.severity == "error":
        found = race_moments(number, hazard, recording)
    if not found and hazard.row.check in ("memory", "races"):
        found = meeting_moments(number, hazard, recording)
    return found


def _rank(hazard: Hazard, moments: list[Moment]) -> int:
    if hazard.severity != "error":
        return 3
    if moments[0].kind == "right by luck":
        return 2
    return 0 if hazard.row.is_race else 1


def _plain(moment: Moment) -> dict[str, Any]:
    made = asdict(moment)
    for name in ("got", "should"):
        if made[name] is not None and not np.isfinite(made[name]):
            made[name] = None
    made["values"] = [v if v is not None and np.isfinite(v) else None for v in moment.values]
    return made


def cause_of(run: Run) -> str:
    """Return the cause of the first error in a few words, for the page's header."""
    errors = [hazard for hazard in run.hazards if hazard.severity == "error"]
    if not errors:
        return ""
    heading, colon, _ = errors[0].heading.partition(":")
    if not colon or len(heading) >= _MAX_CAUSE:
        return errors[0].kind.replace("-", " ")
    return heading if heading[:2].isupper() else heading[:1].lower() + heading[1:]


def wrong_outputs(run: Run, fixed: Run) -> tuple[int, int]:
    """Return the number of output elements that differ from the fixed run, and of all elements."""
    assert run.trace is not None
    assert fixed.trace is not None
    wrong = total = 0
    for number, item in run.trace.maps.items():
        other = fixed.trace.maps.get(number)
        if other is None or not other.writes.any() or not item.argument:
            continue
        mine, right = item.after.view(item.dtype), other.after.view(other.dtype)
        if item.dtype.kind == "f":
            same = np.isclose(mine, right, rtol=1e-4, atol=1e-6, equal_nan=True)
        else:
            same = mine == right
        wrong += int((~same).sum())
        total += len(mine)
    return wrong, total
