"""Races that exist only because a member mask leaves out lanes of its ``bar.warp.sync``.

The launch is repeated with masks that name the whole warp, as far as the observers see them. Races
of the first run that this one lacks follow from the mask (``hazards.folding``).
"""

from collections.abc import Collection

import numpy as np

from ..core.geometry import WHOLE_WARP, Lanes, Mask
from ..events import Dispatcher
from ..execute.batches import InterBlockWait, batches, run_batches
from ..execute.prepare import PreparedLaunch
from ..observe.observers import Observers
from ..races.accesses import EscalateCheck, PrecisionPlan

_AGAIN = 8
"""Times that the run begins anew for a closer look, at most."""


def look_for_masks(
    launch: PreparedLaunch,
    observers: Observers,
    checks: Collection[str],
    precision: PrecisionPlan,
    together: bool,
) -> None:
    """Find the findings of wider member masks, if there are races."""
    findings = observers.findings
    if not findings.races.race_log.groups:
        return
    precision = dict(precision)
    for _ in range(_AGAIN):
        allocations = launch.allocations()
        without = Observers(launch, checks, None, allocations, precision)
        _widen_masks(without.dispatcher)
        todo = batches(launch, together)
        try:
            run_batches(launch, allocations, without.dispatcher, todo, together)
            without.end()
        except EscalateCheck as suspicion:
            precision[suspicion.number] = suspicion.places
        except InterBlockWait:
            return
        else:
            findings.synchronised = without.findings.hazards()
            return


def _widen_masks(dispatcher: Dispatcher) -> None:
    """Let warp barriers order all lanes that execute them together."""
    observed = tuple(dispatcher.warp_sync)

    def warp_sync(lanes: Mask | None, members: Lanes) -> None:
        for callback in observed:
            callback(lanes, np.full_like(members, WHOLE_WARP))

    dispatcher.warp_sync = (warp_sync,)
