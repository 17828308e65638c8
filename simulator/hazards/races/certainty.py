"""Certainty of races: the schedules and the array contents for which a race is known to occur."""

import dataclasses
from collections.abc import Callable, Sequence

from ..hazard import Hazard
from ..participants import Source

ALWAYS = "no schedule orders the two, whatever the arrays hold"
THESE_INPUTS = (
    "no schedule orders the two with these inputs; what the arrays hold decides a branch, a "
    "barrier or an address at {place}"
)
ONE_ORDER = (
    "nothing orders the two in this run; the run took locks, tickets and counters in one order, "
    "and others may order them"
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
