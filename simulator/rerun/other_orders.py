"""Other orders: races that the order of locks, tickets and counters hides in one run.

The second thread to take a lock or ticket, or a reader that finds a sequence number, is ordered
only in this run. If the result of an atomic controls the program, the launch is repeated in
``ORDERS``: blocks and warps one by one, forward, backward and in turn. Hardware may take each of
these orders, so that their races are real. The verdict then depends on no schedule.
"""

from __future__ import annotations

import dataclasses
import math

from ..analysis.confined_reads import confined_reads
from ..analysis.influence import ForwardSlices
from ..execute.batches import batches
from ..execute.prepare import PreparedLaunch, blocks_vary
from ..execute.schedule import ORDERS
from ..observe.counters.totals import WorkCounter
from ..observe.observers import Observers
from ..races.accesses import PrecisionPlan
from .repetition import run_again

_WORK = 320
"""Work of a launch (``WorkCounter``) beyond which it is not run again: a few seconds."""
_STEPS = 12_000
"""Steps that one of these runs may take: one basic block of one warp each."""


def find_races_in_other_orders(
    launch: PreparedLaunch, observers: Observers, precision: PrecisionPlan, together: bool,
    is_same_in_all: bool = False,
) -> None:  # fmt: skip
    """Log the races that other orders of blocks and warps show.

    ``is_same_in_all``: whether there surely are none.

    If the launch is not repeated, ``observers.one_order`` receives the reason. Programs whose
    control flow does not depend on strong reads need no repetition. Nor do those in which such a
    read is ``volatile``, orders nothing and only names an address: all writes are ordered with it
    in any order, or it races itself in every order.
    """
    steering = launch.program.analysis(ForwardSlices)
    confined = confined_reads(launch.program, math.prod(launch.cluster) > 1)
    sites = [launch.program.sites[number] for number in steering.synchronising_reads]
    if all(site.number in confined and not steering.is_polled(site) for site in sites):
        return
    observers.one_order = _reason(launch, observers.work, together)
    if observers.one_order or is_same_in_all:
        return
    limit = min(launch.step_limit, _STEPS)
    launch = dataclasses.replace(launch, counted=False, followed=False, step_limit=limit)
    race_log = observers.findings.races.race_log
    for order in ORDERS:
        turned = dataclasses.replace(launch, schedule=order)
        again = run_again(turned, {"races"}, precision, together)
        if again is not None:
            race_log.add_unknown(again.findings.races.race_log)


def _reason(launch: PreparedLaunch, work: WorkCounter, together: bool) -> str:
    """Return why a launch is not repeated in other orders; empty if it is."""
    if not launch.program.analysis(blocks_vary):
        return "asynchronous copies and mbarriers are checked in the order of one run"
    several = len(list(batches(launch, together))) > 1
    if several or work.work > _WORK or work.max_batch_steps > _STEPS:
        return "the launch is too long to be run in other orders"
    return ""
