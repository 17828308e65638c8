"""Blocks of a launch, one after the other; of each its warps, from barrier to barrier."""

from ..intrinsics import call_kernel, fill, load64, lowest_bit, store64
from ..layout import (
    ABOUT,
    AHEAD,
    ALIVE,
    BARRIER_APART,
    BEGIN,
    BLOCK,
    BLOCK_X,
    BLOCK_Y,
    BLOCK_Z,
    BLOCKS,
    DONE,
    EPOCH,
    EXISTING,
    FRAME_BYTES,
    FRAME_START,
    FRAMES,
    GAVE_UP,
    GRID_X,
    GRID_Y,
    HEADS,
    HELD_FOR_EVER,
    INTERVAL,
    KERNEL,
    LAST,
    LOCAL,
    LOCAL_BYTES,
    LOCAL_DEFINED,
    MAX_THREADS,
    MAX_TURNS,
    MOMENT_DEPTH,
    OTHERS,
    PARAMETERS,
    PAUSED,
    POINTS,
    ROUNDS,
    RUNNING,
    SAVED,
    SCRATCH,
    SERVED,
    SHARED,
    SHARED_BYTES,
    SHARED_DEFINED,
    START,
    STEP,
    THREAD_X,
    THREAD_Y,
    THREAD_Z,
    THREADS,
    TOKENS,
    TOO_LONG,
    TURNS,
    WAITING,
    WARP,
    WARP_ALIVE,
    WARP_AT,
    WARP_EPOCHS,
    WARPS,
    WHERE,
    WHY,
    WORD,
)
from .race_filter import MAX_EPOCH


def stop(x: int, why: int) -> int:
    """Give up."""
    store64(x + WHY * WORD, why)
    store64(x + WHERE * WORD, -1)
    return GAVE_UP


def begin_block(x: int) -> int:
    """Make a block ready: its memory is fresh, its warps stand at the entry."""
    shared = load64(x + SHARED_BYTES * WORD)
    fill(load64(x + SHARED * WORD), 0, shared)
    fill(load64(x + SHARED_DEFINED * WORD), 0, shared)
    threads = load64(x + THREADS * WORD)
    local = load64(x + LOCAL_BYTES * WORD) * threads
    fill(load64(x + LOCAL * WORD), 0, local)
    fill(load64(x + LOCAL_DEFINED * WORD), 0, local)
    epoch = load64(x + EPOCH * WORD) + 1
    store64(x + EPOCH * WORD, epoch)
    store64(x + BEGIN * WORD, epoch)
    size = load64(x + FRAME_BYTES * WORD)
    start = load64(x + FRAME_START * WORD)
    for warp in range(load64(x + WARPS * WORD)):
        frame = load64(x + FRAMES * WORD) + warp * size
        for i in range(0, size, 8):
            store64(frame + i, load64(start + i))
        here = threads - warp * 32
        store64(load64(x + WARP_ALIVE * WORD) + warp * 8, (1 << (32 if here > 32 else here)) - 1)
        store64(load64(x + WARP_AT * WORD) + warp * 8, load64(x + START * WORD))
        store64(load64(x + WARP_EPOCHS * WORD) + warp * 8, 0)
    fill(load64(x + ROUNDS * WORD), 0, load64(x + HEADS * WORD) * MAX_THREADS * 8)
    store64(x + WARP * WORD, 0)
    store64(x + INTERVAL * WORD, 0)
    store64(x + RUNNING * WORD, 1)
    return 0


def begin_warp(x: int, warp: int) -> int:
    """Make a warp the running one: all its lanes that live stand at one basic block."""
    store64(x + WARP * WORD, warp)
    alive = load64(load64(x + WARP_ALIVE * WORD) + warp * 8)
    store64(x + ALIVE * WORD, alive)
    here = load64(x + THREADS * WORD) - warp * 32
    store64(x + EXISTING * WORD, (1 << (32 if here > 32 else here)) - 1)
    store64(x + OTHERS * WORD, 0)
    store64(x + WAITING * WORD, 0)
    store64(x + TURNS * WORD, MAX_TURNS)
    store64(x + MOMENT_DEPTH * WORD, 0)
    store64(x + AHEAD * WORD, 0)
    store64(x + SERVED * WORD, 0)
    store64(x + STEP * WORD, 0)
    fill(load64(x + TOKENS * WORD), 0, 256)
    fill(load64(x + SAVED * WORD), 0, load64(x + POINTS * WORD) * 256)
    return alive


