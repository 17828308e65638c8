"""Check one representative block, as long as all blocks of a batch issue the same events.

Shared memory that bulk copies fill and ``mbarrier`` synchronises is checked for each block
separately, and mostly all blocks of a batch behave identically. While they do, only the first block
is checked, by a set of checks of its own (``selection.py``). If these find nothing, no block has a
race; races of reads with writes that they find exist in every block. As soon as blocks differ, or
stored values matter, the recorded events are replayed to the full checks, which continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from kernels.ptx.module import Instruction

from ...core.geometry import Addresses, Geometry, Lanes, Mask
from ...events import Dispatcher, Observer, Stall
from ...memory.event import AccessEvent, CompactAccessEvent
from ...memory.site import PHASE, Site
from ..check.detector import RaceCheck
from ..report.race_log import RaceLog
from .block_projection import BlocksDiffer, cut
from .selection import Make, OneOfThem


class RepresentativeBlockCheck(Observer):
    """Passes events to the full checks, or to those of one block while all behave identically.

    Args:
        make: Creates the checks of one block.
        race_log: Race log of ``checks``.
        checks: The full checks, ``RaceCheck`` first.
    """

    def __init__(self, make: Make, race_log: RaceLog, checks: Sequence[Observer]) -> None:
        self.make, self.race_log, self.checks = make, race_log, checks
        self.race, self.dispatcher = cast(RaceCheck, checks[0]), Dispatcher(checks)
        self.geometry: Geometry
        self.representative: OneOfThem | None = None

    # -- batches ----------------------------------------------------------------------------

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry
        self.race.start(geometry)
        self.representative = OneOfThem(self.make, geometry, self.race_log)

    def finish(self) -> None:
        """See ``Observer``."""
        if self.representative and self.representative.notify("finish"):
            self._replay()
        if self.representative:
            self.race.finish()
            self.representative.of_all(self.race_log)
        else:
            self._all("finish")
        self.representative = None

    def end(self) -> None:
        """See ``Observer``."""
        self._all("end")

    def merge(self, other: RepresentativeBlockCheck) -> None:
        """See ``Observer``."""
        for mine, theirs in zip(self.checks, other.checks, strict=True):
            mine.merge(theirs)

    # -- all blocks, or one -----------------------------------------------------------------

    def _all(self, name: str, *what: object) -> None:
        for callback in getattr(self.dispatcher, name):
            callback(*what)

    def _replay(self) -> None:
        """Replay the recorded events to the full checks, which receive later ones directly."""
        assert self.representative
        representative, self.representative = self.representative, None
        for check in self.checks[1:]:
            check.start(self.geometry)
        self.race.shadow_checker.is_replay = True
        for name, what, tiled in representative.before:
            self._all(
                name,
                *(
                    map(representative.first.whole, cast(tuple[AccessEvent], what))
                    if tiled
                    else what
                ),
            )
        self.race.shadow_checker.is_replay = False

    def _each(self, name: str, *what: object) -> None:
        """Dispatch an event whose first argument is the mask, if it is the same in all blocks."""
        if self.representative:
            try:
                mask = cast(Mask | None, what[0])
                first = [
                    cut(one, mask if number else None) if isinstance(one, np.ndarray) else one
                    for number, one in enumerate(what)
                ]
                self.representative.keep(name, what, what)
            except BlocksDiffer:
                self._replay()
            else:
                if self.representative.notify(name, *first):
                    self._replay()
                return
        self._all(name, *what)

    # -- events -----------------------------------------------------------------------------

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site, representative = event.site, self.representative
        if representative and event.space not in ("shared", "cluster") and site.operation != PHASE:
            self.race.access(event)  # which asks nothing of the order in a block
            return
        if representative:
            try:
                first, tiled = representative.first.of(event)
                representative.keep_access(event, first, tiled)
            except BlocksDiffer:
                self._replay()
            else:
                if representative.notify("access", first):
                    self._replay()
                return
        self._all("access", event)

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """See ``Observer``."""
        one = events[0]
        if self.representative:
            try:
                first, _ = self.representative.first.of(one)
                some = events
                if first.address is not one.address or first.mask is not one.mask:
                    some = [e._replace(address=first.address, mask=first.mask) for e in events]
                self.representative.keep("grouped_loads", (sites, events), [one.address, one.mask])
            except BlocksDiffer:
                self._replay()
            else:
                if self.representative.notify("grouped_loads", sites, some):
                    self._replay()
                return
        self._all("grouped_loads", sites, events)

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``."""
        if self.representative and event.space not in ("shared", "cluster"):
            self.race.compact_access(event)
        elif self.representative:
            self.access(event.full)
        else:
            self._all("compact_access", event)

    def barrier(self, lanes: Mask | None, number: int, warps: int) -> None:
        """See ``Observer``."""
        self._each("barrier", lanes, number, warps)

    def arrive(self, lanes: Mask | None, number: int) -> None:
        """See ``Observer``."""
        self._each("arrive", lanes, number)

    def warp_sync(self, lanes: Mask | None, members: Lanes) -> None:
        """See ``Observer``."""
        self._each("warp_sync", lanes, members)

    def fence(self, lanes: Mask | None, reach: int) -> None:
        """See ``Observer``."""
        self._each("fence", lanes, reach)

    def proxy_fence(self, lanes: Mask | None) -> None:
        """See ``Observer``."""
        self._each("proxy_fence", lanes)

    def async_group(
        self, lanes: Mask | None, pending: int | None, queue: str, reads: bool, wait: Instruction
    ) -> None:
        """See ``Observer``."""
        self._each("async_group", lanes, pending, queue, reads, wait)

    def copies_arrive(self, lanes: Mask | None, base: Addresses, offset: int) -> None:
        """See ``Observer``."""
        self._each("copies_arrive", lanes, base, offset)

    def phase(self, lanes: Mask | None, base: Addresses, offset: int, wait: Instruction) -> None:
        """See ``Observer``."""
        self._each("phase", lanes, base, offset, wait)

    def cluster_arrive(self, lanes: Mask | None, releases: bool) -> None:
        """See ``Observer``."""
        self._each("cluster_arrive", lanes, releases)

    def cluster_wait(self, lanes: Mask | None) -> None:
        """See ``Observer``."""
        self._each("cluster_wait", lanes)

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        self._all("stuck", stall)
