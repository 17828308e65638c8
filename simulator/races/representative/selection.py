"""The representative block, and the checks that see only its events.

A race of a read with a write in the first block exists in every block, between the same threads at
the same places. This is not so for two writes, whose values may be equal in one block and differ in
another, nor for uninitialised reads, which another check reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...core.geometry import Geometry
from ...events import Dispatcher, Observer
from ...memory.event import AccessEvent, LaneAddressList
from ..report.race_log import RaceLog
from .block_projection import BlocksDiffer, FirstBlock

_MAX_EVENTS = 1 << 28
"""Bytes of recorded events, at most, for a replay to the full checks."""
_AROUND = 256
"""Bytes of an event beside its arrays."""
Make = Callable[[RaceLog, Callable[..., None]], list[Observer]]
"""Makes checks, ``RaceCheck`` first, from a race log and a callback for uninitialised reads."""


class _RecordedEvent(NamedTuple):
    """An event, as the observers of all blocks receive it.

    Attributes:
        name: Method of ``Observer``.
        what: Its arguments.
        tiled: Whether ``what`` is the first block's part of an access in bulk.
    """

    name: str
    what: tuple[object, ...]
    tiled: bool


class OneOfThem:
    """A batch whose blocks have behaved identically so far.

    Args:
        make: Creates the checks.
        known: Race log of earlier batches.

    Attributes:
        first: Projection to the first block.
        checks: Checks of that block.
        before: The recorded events.
    """

    def __init__(self, make: Make, geometry: Geometry, known: RaceLog) -> None:
        self.first, self._geometry = FirstBlock(geometry), geometry
        self.before: list[_RecordedEvent] = []
        self._nbytes = 0
        self._suspicious, self._race_log = False, known.like()
        self.checks = make(self._race_log, self._suspect)
        self._dispatcher = Dispatcher(self.checks)
        for callback in self._dispatcher.start:
            callback(self.first.one)

    def _suspect(self, *read: object) -> None:
        """Note a finding that is not in the race log, so that the full checks are needed."""
        self._suspicious = True

    def keep(
        self, name: str, what: tuple[object, ...], arrays: Sequence[object], tiled: bool = False
    ) -> None:
        """Record an event of all blocks; ``tiled``: the first block's part of a bulk access.

        Raises:
            BlocksDiffer: The recording would be too large.
        """
        self._nbytes += _AROUND + sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        if self._nbytes > _MAX_EVENTS:
            raise BlocksDiffer
        self.before.append(_RecordedEvent(name, what, tiled))

    def keep_access(self, event: AccessEvent, first: AccessEvent, tiled: bool) -> None:
        """Record an access of all blocks."""
        arrays: list[object] = [*(event.values or ()), *(event.old or ())]
        if tiled:  # what copies in bulk touch is much
            event = event._replace(address=first.address)
        else:
            arrays += (
                event.address if isinstance(event.address, LaneAddressList) else [event.address]
            )
        self.keep("access", (event,), arrays, tiled)

    def notify(self, name: str, *what: object) -> bool:
        """Pass an event to the checks; return whether the full checks are needed."""
        for callback in getattr(self._dispatcher, name):
            callback(*what)
        return self._suspicious or not all(g.everywhere for g in self._race_log.groups.values())

    def of_all(self, race_log: RaceLog) -> None:
        """Log the races that were found for every block."""
        g = self._geometry
        for group in self._race_log.groups.values():
            group.spread(g.blocks - g.blocks[0])
        race_log.merge(self._race_log)
