"""Who meets at barriers that count fewer warps than come to them, if nothing else says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..geometry import WARP


class Coming(NamedTuple):
    """Warps come to a barrier.

    Attributes:
        threads: For how many it waits; 0: for the block, of which so many warps are ``living``.
        holds: Whether they wait.
    """

    number: int
    threads: int
    holds: bool
    warps: tuple[int, ...]
    living: int


class _Met(NamedTuple):
    """Warps have filled a barrier.

    Attributes:
        wait: Whether each of them does; ``aware``: who knows of it; ``at``: the last coming.
    """

    members: set[int]
    wait: bool
    aware: set[int]
    at: int


def by_chance(comings: Iterable[Coming]) -> tuple[int, int] | None:
    """Two comings, of which the later could have filled the barrier in place of the earlier.

    So it is where a warp fills a barrier that others filled before, and has met none of those who
    know of it since: it could as well have come first, and met some of them. Where some only arrive
    they may be there for whoever comes.
    """
    last: dict[int, _Met] = {}
    filling: dict[int, list[tuple[int, bool]]] = {}
    for i, coming in enumerate(comings):
        needed = -(-coming.threads // WARP) if coming.threads else coming.living
        for warp in coming.warps:
            there = filling.setdefault(coming.number, [])
            if (warp, True) in there:  # others left, which has let it go
                there.clear()
            there.append((warp, coming.holds))
            if len(there) < needed:
                continue
            members = {one for one, _ in there}
            held = {one for one, waits in there if waits}
            # A warp that is all a barrier waits for meets nobody in any order.
            wait = all(waits for _, waits in there) and coming.threads > 0 and needed > 1
            there.clear()
            before = last.get(coming.number)
            if wait and before and before.wait and members - before.members - before.aware:
                return before.at, i
            for met in last.values():
                if met.aware & members:
                    met.aware.update(held)
            last[coming.number] = _Met(members, wait, held, i)
    return None
