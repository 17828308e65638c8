"""The race filter: it says that there is surely no race, or that one cannot be ruled out.

Each location has two slots of 64 bits, for its writes and its reads. ``docs/native.md`` has the
layout of a slot, and the proof that no race passes.
"""

from ..intrinsics import load64, store64
from ..layout import BEGIN, EPOCH, WARP_EPOCHS, WORD

MANY, SEVERAL, FOREIGN, ATOMIC, WIDE = 1, 2, 4, 8, 16
"""Flags of a slot: of threads of several warps, of several threads of the thread's warp, of another
block too; by atomic operations, of 8 bytes."""
THREAD_SHIFT, WARP_EPOCH_SHIFT, EPOCH_SHIFT = 7, 17, 32
THREAD_MASK, WARP_EPOCH_MASK = 1023, 32767
MAX_EPOCH = 1 << 31


def warp_epoch(x: int, thread: int) -> int:
    """Return how many barriers of its whole warp a thread has passed in this block."""
    return load64(load64(x + WARP_EPOCHS * WORD) + (thread >> 5) * 8)


def slot_of(x: int, thread: int, flags: int) -> int:
    """Return a slot that names a thread as it is now."""
    at = load64(x + EPOCH * WORD) << EPOCH_SHIFT
    return at | warp_epoch(x, thread) << WARP_EPOCH_SHIFT | thread << THREAD_SHIFT | flags


def ordered(x: int, slot: int, thread: int) -> int:
    """Return whether all accesses that a slot stands for surely come before a thread's next one."""
    epoch = slot >> EPOCH_SHIFT
    if slot & FOREIGN or epoch < load64(x + BEGIN * WORD):
        return 0
    if epoch < load64(x + EPOCH * WORD):
        return 1
    if slot & MANY:
        return 0
    other = (slot >> THREAD_SHIFT) & THREAD_MASK
    passed = (slot >> WARP_EPOCH_SHIFT) & WARP_EPOCH_MASK
    if other >> 5 == thread >> 5 and passed != warp_epoch(x, thread):
        return 1
    return slot & SEVERAL == 0 and other == thread


def joined(x: int, slot: int, thread: int) -> int:
    """Return the flags of a slot for a thread and for those of a slot that is not ``ordered``."""
    if slot & FOREIGN or slot >> EPOCH_SHIFT < load64(x + BEGIN * WORD):
        return FOREIGN
    if slot & MANY or ((slot >> THREAD_SHIFT) & THREAD_MASK) >> 5 != thread >> 5:
        return MANY
    return SEVERAL


def current(x: int, slot: int, is_shared: int) -> int:
    """Return a slot; 0 if it is of shared memory, and of a block that has ended."""
    if is_shared and slot >> EPOCH_SHIFT < load64(x + BEGIN * WORD):
        return 0
    return slot


def may_race_read(x: int, slots: int, thread: int, is_shared: int) -> int:
    """Enter a read of a location; return whether it may race."""
    write = current(x, load64(slots), is_shared)
    if write and ordered(x, write, thread) == 0:
        return 1
    read = current(x, load64(slots + 8), is_shared)
    flags = 0
    if read and ordered(x, read, thread) == 0:
        flags = joined(x, read, thread)
    store64(slots + 8, slot_of(x, thread, flags))
    return 0


def may_race_write(x: int, slots: int, thread: int, is_shared: int, atomic: int) -> int:
    """Enter a write of a location; return whether it may race.

    ``atomic``: 0, or ``ATOMIC``, with ``WIDE`` if of 8 bytes.
    """
    write = current(x, load64(slots), is_shared)
    flags = atomic
    if write and ordered(x, write, thread) == 0:
        if atomic == 0 or write & (ATOMIC | WIDE) != atomic:
            return 1
        flags |= joined(x, write, thread)
    read = current(x, load64(slots + 8), is_shared)
    if read and ordered(x, read, thread) == 0:
        return 1
    store64(slots, slot_of(x, thread, flags))
    if atomic == 0:
        store64(slots + 8, 0)
    return 0
