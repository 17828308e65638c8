"""Strong reads that may order accesses, as far as the program's text says it.

A warp's scan through ``volatile`` shared memory reads what a block's next barrier orders anyway, if
nothing releases more than the written value: there are no fences and no releasing writes, and every
barrier is one of all threads of a block. Such reads are *confined*. Atomics are not, which may be
locks.
"""

from __future__ import annotations

from collections.abc import Set

from ..compile.ir import BarrierOp, FenceOp
from ..compile.ir_values import Constant
from ..compile.program import Program
from .influence import ForwardSlices


def confined_reads(program: Program, clusters: bool) -> frozenset[int]:
    """Return the synchronising reads that order nothing where they read shared memory.

    ``clusters``: whether blocks access each other's shared memory.
    """
    return frozenset() if clusters else program.analysis(_confined)


def controls_what_it_reads(program: Program) -> bool:
    """Whether a confined read controls a weak access, or a store, to the location it reads."""
    return program.analysis(_has_returning_reads)


def _confined(program: Program) -> frozenset[int]:
    steering, sites = program.analysis(ForwardSlices), program.sites
    near = frozenset(n for n in steering.synchronising_reads if sites[n].space != "global")
    if not all(sites[number].volatile for number in near):
        return frozenset()
    return near if near and _releases_writes_alone(program) else frozenset()


def _has_returning_reads(program: Program) -> bool:
    reads = program.analysis(_confined)
    return bool(returning_reads(program.analysis(ForwardSlices), reads, stores=True))


def returning_reads(
    steering: ForwardSlices, reads: Set[int], stores: bool = False
) -> frozenset[int]:
    """Return the reads that control a weak access to the location that they read.

    The write that such a read finds precedes the access with no barrier in between. ``stores``:
    strong stores count, too.
    """
    sites, same = steering.program.sites, steering.same_place
    found = [one for one in sites if not one.strong or (stores and one.access == "store")]
    return frozenset(
        read
        for read in reads
        for site in found
        if steering.guards(sites[read], site) and same(sites[read], site)
    )


def _releases_writes_alone(program: Program) -> bool:
    """Whether a program has no fence, no release, and no barrier of a part of a block."""
    if any(site.releases or site.acquires or site.order for site in program.sites):
        return False
    for block in program.blocks:
        end = block.lowered.end
        if isinstance(end, BarrierOp) and not _is_of_a_block(end):
            return False
        if any(isinstance(step, FenceOp) for step in block.steps):
            return False
    return True


def _is_of_a_block(barrier: BarrierOp) -> bool:
    """Whether all threads of a block wait at a barrier."""
    if barrier.cluster or not barrier.waits:
        return False
    threads = barrier.sources[1].value  # 0: all
    return isinstance(threads, Constant) and not threads.value
