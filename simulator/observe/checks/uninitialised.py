"""Uninitialised reads of constant, global and local memory, and of inactive lanes' registers.

Shared memory is checked in ``races``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.ptx.module import Instruction, Line

from ...compile.program import CompiledBlock
from ...core.geometry import NO_LANE, Flat, Geometry, InactiveLaneRead, Mask
from ...events import Observer
from ...hazards.findings import Findings
from ...hazards.sources import Who
from ...isa.memory.address_windows import WINDOWS
from ...memory.event import AccessEvent, LaneAddressList
from ...memory.site import Site, text_site
from ...memory.storage.spaces import Allocation, InterleavedMemory
from ...memory.storage.word_ops import unique
from ...races.accesses import flatten


def _printed(block: CompiledBlock, space: str) -> Site:
    return text_site(block.block.instructions[-1], block.block.function.name, space, block.number)


def _thread(g: Geometry, lane: tuple[int, ...]) -> tuple[Flat, Flat]:
    """Return a lane's thread in its block, and the block's column."""
    return g.thread_ids[(*lane[:3], 0)].reshape(1), np.array(lane[3:])


class ConstantCheck(Observer):
    """Check of reads of constant variables that were never set; each site is reported once."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.reads: dict[int, tuple[Site, str, Who]] = {}

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        home, site = event.home, event.site
        if isinstance(home, Allocation) and home.unfilled and site.number not in self.reads:
            who = Who().add(self.findings.geometry, event.mask)
            self.reads[site.number] = site, home.name, who

    def merge(self, other: ConstantCheck) -> None:
        """See ``Observer``."""
        for number, read in other.reads.items():
            self.reads.setdefault(number, read)

    def end(self) -> None:
        """See ``Observer``."""
        for read in self.reads.values():
            self.findings.unset_constant(*read)


