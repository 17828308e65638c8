"""Certainty of races: the schedules and the array contents for which a race is known to occur."""

import dataclasses
from collections.abc import Callable, Sequence

from ..hazard import Hazard
from ..participants import Source

ALWAYS = "unordered in every schedule, for all array contents"
THESE_INPUTS = (
    "unordered in every schedule with these inputs; array contents decide a branch, a barrier or "
    "an address at {place}"
)
ONE_ORDER = (
    "unordered in this run, which took locks, tickets and counters in one order; another order may "
    "order the two"
)


def with_certainty(
    hazards: Sequence[Hazard], find_dependence: Callable[[], Source | None], one_order: str
) -> list[Hazard]:
    """Return the hazards with the certainty of races.

    The happens-before order does not depend on the schedule, unless locks or counters make it so.

    Args:
        hazards: Hazards of one launch.
        find_dependence: Returns a line whose branch, barrier or address depends on the contents
            of arrays, if there is one.
        one_order: Why locks and counters were tried in one order only; empty if they were not.
    """
    if not any(hazard.row.is_race for hazard in hazards):
        return list(hazards)
    certainty = ONE_ORDER
    if not one_order:
        dependence = find_dependence()
        certainty = THESE_INPUTS.format(place=dependence) if dependence else ALWAYS
    return [
        dataclasses.replace(hazard, certainty=certainty) if hazard.row.is_race else hazard
        for hazard in hazards
    ]
