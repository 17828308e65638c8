"""Order of atomics on one location: surely the NumPy engine's, or unknown.

The NumPy engine runs a basic block for all warps of a batch at once, the lowest first. Native code
runs a warp to its next barrier. ``docs/native.md`` proves that a *moment*, compared word by word,
orders basic blocks of two warps as the NumPy engine does.
"""

from ..intrinsics import below, load64, store64
from ..layout import (
    BEGIN,
    BLOCK,
    EPOCH,
    IS_UNSURE,
    MOMENT,
    MOMENT_DEPTH,
    ORDER_CLASS,
    ORDERED,
    SITES,
    WARP,
    WORD,
)

LEVELS = 4
"""Levels of a moment that are compared."""
COUNT_BITS = 22
LEVEL_BITS = 32
CLASS_BITS, CLASS_MASK = 8, 255
NO_WARP = -1
ORDER_WORDS = 5
"""Of a location, its latest atomic: batch (or block, of shared memory) and interval; two words of
levels, 0 if unknown; the site, and the class of all operations so far; the warp."""


def step_to(x: int, block: int) -> int:
    """Note that the running warp comes to a basic block."""
    levels = load64(x + MOMENT * WORD)
    depth = load64(x + MOMENT_DEPTH * WORD)
    for _ in range(depth):
        if load64(levels + depth * 8 - 8) >> LEVEL_BITS >= block:
            break
        depth -= 1
    last = levels + depth * 8 - 8
    if depth and load64(last) >> LEVEL_BITS == block:
        store64(last, load64(last) + 1)
    else:
        store64(last + 8, block << LEVEL_BITS | 1)
        depth += 1
    store64(x + MOMENT_DEPTH * WORD, depth)
    return 0


def level(x: int, number: int) -> int:
    """Return a level of the running warp's moment in 32 bits; 0 behind the last one."""
    if number >= load64(x + MOMENT_DEPTH * WORD):
        return 0
    found = load64(load64(x + MOMENT * WORD) + number * 8)
    count = found & ((1 << LEVEL_BITS) - 1)
    return ((found >> LEVEL_BITS) + 1) << COUNT_BITS | count


def is_exact(x: int) -> int:
    """Return whether the running warp's moment has no more levels, or counts, than are compared."""
    depth = load64(x + MOMENT_DEPTH * WORD)
    if load64(x + IS_UNSURE * WORD) or depth > LEVELS:
        return 0
    for i in range(depth):
        found = load64(load64(x + MOMENT * WORD) + i * 8)
        if found >> LEVEL_BITS >= (1 << LEVEL_BITS - COUNT_BITS) - 1:
            return 0
        if found & ((1 << LEVEL_BITS) - 1) >= 1 << COUNT_BITS:
            return 0
    return 1


def is_later(record: int, interval: int, first: int, second: int, site: int, warp: int) -> int:
    """Return whether an atomic surely comes after the one that a record names, of one batch.

    ``first``, ``second``: the moment's levels; 0 if they are not exact.
    """
    before = load64(record)
    if load64(record + 32) >> 5 == warp >> 5:  # of one block
        if before < interval:
            return 1
        if load64(record + 32) == warp:
            return 1
    if first == 0 or load64(record + 8) == 0:
        return 0
    if before != interval:
        return before < interval
    if load64(record + 8) != first:
        return below(load64(record + 8), first)
    if load64(record + 16) != second:
        return below(load64(record + 16), second)
    return load64(record + 24) >> CLASS_BITS <= site


def out_of_order(x: int, site: int, record: int, scope: int) -> int:
    """Enter an atomic of a location; return whether the NumPy engine may do it earlier.

    ``scope``: the batch, or of shared memory the block, from 1 on; all before come first.
    """
    kind = load64(site + ORDER_CLASS * WORD)
    number = site - load64(x + SITES * WORD)
    warp = load64(x + BLOCK * WORD) << 5 | load64(x + WARP * WORD)
    interval = scope << 32 | load64(x + EPOCH * WORD) - load64(x + BEGIN * WORD)
    first = 0
    second = 0
    if is_exact(x):
        first = level(x, 0) << LEVEL_BITS | level(x, 1)
        second = level(x, 2) << LEVEL_BITS | level(x, 3)
    if load64(record) >> 32 == scope:
        commutes = kind and load64(record + 24) & CLASS_MASK == kind
        if is_later(record, interval, first, second, number, warp) == 0:
            if commutes == 0:
                return 1
            if first and load64(record + 8):
                return 0
            first = 0
            warp = NO_WARP
        if commutes == 0:
            kind = 0
    store64(record, interval)
    store64(record + 8, first)
    store64(record + 16, second)
    store64(record + 24, number << CLASS_BITS | kind)
    store64(record + 32, warp)
    return 0


def judge_order(x: int, site: int, records: int, first: int, nbytes: int, scope: int) -> int:
    """Enter an atomic of some bytes of a memory; return whether it may be out of order."""
    if load64(x + ORDERED * WORD) == 0:
        return 0
    late = 0
    for i in range(first >> 2, (first + nbytes + 3) >> 2):
        late |= out_of_order(x, site, records + i * ORDER_WORDS * 8, scope)
    return late
