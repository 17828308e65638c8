"""Root causes: findings that exist only because of undefined values or out-of-bounds reads.

The launch is repeated with V bits of all values (``compile.passes.definedness``). Its checks
receive no accesses at undefined addresses, none that an undefined branch controls, and none out of
bounds. Their findings do not depend on undefined values; all other findings of the first run follow
from these (``hazards.folding``).
"""

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from ..compile.compiler import compile_shadowed
from ..compile.program import Program
from ..core.geometry import NO_LANE, Geometry, Lanes, Mask, as_mask
from ..events import BarrierDivergence, Observer, Stall, all_of
from ..execute.prepare import PreparedLaunch
from ..memory.bulk.bulk_copy import BulkTransfer
from ..memory.definedness import DefinednessMemory
from ..memory.event import AccessEvent, BadAccess, CompactAccessEvent, LaneAddressList
from ..memory.site import Site
from ..memory.storage.spaces import Allocation
from ..observe.observers import Observers
from ..races.accesses import PrecisionPlan
from .repetition import run_again


class _Without(Observer):
    """Filter between a launch and its observers that drops events decided by undefined values."""

    def __init__(self, program: Program, observers: Observers, memory: DefinednessMemory) -> None:
        self.memory, self.steering = memory, observers.findings.races.steering
        dispatcher = observers.dispatcher
        self.observed = {name: all_of(getattr(dispatcher, name))
                     for name in ("access", "bad_access", "barrier_divergence",
                     "stuck")}  # fmt: skip
        for name in ("start", "block_executed", "frame_cleared", "bulk_copied"):
            setattr(dispatcher, name, (getattr(self, name), *getattr(dispatcher, name)))
        for name in (*self.observed, "grouped_loads", "compact_access", "traced"):
            setattr(dispatcher, name, (getattr(self, name),))
        self.lines = [ins.line for ins in program.uses]
        self.numbers: dict[int, list[int]] = defaultdict(list)
        for number, line in enumerate(self.lines):
            self.numbers[line].append(number)
        self.terminator_lines = [
            block.block.end and block.block.end.line for block in program.blocks
        ]
        self.changed = set[int]()

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``; ``undefined``: lanes by number of the use.

        ``ways``: lanes by branch.
        """
        self.geometry, self.block = geometry, 0
        self.undefined: dict[int, Mask] = {}
        self.ways: dict[int, Mask] = {}

    def block_executed(self, block: int, threads: int, warps: int) -> None:
        """See ``Observer``."""
        self.block = block

    def frame_cleared(self, lanes: Mask | None, places: Sequence[range]) -> None:
        """See ``Observer``."""
        self.memory.frame_cleared(lanes, places)

    def bulk_copied(self, site: Site, moved: Sequence[BulkTransfer]) -> None:
        """See ``Observer``."""
        self.memory.bulk_copied(site, moved)

    def traced(self, number: int, lanes: Mask | None, base: object, *values: Lanes) -> None:
        """See ``Observer``; the values are V bits."""
        on, bad = as_mask(lanes), NO_LANE
        for bits in values:
            bad = bad | (on & (bits != 0))
        for known, key in ((self.undefined, number), (self.ways, self.block)):
            branches = self.terminator_lines[self.block] == self.lines[number]
            if (known is self.undefined or branches) and (key in known or bad.any()):
                known[key] = (known.get(key, NO_LANE) & ~on) | bad

    def _astray(self, site: Site) -> Mask:
        """Return the lanes whose access undefined values control."""
        found = NO_LANE
        for number in self.numbers[site.instruction.line]:
            found = found | self.undefined.get(number, NO_LANE)
        for branch in self.steering.decide(site.block) if self.ways else ():
            found = found | self.ways.get(branch, NO_LANE)
        return found

    # -- what is passed on --------------------------------------------------------

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        site, astray = event.site, self._astray(event.site)
        if site.object_bounds is not None and event.space == "shared" and event.columns is None:
            at = event.address
            if not isinstance(at, LaneAddressList):
                at = at + np.int64(site.offset)
                astray = astray | (at < site.object_bounds[0]) | (at >= site.object_bounds[1])
        remaining = as_mask(event.mask) & ~astray
        if bool((as_mask(event.mask) & astray).any()):
            self.changed.add(site.number)
            if remaining.any():
                self.observed["access"](event._replace(mask=remaining, repeated=False))
            return
        if site.number in self.changed:
            self.changed.discard(site.number)
            event = event._replace(repeated=False)
        self.observed["access"](event)

    def grouped_loads(self, sites: tuple[Site, ...], events: Sequence[AccessEvent]) -> None:
        """See ``Observer``."""
        for event in events:
            self.access(event)

    def compact_access(self, event: CompactAccessEvent) -> None:
        """See ``Observer``."""
        self.access(event.full)

    def bad_access(self, bad: BadAccess) -> None:
        """See ``Observer``."""
        if bad.mask is None or (bad.mask & ~self._astray(bad.site)).any():
            self.observed["bad_access"](bad)

    def barrier_divergence(self, divergence: BarrierDivergence) -> None:
        """See ``Observer``."""
        if not self._follows(divergence):
            self.observed["barrier_divergence"](divergence)

    def _follows(self, divergence: BarrierDivergence) -> bool:
        """Whether undefined values diverted all missing threads."""
        return bool(divergence.branches) and all(
            not (branch.lanes & ~self.ways.get(branch.block.number, NO_LANE)).any()
            for branch in divergence.branches
        )

    def stuck(self, stall: Stall) -> None:
        """See ``Observer``."""
        waiting = [divergence for divergence in stall.waiting if not self._follows(divergence)]
        if waiting or stall.loops:
            self.observed["stuck"](dataclasses.replace(stall, waiting=waiting))


def look_for_causes(
    launch: PreparedLaunch,
    observers: Observers,
    checks: Collection[str],
    precision: PrecisionPlan,
    together: bool,
) -> None:
    """Find the findings that are independent of undefined values, if there are such values."""
    findings = observers.findings
    hazards = findings.hazards()
    if len({hazard.row.causes for hazard in hazards}) < 2:
        return
    kernel, old = launch.kernel, launch.program
    program = compile_shadowed(kernel.ptx, kernel.entry, old)
    launch = dataclasses.replace(launch, program=program, counted=False)

    def attach(without: Observers, allocations: dict[int, Allocation]) -> DefinednessMemory:
        memory = DefinednessMemory(
            program.layout, allocations, launch.shared_space, findings.used_uninitialised_sites()
        )
        memory.strays = True
        _Without(program, without, memory)
        return memory

    without = run_again(launch, checks, precision, together, attach)
    if without is not None:
        findings.independent = without.findings.hazards()
