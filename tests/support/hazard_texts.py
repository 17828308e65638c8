"""Texts of hazards, to compare those of launches on arrays of other contents."""

import re
from collections.abc import Iterable

from simulator import Hazard


def without_values(hazards: Iterable[Hazard]) -> list[str]:
    """The hazards without the values that threads store or find: those are the arrays' own."""
    return [re.sub(r"\b(stores|finds) .+ in ", r"\1 in ", str(hazard)) for hazard in hazards]
