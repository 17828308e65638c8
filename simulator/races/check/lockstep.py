"""Lanes of a warp that reach a store together, and lanes that reach it in turns."""

import numpy as np

from ...core.geometry import Flat, Mask
from ...memory.site import Site
from ..shadow.access_history import AccessHistory
from ..shadow.shadow_memory import Conflict

_NEVER = np.iinfo(np.int64).max


class InStep:
    """Time at which each thread first reached each store."""

    def __init__(self) -> None:
        self._began: dict[int, Flat] = {}

    def access(self, site: Site, thread: Flat, threads: np.int64, now: int) -> None:
        """Record a store of ``thread``, out of ``threads`` in the launch."""
        if site.access != "store":
            return
        began = self._began.get(site.number)
        if began is None:
            began = self._began[site.number] = np.full(threads, _NEVER)
        began[thread[began[thread] == _NEVER]] = now

    def unordered_lanes(
        self, site: Site, other: Site, conflict: Conflict, history: AccessHistory | None
    ) -> tuple[tuple[bool, Mask], ...]:
        """Return the pairs of one execution, and of executions not reached together.

        A lane that was absent from the other's first execution is not in lockstep with it.
        """
        found = np.full(len(conflict.lane), history is None)
        if history is not None and site is other and site.number in self._began:
            found = self._began[site.number][conflict.later] > history.table.times[conflict.entry]
        return (True, found), (False, ~found)
