"""Races with unused reads, in kernels whose compiler makes several threads read the same.

Triton distributes a small tensor over more threads than it has elements: all load, one thread of
each element stores. Values loaded by the others are unused, so that a race on them is harmless. So
is a write to a location whose value other lanes received earlier by a shuffle.
"""

import dataclasses
from typing import Any

import numpy as np

from ..analysis.shuffle_dependence import exchanged
from ..compile.compiler import compile_shadowed
from ..core.geometry import Flat, Geometry
from ..events import Dispatcher, Observer
from ..execute.batches import batches, run_batches
from ..execute.prepare import PreparedLaunch
from ..memory.definedness import DefinednessMemory
from ..memory.event import AccessEvent
from ..observe.checks.undefined_uses import UseFinder
from ..observe.observers import Observers
from ..races.accesses import lanes_of
from ..races.report.race_log import RaceGroup

_TRIED = 8
"""Groups of races that are looked at, at most."""


class _Storers(Observer):
    """Threads that execute some sites, by global number."""

    def __init__(self, sites: set[int]) -> None:
        self.sites, self.threads = sites, set[int]()

    def start(self, geometry: Geometry) -> None:
        """See ``Observer``."""
        self.geometry = geometry

    def access(self, event: AccessEvent) -> None:
        """See ``Observer``."""
        if event.site.number in self.sites and not event.repeated:
            lanes, g = lanes_of(self.geometry, event), self.geometry
            self.threads |= set((g.blocks[lanes.column] * g.threads + lanes.thread).tolist())


class _Memory(DefinednessMemory):
    """V-bit memory in which reads of some threads at some sites are undefined."""

    def __init__(self, threads: Flat, *of: Any) -> None:
        super().__init__(*of)
        self._threads = threads

    def start(self, geometry: Geometry) -> None:
        """See ``DefinednessMemory``."""
        super().start(geometry)
        g = geometry
        numbers = g.blocks[None, :] * g.threads + np.arange(g.threads)[:, None]
        readers = g.from_rows(np.isin(numbers, self._threads))
        self.readers = dict.fromkeys(self.wanted, readers)


def drop_idle_reads(launch: PreparedLaunch, observers: Observers, together: bool) -> None:
    """Drop races whose reads are unused, or used before they are overwritten.

    It applies to compilers that are known to do this (``Adapter.repeats``).
    """
    race_log = observers.findings.races.race_log
    groups, sites = race_log.groups, launch.program.sites
    for key, group in list(groups.items()):
        if group.space == "global" and group.reads and group.distance == "lane":
            writes, reads = ([sites[n] for n in side] for side in group.sides)
            after = not any(race_log.find_order().precedes(w, r) for w in writes for r in reads)
            if after and exchanged(launch.program, reads, writes):
                del groups[key]
    suspects = [
        (key, group)
        for key, group in groups.items()
        if group.space == "global" and group.reads and not group.pairs.full
        and all(n < len(sites) and sites[n].access == "load" and not sites[n].strong
                for n in group.sides[1])
    ]  # fmt: skip
    for key, group in suspects[:_TRIED]:
        readers = _idle_readers(launch, group, together)
        if readers.size and not _used(launch, readers, group.sides[1], together):
            del groups[key]
            observers.idle_reads = True


def _idle_readers(launch: PreparedLaunch, group: RaceGroup, together: bool) -> Flat:
    """Return threads that read and never store, if each racing pair has one."""
    storers = _Storers(group.sides[0])
    run_batches(
        launch, launch.allocations(), Dispatcher([storers]), batches(launch, together), together
    )
    stores = np.array(sorted(storers.threads), np.int64)
    pairs = group.pairs.threads()
    idle = ~np.isin(pairs, stores)
    return np.unique(pairs[idle]) if (idle.sum(axis=0) == 1).all() else stores[:0]


def _used(launch: PreparedLaunch, readers: Flat, reads: set[int], together: bool) -> bool:
    """Whether values read by some threads influence the outcome."""
    kernel, old = launch.kernel, launch.program
    program = compile_shadowed(kernel.ptx, kernel.entry, old)
    launch = dataclasses.replace(launch, program=program)
    allocations = launch.allocations()
    memory = _Memory(readers, program.layout, allocations, launch.shared_space, reads)
    finder = UseFinder(program, memory)
    todo = batches(launch, together)
    run_batches(launch, allocations, Dispatcher([finder]), todo, together, undefined=memory)
    return bool(finder.uses(launch))