def next_block(x: int) -> int:
    """Go on to the next block of the grid, x first."""
    store64(x + RUNNING * WORD, 0)
    store64(x + BLOCK * WORD, load64(x + BLOCK * WORD) + 1)
    place = load64(x + BLOCK_X * WORD) + 1
    if place == load64(x + GRID_X * WORD):
        place = 0
        row = load64(x + BLOCK_Y * WORD) + 1
        if row == load64(x + GRID_Y * WORD):
            row = 0
            store64(x + BLOCK_Z * WORD, load64(x + BLOCK_Z * WORD) + 1)
        store64(x + BLOCK_Y * WORD, row)
    store64(x + BLOCK_X * WORD, place)
    return 0


def run_kernel(x: int, frame: int, start: int) -> int:
    """Call the kernel's function for the running warp."""
    return call_kernel(
        load64(x + KERNEL * WORD), x, frame, load64(x + SCRATCH * WORD),
        load64(x + PARAMETERS * WORD), load64(x + THREAD_X * WORD), load64(x + THREAD_Y * WORD),
        load64(x + THREAD_Z * WORD), start,
    )  # fmt: skip


def run_warps(x: int, resumed: int) -> int:
    """Run the block's warps to their next barrier or end.

    Returns:
        How many stand at a barrier; or ``GAVE_UP``, ``PAUSED``.
    """
    warps = load64(x + WARPS * WORD)
    for warp in range(load64(x + WARP * WORD), warps):
        at = load64(x + WARP_AT * WORD) + warp * 8
        frame = load64(x + FRAMES * WORD) + warp * load64(x + FRAME_BYTES * WORD)
        start = load64(at)
        if start < 0:
            continue
        if load64(x + INTERVAL * WORD):
            start += load64(x + BLOCKS * WORD)
        if resumed:
            start = DONE
            resumed = 0
        else:
            begin_warp(x, warp)
        where = run_kernel(x, frame, start)
        if where == GAVE_UP:
            return GAVE_UP
        if where == PAUSED:
            return PAUSED
        store64(load64(x + WARP_ALIVE * WORD) + warp * 8, load64(x + ALIVE * WORD))
        store64(at, where)
        if where == DONE and load64(x + WAITING * WORD):
            return stop(x, HELD_FOR_EVER)
    count = 0
    for warp in range(warps):
        count += load64(load64(x + WARP_AT * WORD) + warp * 8) >= 0
    return count


def barrier(x: int) -> int:
    """Let go of the warps at a barrier, if all threads of the block have come to one."""
    warps = load64(x + WARPS * WORD)
    first = load64(load64(x + WARP_AT * WORD))
    for warp in range(warps):
        if load64(load64(x + WARP_AT * WORD) + warp * 8) != first:
            return stop(x, BARRIER_APART)
        here = load64(x + THREADS * WORD) - warp * 32
        everyone = (1 << (32 if here > 32 else here)) - 1
        if load64(load64(x + WARP_ALIVE * WORD) + warp * 8) != everyone:
            return stop(x, BARRIER_APART)
    if same_rounds(x, load64(load64(x + ABOUT * WORD) + first * 8)) == 0:
        return stop(x, BARRIER_APART)
    epoch = load64(x + EPOCH * WORD) + 1
    if epoch >= MAX_EPOCH:
        return stop(x, TOO_LONG)
    store64(x + EPOCH * WORD, epoch)
    store64(x + INTERVAL * WORD, 1)
    store64(x + WARP * WORD, 0)
    return 0


def same_rounds(x: int, loops: int) -> int:
    """Return whether all threads are on the same rounds of some loops, given as bits."""
    threads = load64(x + THREADS * WORD)
    while loops:
        rounds = load64(x + ROUNDS * WORD) + lowest_bit(loops) * MAX_THREADS * 8
        first = load64(rounds)
        differ = 0
        for thread in range(1, threads):
            differ |= load64(rounds + thread * 8) ^ first
        if differ:
            return 0
        loops &= loops - 1
    return 1


def run_blocks(x: int, resumed: int) -> int:
    """Run blocks up to ``LAST``; ``resumed``: go on where a warp has paused.

    Returns:
        ``DONE``, ``GAVE_UP`` or ``PAUSED``.
    """
    while load64(x + BLOCK * WORD) < load64(x + LAST * WORD):
        if load64(x + RUNNING * WORD) == 0:
            if load64(x + EPOCH * WORD) >= MAX_EPOCH:
                return stop(x, TOO_LONG)
            begin_block(x)
        standing = run_warps(x, resumed)
        resumed = 0
        if standing < 0:
            return standing
        if standing == 0:
            next_block(x)
        elif barrier(x):
            return GAVE_UP
    return DONE
