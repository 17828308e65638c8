"""Races between two shards of a launch, found by comparing their shadow memories.

Blocks of different shards do not synchronise, so that none of their accesses are ordered.
"""

import numpy as np

from ...core.geometry import Flat, Mask
from ...memory.storage.spaces import Allocation
from ..accesses import Race
from ..report.race_log import RaceLog
from ..shadow.access_history import AccessHistory
from ..shadow.shadow_memory import ShadowMemory
from ..shadow.stored_values import compare, other_values
from .shadow_check import ShadowChecker


def find_between(
    look: ShadowChecker, first: ShadowMemory, second: ShadowMemory, home: Allocation
) -> None:
    """Log the races between the accesses of two shadow memories."""
    g = look.geometry
    for later in second.histories.values():
        for earlier, how in first.conflicting_histories(later.site):
            if how == "volatile" and look.polled(later.site, earlier.site):
                continue
            race = Race(
                earlier.site, later.site, "global", home, look.granules.array, how, "block",
                g.threads, g.columns,
            )  # fmt: skip
            _write_down(look.race_log, race, first, earlier, later)


def _write_down(
    race_log: RaceLog, race: Race, first: ShadowMemory, earlier: AccessHistory, later: AccessHistory
) -> None:
    asked = first.asked(*np.divmod(later.table.keys, first.threads))
    bound, free = race_log.bound(race), None
    if later.site.access == earlier.site.access == "store" and later.values is not None:
        free = other_values(earlier, asked.start, first.threads, later.values)
        free |= later.table.varied_far
    for conflict in first.races(earlier, asked, _unordered, "block", None, bound, free):
        unequal, silent, stored = compare(
            conflict, earlier, later.site, earlier.site, later.values, "block"
        )
        if later.values is not None:  # the last that each thread left, of several perhaps
            varied = later.table.varied_far[conflict.lane]
            unequal = unequal | varied
            again = conflict.some(silent & varied)
            if len(again.lane):
                some = np.zeros(len(again.lane), bool)
                race_log.add(race, again, ~some, some)
        race_log.add(race, conflict, unequal, silent, stored)


def _unordered(time: Flat, earlier: Flat, which: Flat) -> Mask:
    return np.zeros(len(time), bool)
