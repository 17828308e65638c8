"""The checks of a launch, wired to what the machine and the memories tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from .execute.waiting import Apart, Waiting
from .geometry import Geometry
from .hazards.findings import Findings
from .memory.access import Event
from .memory.site import Site
from .memory.spaces import Allocation, ColumnMemory
from .observe.trace import Trace
from .races.accesses import flatten
from .races.detector import RaceCheck


class Checks:
    """Listens to the machine, and hands on to the checks that are on."""

    def __init__(
        self, findings: Findings, races: RaceCheck | None, barriers: bool, trace: Trace | None
    ) -> None:
        self.findings, self.races, self.barriers = findings, races, barriers
        self.trace = trace

    def barrier(self, waits: list[Waiting], lanes: Any, alive: Any) -> None:
        """See ``machine.Listener``."""
        if self.trace:
            self.trace.release(lanes)
        if self.races:
            self.races.barrier(lanes, _number(waits[0], lanes))

    def apart(self, apart: Apart) -> None:
        """See ``machine.Listener``."""
        if self.barriers:
            self.findings.control.apart(apart)

    def arrive(self, lanes: Any, number: int) -> None:
        """See ``machine.Listener``."""
        if self.races:
            self.races.arrive(lanes, number)

    def warp_sync(self, lanes: Any, members: Any) -> None:
        """See ``machine.Listener``."""
        if self.races:
            self.races.warp_sync(lanes, members)

    def event(self, name: str, block: Any, lanes: Any) -> None:
        """See ``machine.Listener``."""
        if name == "trap":
            self.findings.trap(block.block.end)
        self.findings.control.event(name, block, lanes)

    def fence(self, lanes: Any, wide: bool) -> None:
        """A memory fence, or an access that is one as well; ``wide``: of device scope or more."""
        if self.races:
            self.races.fence(lanes, wide)


def _number(wait: Waiting, lanes: Any) -> int:
    """The barrier's number, which is the same for all lanes that it let go."""
    if wait.number.ndim == 0 or lanes is None:
        return int(wait.number.reshape(-1)[0])
    shape = np.broadcast_shapes(wait.number.shape, lanes.shape)
    return int(np.broadcast_to(wait.number, shape)[np.broadcast_to(lanes, shape)][0])


class ConstantCheck:
    """Observer: reads of constant variables that nothing fills."""

    def __init__(self, findings: Findings, unset: frozenset[int]) -> None:
        self.findings, self.unset = findings, unset
        self.told: set[int] = set()

    def access(self, event: Event) -> None:
        """See ``AccessObserver``; a site is told of once."""
        home, site = event.home, event.site
        if event.space == "global" and home.number in self.unset and site.number not in self.told:
            self.told.add(site.number)
            self.findings.unset_constant(site, home.name, event.mask)


class GlobalCheck:
    """Observer: reads of global memory that nothing wrote, neither the host nor a kernel."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def access(self, event: Event) -> None:
        """See ``AccessObserver``."""
        home, site = event.home, event.site
        if not isinstance(home, Allocation) or home.missing is None:
            return
        g = self.findings.geometry
        lanes = flatten(g, site, event.address, event.mask, g.columns)
        places = (lanes.address - home.base)[:, None] + np.arange(site.width)
        if site.kind != "store":
            missing = home.missing[places]
            bad = np.flatnonzero(missing.any(axis=1))
            if bad.size:
                elements = places[missing] // site.size
                self.findings.unset(site, home.name, elements, lanes.thread[bad], lanes.column[bad])
        if site.kind != "load":
            home.missing[places] = False


class LocalCheck:
    """Observer: reads of local memory that nothing wrote."""

    def __init__(self, findings: Findings, granule: int) -> None:
        self.findings, self.granule = findings, granule

    def start(self, geometry: Geometry, nbytes: int) -> None:
        """A new batch begins: nothing is written."""
        self.geometry = geometry
        count = -(-nbytes // self.granule)
        self.whole = np.zeros(count, bool)
        self.lanes: dict[int, Any] = {}

    def access(self, event: Event) -> None:
        """See ``AccessObserver``."""
        if event.space != "local":
            return
        site, address, mask, home = event.site, event.address, event.mask, event.home
        assert isinstance(home, ColumnMemory)
        full = np.broadcast_to(address, self.geometry.shape) if address.ndim else None
        if full is None:
            rows = [int(address)]
        elif mask is None:
            rows = np.unique(address).tolist()
        else:  # lanes that are off may hold anything
            rows = np.unique(full[np.broadcast_to(mask, full.shape)]).tolist()
        for row in rows:
            lanes = mask
            if full is not None and (len(rows) > 1 or mask is not None):
                here = full == row
                lanes = here if mask is None else here & mask
            first = (row + site.offset) // self.granule
            for granule in range(first, first + max(1, site.width // self.granule)):
                if site.kind == "load":
                    self._read(site, granule, lanes)
                else:
                    self._write(granule, lanes)

    def _write(self, granule: int, lanes: Any) -> None:
        if lanes is None:
            self.whole[granule] = True
        elif not self.whole[granule]:
            known = self.lanes.get(granule)
            self.lanes[granule] = lanes if known is None else known | lanes

    def _read(self, site: Site, granule: int, lanes: Any) -> None:
        if not 0 <= granule < len(self.whole) or self.whole[granule]:
            return
        known = self.lanes.get(granule, np.bool_(False))
        missing = np.broadcast_to(~known if lanes is None else lanes & ~known, self.geometry.shape)
        if missing.any():
            g = self.geometry
            thread, column = np.nonzero(missing.reshape(g.threads, g.columns))
            address = np.full(len(thread), granule * self.granule)
            self.findings.uninitialised("local", site, address, thread, column)
