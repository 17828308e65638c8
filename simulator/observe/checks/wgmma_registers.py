"""Registers of a ``wgmma``: accesses while it is in flight, or without a ``wgmma.fence``.

``compile/passes/wgmma_dataflow.py`` finds instructions that may do so; this check follows at run
time whether the group has been waited for. All four warps of a warpgroup must execute a ``wgmma``
(PTX ISA, ``.aligned``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.ptx.module import Instruction

from ...compile.passes.wgmma_dataflow import OLDEST, OPEN, WgmmaRegisterUse
from ...compile.program import CompiledBlock
from ...core.geometry import WARP, Geometry, Mask, Rows, as_mask
from ...events import Observer, Stall
from ...hazards.findings import Findings

_GROUP = 4
"""Warps of a warpgroup."""


class ProductCheck(Observer):
    """Check of the products of a batch.

    Attributes:
        runs: For each product in flight, groups and lanes of its executions.
        made: Number of committed groups of each lane.
        done: Number of completed groups of each lane.
        last: Step at which each lane last executed a flight; 0: never.
        fenced: Step of its last fence.
        reported: For each product, the lanes with a report since.
    """

    def __init__(
        self,
        flights: Sequence[WgmmaRegisterUse],
        blocks: Sequence[CompiledBlock],
        findings: Findings,
    ) -> None:
        self.flights, self.blocks, self.findings = flights, blocks, findings
        self.geometry: Geometry

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry, self.now, self.stopped = geometry, 0, False
        shape = geometry.threads, geometry.columns
        self.made, self.done, self.fenced = (np.zeros(shape, np.int64) for _ in range(3))
        self.last: dict[int, Rows] = {}
        self.runs: dict[int, list[tuple[Rows, Rows]]] = {}
        self.reported: dict[int, Rows] = {}
        self.started = np.zeros(shape, bool)
        self.times: dict[int, Rows] = {}

    def registers(self, number: int, lanes: Mask | None) -> None:
        """See ``Observer``."""
        g, flight = self.geometry, self.flights[number]
        on = g.full(as_mask(lanes))
        self.now += 1
        if flight.what == "fence":
            self.fenced = np.where(on, self.now, self.fenced)
            return
        for product, ages in flight.ages.items():
            self._touched(flight, product, ages, on)
        if flight.what == "product":
            self._product(number, flight, on)
        never = np.zeros(on.shape, np.int64)
        self.last[number] = np.where(on, self.now, self.last.get(number, never))

    def _touched(
        self, flight: WgmmaRegisterUse, product: int, ages: frozenset[int], on: Rows
    ) -> None:
        reported = self.reported.get(product)
        for group, lanes in self.runs.get(product, ()):
            pending = on & lanes & (group >= self.done)
            if reported is not None:
                pending &= ~reported
            if not pending.any():
                continue
            age = np.where(group == self.made, OPEN, np.minimum(self.made - 1 - group, OLDEST))
            for open_ in (True, False):
                bad = pending & np.isin(age, list(ages)) & ((age == OPEN) == open_)
                if bad.any():
                    case = "ungrouped" if open_ else "registers"
                    self._report(case, flight, product, bad)
                    reported = bad if reported is None else reported | bad
                    self.reported[product] = reported

    def _report(self, case: str, other: WgmmaRegisterUse | None, product: int, lanes: Rows) -> None:
        """Report an access to registers of a product; without a product a fence was missing."""
        g = self.geometry
        how = "write" if other is None or other.writes else "read"
        if other and product in other.reads_a:
            how = "write of A"
        touching = other.instruction if other else None
        races, ins = self.findings.races, self.flights[product].instruction
        races.of_registers.add(case, how, ins, touching, g, g.from_rows(lanes))

    def _product(self, number: int, flight: WgmmaRegisterUse, on: Rows) -> None:
        g = self.geometry
        reported = ~on
        for touch in flight.touches:
            since = self.last.get(touch)
            bad = ~reported if since is None else ~reported & (since > self.fenced)
            if since is None or not bad.any():
                continue
            reported = reported | bad
            self._report("unfenced", self.flights[touch], number, bad)
        bad = ~reported & (self.fenced == 0) & ~self.started
        if bad.any():
            self._report("unfenced", None, number, bad)
        self.started |= on
        self.runs.setdefault(number, []).append((self.made.copy(), on.copy()))
        if number in self.reported:
            self.reported[number] &= ~on
        rows = np.zeros((-(-g.threads // (_GROUP * WARP)) * _GROUP * WARP, g.columns), bool)
        rows[: g.threads] = on
        some = rows.reshape(-1, WARP, g.columns).any(axis=1).astype(np.int64)
        self.times[number] = some + self.times.get(number, np.zeros_like(some))

    def async_group(
        self, lanes: Mask | None, pending: int | None, queue: str, reads: bool, wait: Instruction
    ) -> None:
        """See ``Observer``."""
        if queue != "product":
            return
        on = self.geometry.full(as_mask(lanes))
        if pending is None:
            self.made += on
            return
        self.done = np.where(on, np.maximum(self.done, self.made - pending), self.done)
        for number, runs in self.runs.items():
            self.runs[number] = [
                (group, which) for group, which in runs if (which & (group >= self.done)).any()
            ]

    def merge(self, other: ProductCheck) -> None:
        """See ``Observer``."""
        self.findings.races.of_registers.merge(other.findings.races.of_registers)

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        self.stopped = True

    def finish(self) -> None:
        """See ``Observer``; all warps of a warpgroup must execute a product equally often."""
        g = self.geometry
        for number, times in () if self.stopped else self.times.items():
            groups = times.reshape(-1, _GROUP, g.columns)
            more = (groups > groups.min(axis=1, keepdims=True)).reshape(-1, g.columns)
            if more.any():
                lanes = np.repeat(more, WARP, axis=0)
                block = self.blocks[self.flights[number].block]
                self.findings.control.event("warpgroup", block, g.from_rows(lanes), "")
