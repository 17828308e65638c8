"""Batches: the grid's blocks, executed some at a time."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from kernels.arguments.convert import MAX_RESIDENT, MAX_RESIDENT_BLOCKS, Dim3

from ..compile.codegen.emit import VOCABULARY
from ..compile.lower.values import parameter_name
from ..compile.program import Program
from ..core.clusters import blocks_of
from ..core.geometry import (
    Flat,
    Geometry,
    InactiveLaneRead,
    Lanes,
    UndefinedValueSource,
    WarpView,
    as_mask,
)
from ..events import Awaited, Callbacks, Dispatcher, LoopPosition, all_of
from ..isa import DTYPES
from ..isa.decoded import roles
from ..isa.memory.mbarrier import to_come
from ..memory.access import Access
from ..memory.bulk import tensor_copy
from ..memory.definedness import DefinednessMemory
from ..memory.grouped_loads import AllLoads
from ..memory.images import textures
from ..memory.memories import AddressSpaces
from ..memory.storage.layout import PARAMETERS, WORKSPACE, array_address
from ..memory.storage.spaces import Allocation
from .calls.special_registers import SpecialRegisters
from .machine import Machine
from .prepare import PreparedLaunch
from .sync.blocked_lanes import NoProgress

LANES = 1 << 16
_SHARED_BYTES = 64 << 20
_LOCAL_BYTES = 256 << 20
"""A batch is this many lanes at most: registers stay in the cache (measured best between
2**15 and 2**16), and memory stays bounded whatever the grid."""

_TOGETHER = 1 << 22
"""Lanes of a grid that may run as one batch, where its blocks wait for each other; of a larger
one as many as a GPU may hold."""

_PAIRS = 1 << 22
"""Pairs of threads of one block, in all blocks of a batch, whose order is kept for mbarriers."""

Progress = Callable[[int, int], None]
"""Takes blocks done, and blocks in all."""


class InterBlockWait(Exception):
    """Blocks spin for blocks of another batch; all of them have to be in one batch."""


def batches(launch: PreparedLaunch, together: bool = False) -> Iterator[Flat]:
    """Yield the block numbers of each batch: whole clusters, ascending.

    ``together``: one batch, as far as memory allows, because blocks wait for each other.
    """
    clusters = _count(launch.grid) // _count(launch.cluster)
    return pieces(launch, 0, clusters, batch_size(launch, together))


def pieces(launch: PreparedLaunch, first: int, last: int, size: int) -> Iterator[Flat]:
    """Yield the batches of a range of clusters; ``size``: clusters of a batch."""
    for begin in range(first, last, size):
        yield blocks_of(begin, min(begin + size, last), launch.grid, launch.cluster)


def batch_size(launch: PreparedLaunch, together: bool = False) -> int:
    """Return the clusters of a batch; ``together``: its blocks wait for each other."""
    total, threads = _count(launch.grid), _count(launch.block)
    shared, local = launch.shared_space, launch.program.layout.local_bytes
    size = min(total, max(1, LANES // threads))
    if together:
        size = total
        if total * threads > _TOGETHER or total * shared > 16 * _SHARED_BYTES:
            size = min(total, max(1, MAX_RESIDENT // threads), MAX_RESIDENT_BLOCKS)
    elif shared:
        size = min(size, max(1, _SHARED_BYTES // shared))
    if any(site.order for site in launch.program.sites) and not together:
        size = min(size, max(1, _PAIRS // threads**2))
    if local and not together:
        size = min(size, max(1, _LOCAL_BYTES // (local * threads)))
    return max(size // _count(launch.cluster), 1)


def run_batches(
    launch: PreparedLaunch,
    allocations: dict[int, Allocation],
    dispatcher: Dispatcher,
    batches: Iterable[Flat],
    together: bool = False,
    progress: Progress | None = None,
    undefined: DefinednessMemory | None = None,
    instead: UndefinedValueSource | None = None,
    blank: bool = False,
) -> None:
    """Execute some batches of a launch in sequence.

    ``allocations``: global memory, updated in place.
    ``together``: whether the batch holds all blocks that could ever run concurrently.
    ``undefined``: V bits of memory, for a program that computes V bits. ``instead``: supplies
    values for registers of inactive lanes; without it these reads are reported. ``blank``: matrix
    products are zeros.

    Raises:
        InterBlockWait: A batch spins for ever, and might not if all blocks were in one batch.
    """
    program, total = launch.program, _count(launch.grid)
    memories = AddressSpaces(
        program.layout, allocations, launch.shared_space, dispatcher.access, dispatcher.bad_access
    )
    memories.bulk_copy_callbacks = dispatcher.bulk_copied
    memories.is_unreached = launch.arguments.is_unreached
    instead = instead or functools.partial(_read_inactive_lane, dispatcher.inactive_lane_read)
    accesses = [Access(site, memories) for site in program.sites]
    specials = SpecialRegisters()
    names = dict(VOCABULARY)
    names |= {f"{a.site.access}_{a.site.number}": getattr(a, a.site.access) for a in accesses}
    names["loads"] = loads = AllLoads(accesses, memories, dispatcher.grouped_loads)
    names |= _parameters(program, allocations[PARAMETERS])
    if undefined:
        names |= undefined.accesses(program.sites, memories)
        memories.looked = undefined.looked
    names |= {"S": specials, "trace": all_of(dispatcher.traced)}
    names |= {"registers": all_of(dispatcher.registers)}
    names |= {"tally": all_of(dispatcher.arithmetic), "fence": all_of(dispatcher.fence)}
    names |= {
        "copies": all_of(dispatcher.async_group),
        "copies_arrive": all_of(dispatcher.copies_arrive),
    }
    names |= {"phase": all_of(dispatcher.phase), "proxy_fence": all_of(dispatcher.proxy_fence)}
    for site in program.sites:
        if site.bound:
            bound = textures.bind if site.is_image else tensor_copy.bind
            names[f"bulk_{site.number}"] = bound(site, memories)

    def forget() -> None:
        for access in accesses:
            access.forget()
        loads.forget()

    if memories.heap:
        memories.heap.changed = forget
    machine = Machine(
        program, names, launch.order(), dispatcher, memories, launch.step_limit,
        None if undefined else accesses,
    )  # fmt: skip
    faster = program.substitutes.used_in(names) if launch.substituted else contextlib.nullcontext()
    with np.errstate(all="ignore"), contextlib.closing(machine), faster:
        for numbers in batches:
            geometry = Geometry(launch.grid, launch.block, numbers, launch.cluster)
            forget()
            memories.start(geometry)
            if undefined:
                undefined.start(geometry)
            sizes = launch.shared_bytes, launch.dynamic_bytes
            specials.start(geometry, *sizes, launch.clustered)
            if launch.cooperative:
                at = array_address(WORKSPACE)
                specials |= {"%envreg1": np.int32(at >> 32), "%envreg2": np.int32(at & 0xFFFFFFFF)}
            names["plus"] = geometry.moves.add
            names["W"] = functools.partial(WarpView, geometry, instead=instead, blank=blank)
            for callback in dispatcher.start:
                callback(geometry)
            part = len(numbers) < total
            try:
                machine.run(geometry, part and not together)
            except NoProgress as stuck:
                if stuck.why in ("repeats", "idle") and machine.has_later_batches:
                    raise InterBlockWait from None
                stall = machine.stall(stuck)
                stall.part = len(numbers) if part else 0
                there = geometry.full(as_mask(machine.state.alive)).any(axis=0)
                stall.staying = np.flatnonzero(there).tolist()
                stall.loops = [_with_phase(loop, accesses, geometry) for loop in stall.loops]
                for callback in dispatcher.stuck:
                    callback(stall)
            for callback in dispatcher.finish:
                callback()
            if progress:
                progress(int(numbers[-1]) + 1, total)


def _read_inactive_lane(callbacks: Callbacks, _: Geometry, read: InactiveLaneRead) -> Lanes:
    for callback in callbacks:
        callback(read)
    return read.found


def _with_phase(loop: LoopPosition, accesses: Sequence[Access], geometry: Geometry) -> LoopPosition:
    """Return a loop with the ``mbarrier`` phase that its lanes test, if they do."""
    wait = loop.instruction
    asks = roles(wait).row.phase == "wait"
    for access in accesses if asks else ():
        if access.site.instruction is wait and access.base is not None:
            asked = geometry.full(as_mask(access.mask))  # last: others of the loop did before
            these = asked & geometry.full(as_mask(loop.lanes))
            first = int(np.argmax((these if these.any() else asked).T))
            (state,) = access.index.load()
            arrivals, pending, nbytes = to_come(int(geometry.full(state).T.reshape(-1)[first]))
            return loop._replace(awaited=Awaited(arrivals, arrivals - pending, nbytes))
    return loop


def _parameters(program: Program, allocation: Allocation) -> dict[str, object]:
    """Return the kernel's scalar parameters, by their names in generated code."""
    buffer = allocation.content()
    return {
        parameter_name(offset, type): np.frombuffer(buffer, DTYPES[type], 1, offset)[0]
        for offset, type in program.params
    }


def _count(shape: Dim3) -> int:
    return shape[0] * shape[1] * shape[2]
