"""Which launches native code may take; a reason in words for those that it does not."""

from __future__ import annotations

import math
from collections.abc import Collection

from ..compile.program import Program
from ..core.geometry import WARP
from ..core.machine_memory import physical_bytes
from ..execute.machine import flow_map
from ..execute.prepare import PreparedLaunch
from ..memory.site import Site
from ..memory.storage.layout import HEAP
from ..memory.storage.spaces import Allocation
from .atomic_classes import operation_number, order_words, orders_matter

_SPACES = ("global", "const", "param", "shared", "local", "generic")
MAX_HEADS = 62
_SHADOW_SHARE = 4
"""One in so many bytes of the machine's memory may be the slots of several threads."""


def is_one_warp(launch: PreparedLaunch) -> bool:
    """Whether a launch has one warp at most, whose lanes' order is the same in both engines."""
    return math.prod(launch.grid) == 1 and math.prod(launch.block) <= WARP


def why_not_program(program: Program) -> str:
    """Why no launch of a program is native, but for instructions; empty if launches may be."""
    if program.layout.reserved:
        return "shared memory that the system reserves"
    if {block.called for block in program.blocks} & {"malloc", "free"}:
        return "memory from malloc"
    if any(block.group for block in program.blocks):
        return "functions that call themselves"
    if program.watched is not None or program.flights:
        return "a trace, or wgmma"
    flow = program.analysis(flow_map)
    if flow.orders:
        return "barriers that warps may come to in several orders"
    if any(
        b.terminator_kind == "barrier" and b.block.function is not program.entry
        for b in program.blocks
    ):
        return "a barrier in a function that is called"
    if len(flow.heads) > MAX_HEADS:
        return "too many loops about barriers"
    for site in program.sites:
        if why := _why_not_site(site):
            return why
    return ""


def _why_not_site(site: Site) -> str:
    what = site.instruction.name
    odd = site.asynchronous or site.bulk is not None or site.is_image or site.order
    if odd or site.lanes != WARP or site.space not in _SPACES or not site.traffic:
        return what
    if site.nbytes > 16 or site.count not in (1, 2, 4):
        return what
    if site.access != "atomic":
        return ""
    if operation_number(site) is None or site.space in ("local", "const", "param"):
        return f"{what}: an atomic of this kind"
    return (
        f"{what}: a scope below the device"
        if site.has_narrow_scope and site.space != "shared"
        else ""
    )


def why_not_launch(
    launch: PreparedLaunch, checks: Collection[str], allocations: dict[int, Allocation]
) -> str:
    """Why a launch is not native, whatever its program is; empty if it may be."""
    if launch.schedule != "lockstep":
        return "another schedule than lockstep"
    if launch.cooperative or math.prod(launch.cluster) > 1 or launch.clustered:
        return "blocks that wait for each other, or clusters"
    if launch.pointers.names:
        return "restricted pointers to one array"
    if HEAP in allocations:
        return "memory from malloc"
    for allocation in allocations.values():
        missing = allocation.missing
        scattered = missing is not None and (missing.itemsize > 1 or not missing.flags.c_contiguous)
        if allocation.unfilled or scattered:
            return f"{allocation.name}: memory that nothing fills"
        if allocation.valid is not None or allocation.pictures:
            return f"{allocation.name}: an array with gaps, a texture or a surface"
    if max_threads(launch, checks, allocations) < 1:
        return "arrays too large for the race filter"
    return ""


def max_threads(
    launch: PreparedLaunch, checks: Collection[str], allocations: dict[int, Allocation]
) -> int:
    """Return for how many threads there is memory: each records accesses by itself.

    Pages of slots that nothing touches take none, and few launches touch all; so there is enough
    for one thread until ``MemoryWatch`` says otherwise.
    """
    grain = launch.granules.array
    writable = [a.nbytes for a in allocations.values() if a.writable]
    each = sum(-(-n // grain) * 16 for n in writable) if "races" in checks else 0
    if orders_matter(launch.program) and not is_one_warp(launch):
        each += 8 * sum(map(order_words, writable))
    count = physical_bytes() // max(each * _SHADOW_SHARE, 1)
    return count or int(each < physical_bytes())
