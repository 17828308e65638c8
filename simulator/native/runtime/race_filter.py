"""The race filter: it says that there is surely no race, or that one cannot be ruled out.

Each location has two slots of 64 bits, for its writes and its reads. ``docs/native.md`` has the
layout of a slot, and the proof that no race passes.
"""

from ..intrinsics import load64, store64
from ..layout import EPOCH, WARP_EPOCHS, WORD

MANY, SEVERAL, FOREIGN, ATOMIC, WIDE, AFTER_NOW, AFTER_BLOCK = 1, 2, 4, 8, 16, 32, 64
"""Flags of a slot: of threads of several warps, of several threads of the thread's warp, of another
block too; by atomic operations, of 8 bytes; they come after other writes than such atomics, in the
same interval, or in an earlier one of the block."""
AFTER = AFTER_NOW | AFTER_BLOCK
THREAD_SHIFT, WARP_EPOCH_SHIFT, EPOCH_SHIFT = 7, 17, 32
THREAD_MASK, WARP_EPOCH_MASK = 1023, 32767
MAX_EPOCH = 1 << 31


def now(x: int, warp: int) -> int:
    """Return a slot of a warp's first thread as it is now, without flags.

    It holds the epoch and how many barriers of the whole warp there have been in this block.
    """
    passed = load64(load64(x + WARP_EPOCHS * WORD) + warp * 8)
    return load64(x + EPOCH * WORD) << EPOCH_SHIFT | passed << WARP_EPOCH_SHIFT


def ordered(begin: int, at: int, slot: int, thread: int) -> int:
    """Return whether all accesses that a slot stands for surely come before a thread's next one.

    ``begin``: the running block's first epoch; ``at``: ``now`` of the thread's warp.
    """
    epoch = slot >> EPOCH_SHIFT
    if slot & FOREIGN or epoch < begin:
        return 0
    if epoch < at >> EPOCH_SHIFT:
        return 1
    if slot & MANY:
        return 0
    other = (slot >> THREAD_SHIFT) & THREAD_MASK
    passed = ((slot ^ at) >> WARP_EPOCH_SHIFT) & WARP_EPOCH_MASK
    if other >> 5 == thread >> 5 and passed:
        return 1
    return slot & SEVERAL == 0 and other == thread


def joined(begin: int, slot: int, thread: int) -> int:
    """Return the flags of a slot for a thread and for those of a slot that is not ``ordered``."""
    if slot & FOREIGN or slot >> EPOCH_SHIFT < begin:
        return FOREIGN
    if slot & MANY or ((slot >> THREAD_SHIFT) & THREAD_MASK) >> 5 != thread >> 5:
        return MANY
    return SEVERAL


def succeeded(at: int, slot: int, atomic: int) -> int:
    """Return the flags of an atomic for the writes of an ``ordered`` slot that it comes after.

    The slot is overwritten. Atomics of other threads may come next that are not in order with it:
    they have to be in order with all of these writes that are no atomics of the same width.
    """
    is_now = slot >> EPOCH_SHIFT == at >> EPOCH_SHIFT
    if slot & (ATOMIC | WIDE) != atomic:
        return AFTER_NOW if is_now else AFTER_BLOCK
    if is_now:
        return slot & AFTER
    return AFTER_BLOCK if slot & AFTER else 0


def current(begin: int, slot: int, is_shared: int) -> int:
    """Return a slot; 0 if it is of shared memory, and of a block that has ended."""
    if is_shared and slot >> EPOCH_SHIFT < begin:
        return 0
    return slot


def may_race_read(begin: int, at: int, slots: int, thread: int, is_shared: int) -> int:
    """Enter a read of a location; return whether it may race."""
    write = current(begin, load64(slots), is_shared)
    if write and ordered(begin, at, write, thread) == 0:
        return 1
    read = current(begin, load64(slots + 8), is_shared)
    flags = 0
    if read and ordered(begin, at, read, thread) == 0:
        flags = joined(begin, read, thread)
    store64(slots + 8, at | thread << THREAD_SHIFT | flags)
    return 0


def may_race_write(
    begin: int, at: int, slots: int, thread: int, is_shared: int, atomic: int
) -> int:  # fmt: skip
    """Enter a write of a location; return whether it may race.

    ``atomic``: 0, or ``ATOMIC``, with ``WIDE`` if of 8 bytes.
    """
    write = current(begin, load64(slots), is_shared)
    flags = atomic
    if write and ordered(begin, at, write, thread):
        if atomic:
            flags |= succeeded(at, write, atomic)
    elif write:
        if atomic == 0 or write & (ATOMIC | WIDE) != atomic or write & AFTER_NOW:
            return 1
        others = joined(begin, write, thread)
        if others == FOREIGN and write & AFTER_BLOCK:
            return 1
        flags |= others | write & AFTER_BLOCK
    read = current(begin, load64(slots + 8), is_shared)
    if read and ordered(begin, at, read, thread) == 0:
        return 1
    store64(slots, at | thread << THREAD_SHIFT | flags)
    if atomic == 0:
        store64(slots + 8, 0)
    return 0
