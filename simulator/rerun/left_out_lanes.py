"""Races that exist only because a member mask leaves out lanes of its ``bar.warp.sync``.

The launch is repeated with masks that name the whole warp, as far as the observers see them. Races
of the first run that this one lacks follow from the mask (``hazards.folding``).
"""

from collections.abc import Collection

import numpy as np

from ..core.geometry import WHOLE_WARP, Lanes, Mask
from ..execute.prepare import PreparedLaunch
from ..memory.storage.spaces import Allocation
from ..observe.observers import Observers
from ..races.accesses import PrecisionPlan
from .repetition import run_again


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
    without = run_again(launch, checks, precision, together, _widen_masks)
    if without is not None:
        findings.synchronised = without.findings.hazards()


def _widen_masks(observers: Observers, _: dict[int, Allocation]) -> None:
    """Let warp barriers order all lanes that execute them together."""
    observed = tuple(observers.dispatcher.warp_sync)

    def warp_sync(lanes: Mask | None, members: Lanes) -> None:
        for callback in observed:
            callback(lanes, np.full_like(members, WHOLE_WARP))

    observers.dispatcher.warp_sync = (warp_sync,)