class GlobalCheck(Observer):
    """Check of global memory that neither the host nor a kernel has written."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        home, site = event.home, event.site
        if not isinstance(home, Allocation) or home.missing is None:
            return
        g = self.findings.geometry
        lanes = flatten(g, site, event.address, event.mask, g.columns)
        places = (lanes.address - home.base)[:, None] + np.arange(site.nbytes)
        if site.access != "store":
            missing = home.missing[places]
            bad = np.flatnonzero(missing.any(axis=1))
            if bad.size:
                elements = places[missing] // site.size
                thread, column = lanes.thread[bad], lanes.column[bad]
                self.findings.uninitialised_global(
                    site, home.number, home.name, elements, thread, column
                )
        if site.access != "load":
            home.define(places)

    def string_read(
        self, block: CompiledBlock, lane: tuple[int, ...], address: int, nbytes: int,
        home: Allocation | None,
    ) -> None:  # fmt: skip
        """See ``Observer``."""
        if home and home.missing is not None:
            elements = address - home.base + np.arange(nbytes)
            missing = elements[home.missing[elements]]
            if missing.size:
                thread, column = _thread(self.findings.geometry, lane)
                site = _printed(block, "global")
                self.findings.uninitialised_global(
                    site, home.number, home.name, missing, thread, column
                )


class LocalCheck(Observer):
    """Check of local memory that was not written."""

    def __init__(self, findings: Findings, granule: int, nbytes: int) -> None:
        self.findings, self.granule = findings, granule
        self.count = -(-nbytes // granule)

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``; nothing is written at the start."""
        self.geometry = geometry
        self.whole = np.zeros(self.count, bool)
        self.lanes: dict[int, Mask] = {}

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        if event.space != "local" or isinstance(event.address, LaneAddressList):
            return
        site, address, mask, home = event.site, event.address, event.mask, event.home
        assert isinstance(home, InterleavedMemory)
        full = None
        if not address.ndim:
            rows = [int(address)]
        else:
            shape = self.geometry.shape
            full = address if address.shape == shape else np.broadcast_to(address, shape)
            chosen = address
            if mask is not None:  # lanes that are off may hold anything
                chosen = full[mask if mask.shape == shape else np.broadcast_to(mask, shape)]
            rows = unique(chosen).tolist()
        for row in rows:
            first = (row + site.offset) // self.granule
            end = first + max(1, site.nbytes // self.granule)
            if self.whole[max(0, first) : end].all():  # written by all, or none of ours
                continue
            lanes = mask
            if full is not None and (len(rows) > 1 or mask is not None):
                here = full == row
                lanes = here if mask is None else here & mask
            if lanes is None and site.access != "load":
                self.whole[first:end] = True
                continue
            for granule in range(max(0, first), min(end, len(self.whole))):
                if site.access == "load":
                    self._read(site, granule, lanes)
                elif not self.whole[granule]:
                    assert lanes is not None
                    known = self.lanes.get(granule)
                    self.lanes[granule] = lanes if known is None else known | lanes

    def string_read(
        self, block: CompiledBlock, lane: tuple[int, ...], address: int, nbytes: int,
        home: Allocation | None,
    ) -> None:  # fmt: skip
        """See ``Observer``."""
        start = address - WINDOWS["local"]
        if not 0 <= start < self.count * self.granule:
            return
        for granule in range(start // self.granule, -(-(start + nbytes) // self.granule)):
            known = np.broadcast_to(self.lanes.get(granule, NO_LANE), self.geometry.shape)
            if not self.whole[granule] and not known[lane]:
                thread, column = _thread(self.geometry, lane)
                where = np.array([max(granule * self.granule, start)])
                site = _printed(block, "local")
                self.findings.uninitialised("local", site, where, thread, column, column)
                break

    def frame_cleared(self, lanes: Mask | None, places: Sequence[range]) -> None:
        """See ``Observer``."""
        for place in places:
            first, last = -(-place.start // self.granule), place.stop // self.granule
            whole = first + np.flatnonzero(self.whole[first:last])
            for granule in [*whole.tolist(), *(n for n in self.lanes if first <= n < last)]:
                known = NO_LANE if lanes is None else ~lanes
                if not self.whole[granule]:
                    known = self.lanes[granule] & known
                self.whole[granule], self.lanes[granule] = False, known

    def _read(self, site: Site, granule: int, lanes: Mask | None) -> None:
        if self.whole[granule]:
            return
        known = self.lanes.get(granule, NO_LANE)
        missing = ~known if lanes is None else lanes & ~known
        if missing.any():
            g = self.geometry
            full = np.broadcast_to(missing, g.shape).reshape(g.threads, g.columns)
            thread, column = np.nonzero(full)
            address = np.full(len(thread), granule * self.granule)
            self.findings.uninitialised("local", site, address, thread, column, column)


class ShuffleCheck(Observer):
    """Check of reads of inactive lanes' registers, by source line.

    Attributes:
        reads: For each line an example instruction, the lowest block for each pair of lanes
            (``InactiveLaneRead.reads``), and the number of reads.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.reads: dict[Line, tuple[Instruction, dict[int, int], int]] = {}

    def inactive_lane_read(self, read: InactiveLaneRead) -> None:
        """See ``Observer``."""
        g = self.findings.geometry
        column, thread = np.nonzero(g.full(read.lanes).T)
        numbers = g.full(read.reads(g))[thread, column]
        reads, first = np.unique(numbers, return_index=True)
        blocks = g.blocks[column[first]].tolist()
        ins = read.instruction
        self._add(ins, dict(zip(reads.tolist(), blocks, strict=True)), len(numbers))

    def _add(self, ins: Instruction, blocks: dict[int, int], count: int) -> None:
        known = self.reads.get(ins.user_line)
        if known is not None:
            ins = min(known[0], ins, key=lambda ins: ins.line)
            blocks = {**blocks, **known[1]}
            count += known[2]
        self.reads[ins.user_line] = ins, blocks, count

    def merge(self, other: ShuffleCheck) -> None:
        """See ``Observer``."""
        for read in other.reads.values():
            self._add(*read)
