"""Which lanes of a warp come to a store together, and which take turns at it."""

import numpy as np

from ...core.geometry import Flat, Mask
from ...memory.site import Site
from ..shadow.access_history import AccessHistory
from ..shadow.shadow_memory import Conflict

_NEVER = np.iinfo(np.int64).max


class InStep:
    """When each thread came to each store the first time."""

    def __init__(self) -> None:
        self._began: dict[int, Flat] = {}

    def access(self, site: Site, thread: Flat, threads: np.int64, now: int) -> None:
        """Threads do, of so many."""
        if site.access != "store":
            return
        began = self._began.get(site.number)
        if began is None:
            began = self._began[site.number] = np.full(threads, _NEVER)
        began[thread[began[thread] == _NEVER]] = now

    def unordered_lanes(
        self, site: Site, other: Site, conflict: Conflict, history: AccessHistory | None
    ) -> tuple[tuple[bool, Mask], ...]:
        """Which pairs are of one execution, or of two that the lanes did not come to together.

        (Who was not there when the other one was, the first time, is not in step with it.)
        """
        found = np.full(len(conflict.lane), history is None)
        if history is not None and site is other and site.number in self._began:
            found = self._began[site.number][conflict.later] > history.table.times[conflict.entry]
        return (True, found), (False, ~found)
