"""Order by chance: races that locks, tickets and counters hide in the order of one run.

Whoever takes a lock second, draws the later ticket or finds a sequence number behind its writer
comes after the first in this run alone. If what an atomic finds steers the program, the launch
runs again in ``ORDERS``: blocks and warps one by one, forward, backward and in turn. Each is an
order that hardware may take, so what races there races. The verdict then depends on no schedule.
"""

from __future__ import annotations

import dataclasses

from kernels.errors import SimulatorError

from .execute.batches import BlocksWait, batches, run_batches
from .execute.prepare import Prepared
from .execute.schedule import ORDERS
from .observe.observers import Observers
from .races.accesses import Closer, LookCloser
from .races.book import RaceBook

_WORK = 320
"""Work of a launch (``WorkCounter``) beyond which it is not run again: a few seconds."""
_STEPS = 12_000
"""Steps that one of these runs may take: one basic block of one warp each."""
_AGAIN = 8
"""Times that one of them may begin anew, to look more closely."""


def find_races_in_other_orders(
    launch: Prepared, observers: Observers, closer: Closer, together: bool
) -> None:
    """Add the races to the book that other orders of blocks and warps show.

    The program is one whose atomics steer it, and in which the order of blocks may vary.
    """
    work = observers.work
    if work.work > _WORK or work.most > _STEPS or len(list(batches(launch, together))) > 1:
        return
    limit = min(launch.step_limit, _STEPS)
    launch = dataclasses.replace(launch, counted=False, followed=False, step_limit=limit)
    book = observers.findings.races.book
    for order in ORDERS:
        found = _races(dataclasses.replace(launch, schedule=order), dict(closer), together)
        if found is not None:
            book.add_unknown(found)


def _races(launch: Prepared, closer: Closer, together: bool) -> RaceBook | None:
    """The races of one more run; ``None``: it did not end."""
    for _ in range(_AGAIN):
        allocations = launch.allocations()
        seen = Observers(launch, {"races"}, None, allocations, closer)
        try:
            run_batches(launch, allocations, seen.told, batches(launch, together), together)
            seen.end()
        except LookCloser as suspicion:
            closer[suspicion.number] = suspicion.places
        except (BlocksWait, SimulatorError):
            return None
        else:
            return seen.findings.races.book
    return None
