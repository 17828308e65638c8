"""Cost of loads with a common base: one lookup, accumulated at the end."""

import numpy as np

from ...core.geometry import Rows
from ...memory.site import Site
from .patterns import Cost, Pattern

Sites = tuple[Site, ...]


class Several:
    """Adds costs to ``totals`` by slots."""

    def __init__(self, totals: Rows) -> None:
        self._totals = totals
        self._counted: list[Cost] = []
        self._last: dict[Site, Cost] = {}

    def repeat_last(self, sites: Sites) -> bool:
        """Repeat the last access; return whether it was counted here."""
        return self._count(self._last.get(sites[0]))

    def access(self, sites: Sites, pattern: Pattern | None) -> bool:
        """Count unmasked loads if their cost is known; return whether it is."""
        known = pattern.several.get(sites) if pattern is not None else None
        if known is None:
            self._last.pop(sites[0], None)
        else:
            self._last[sites[0]] = known
        return self._count(known)

    def learn(self, sites: Sites, pattern: Pattern, slots: list[int]) -> None:
        """Cache the costs of loads evaluated one by one, if all blocks have equal ones."""
        each = [pattern.costs.get(slot) for slot in slots]
        if None not in each:
            figures = [cost[0] * cost[1] for cost in each if cost]
            pattern.several[sites] = Cost(np.array(slots), np.array(figures))

    def settle(self) -> None:
        """Add the accumulated costs."""
        for cost in self._counted:
            self._totals[cost.slots] += cost.figures * cost.count
            cost.count = 0
        self._counted = []

    def _count(self, cost: Cost | None) -> bool:
        if cost is None:
            return False
        if not cost.count:
            self._counted.append(cost)
        cost.count += 1
        return True
