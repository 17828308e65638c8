"""Lanes of the running warp: where they stand, which run next, and which run as one.

The rules are those of ``execute/sync/lane_groups.py``: the lowest basic block goes first; lanes at
one block run it as one if their tokens are equal, or if the block is not ``AFFECTED``.
"""

from ..intrinsics import fill, load64, lowest_bit, store64
from ..layout import (
    AFFECTED,
    AHEAD,
    ALIVE,
    BLOCKS,
    EXISTING,
    GROUP_BITS,
    GROUP_WORDS,
    GROUPS,
    IS_UNSURE,
    LETS_GO,
    LOCAL_BYTES,
    LOCAL_DEFINED,
    MASK,
    MAX_THREADS,
    OTHERS,
    PARKED,
    ROUNDS,
    SAVED,
    SERVED,
    STEP,
    TOKENS,
    WAITING,
    WARP,
    WARP_EPOCHS,
    WORD,
    YIELDS,
)
from .race_filter import WARP_EPOCH_MASK


def join(x: int, block: int, mask: int) -> int:
    """Add lanes to those that stand at a basic block; at a waiting loop they are not ahead."""
    if load64(x + AHEAD * WORD) and load64(load64(x + YIELDS * WORD) + block * 8):
        store64(x + AHEAD * WORD, load64(x + AHEAD * WORD) & (mask ^ -1))
    return put_back(x, block, mask)


def put_back(x: int, block: int, mask: int) -> int:
    """Add lanes to those that stand at a basic block."""
    group = load64(x + GROUPS * WORD) + block * 8
    before = load64(group)
    store64(group, before | mask)
    if before == 0:
        word = load64(x + GROUP_BITS * WORD) + (block >> 6) * 8
        store64(word, load64(word) | 1 << (block & 63))
        store64(x + OTHERS * WORD, load64(x + OTHERS * WORD) + 1)
    return 0


def leave(x: int, mask: int) -> int:
    """End lanes."""
    store64(x + ALIVE * WORD, load64(x + ALIVE * WORD) & (mask ^ -1))
    return 0


def pick(x: int) -> int:
    """Choose the lanes that run next, ``MASK``; return their basic block, -1 if there are none."""
    ahead = load64(x + AHEAD * WORD)
    if ahead:
        block = first_of(x, ahead)
        if block >= 0:
            return take(x, block, load64(load64(x + GROUPS * WORD) + block * 8) & ahead)
        store64(x + AHEAD * WORD, 0)
    block = first_block(x)
    if block < 0:
        return open_gate(x)
    mask = load64(load64(x + GROUPS * WORD) + block * 8)
    if load64(x + OTHERS * WORD) == 1 and load64(x + WAITING * WORD) == 0:
        store64(x + SERVED * WORD, 0)
    if load64(x + LETS_GO * WORD) and load64(load64(x + YIELDS * WORD) + block * 8):
        ahead = let_go(x, block, mask)
        if ahead:
            block = first_of(x, ahead)
            return take(x, block, load64(load64(x + GROUPS * WORD) + block * 8) & ahead)
    if load64(load64(x + AFFECTED * WORD) + block * 8):
        mask = oldest(x, mask)
    return take(x, block, mask)


def first_block(x: int) -> int:
    """Return the lowest basic block at which lanes stand; -1 if there is none."""
    bits = load64(x + GROUP_BITS * WORD)
    for i in range(load64(x + GROUP_WORDS * WORD)):
        word = load64(bits + i * 8)
        if word:
            return i * 64 + lowest_bit(word)
    return -1


def first_of(x: int, lanes: int) -> int:
    """Return the lowest basic block at which any of some lanes stand; -1 if there is none."""
    groups = load64(x + GROUPS * WORD)
    for block in range(load64(x + BLOCKS * WORD)):
        if load64(groups + block * 8) & lanes:
            return block
    return -1


def let_go(x: int, block: int, mask: int) -> int:
    """Lanes come to a waiting loop: return the others of the warp, which go first; 0: none do."""
    served = load64(x + SERVED * WORD)
    if mask & (served ^ -1) == 0:
        return 0
    others = 0
    groups = load64(x + GROUPS * WORD)
    for other in range(load64(x + BLOCKS * WORD)):
        if other != block:
            others |= load64(groups + other * 8)
    if others:
        store64(x + SERVED * WORD, served | mask)
        renew(x, others)
        store64(x + AHEAD * WORD, others)
    return others


def start_waiting(x: int, mask: int) -> int:
    """Lanes run the head of a waiting loop: they let others go before they run it again."""
    store64(x + SERVED * WORD, load64(x + SERVED * WORD) & (mask ^ -1))
    return 0


def take(x: int, block: int, mask: int) -> int:
    """Take lanes away from a basic block, to run it; return the block."""
    group = load64(x + GROUPS * WORD) + block * 8
    rest = load64(group) & (mask ^ -1)
    store64(group, rest)
    if rest == 0:
        word_at = load64(x + GROUP_BITS * WORD) + (block >> 6) * 8
        store64(word_at, load64(word_at) & ((1 << (block & 63)) ^ -1))
        store64(x + OTHERS * WORD, load64(x + OTHERS * WORD) - 1)
    store64(x + MASK * WORD, mask)
    return block


def open_gate(x: int) -> int:
    """All lanes of the warp that live are held: let them go if they are held at one place."""
    alive = load64(x + ALIVE * WORD)
    if alive == 0:
        return -1
    for block in range(load64(x + BLOCKS * WORD)):
        parked = load64(x + PARKED * WORD) + block * 8
        if load64(parked) == alive:
            store64(parked, 0)
            store64(x + MASK * WORD, alive)
            store64(x + IS_UNSURE * WORD, 1)  # when these go on among other warps
            return block
    return -1


def oldest(x: int, mask: int) -> int:
    """Return the lanes with the lowest token."""
    tokens = load64(x + TOKENS * WORD)
    least = load64(tokens + lowest_bit(mask) * 8)
    chosen = 0
    while mask:
        lane = lowest_bit(mask)
        token = load64(tokens + lane * 8)
        if token < least:
            least = token
            chosen = 0
        if token == least:
            chosen |= 1 << lane
        mask &= mask - 1
    return chosen


def renew(x: int, mask: int) -> int:
    """Give lanes a token of their own."""
    tokens = load64(x + TOKENS * WORD)
    step = load64(x + STEP * WORD)
    while mask:
        store64(tokens + lowest_bit(mask) * 8, step)
        mask &= mask - 1
    return 0


def save(x: int, point: int, mask: int) -> int:
    """Keep the tokens of lanes where the region of a convergence point begins."""
    tokens = load64(x + TOKENS * WORD)
    saved = load64(x + SAVED * WORD) + point * 256
    while mask:
        lane = lowest_bit(mask) * 8
        store64(saved + lane, load64(tokens + lane))
        mask &= mask - 1
    return 0


def restore(x: int, point: int, mask: int) -> int:
    """Give lanes that come to a convergence point the tokens that they had."""
    tokens = load64(x + TOKENS * WORD)
    saved = load64(x + SAVED * WORD) + point * 256
    while mask:
        lane = lowest_bit(mask) * 8
        store64(tokens + lane, load64(saved + lane))
        mask &= mask - 1
    return 0


def begin_round(x: int, loop: int, mask: int) -> int:
    """Lanes come to the head of a loop about a barrier."""
    first = loop * MAX_THREADS + load64(x + WARP * WORD) * 32
    rounds = load64(x + ROUNDS * WORD) + first * 8
    while mask:
        at = rounds + lowest_bit(mask) * 8
        store64(at, load64(at) + 1)
        mask &= mask - 1
    return 0


def forget_rounds(x: int, loop: int, mask: int) -> int:
    """Lanes begin a round of the loop around one about a barrier."""
    first = loop * MAX_THREADS + load64(x + WARP * WORD) * 32
    rounds = load64(x + ROUNDS * WORD) + first * 8
    while mask:
        store64(rounds + lowest_bit(mask) * 8, 0)
        mask &= mask - 1
    return 0


def forget(x: int, mask: int, first: int, nbytes: int) -> int:
    """Lanes enter or leave a function: nothing has written some bytes of their local memory."""
    own = load64(x + LOCAL_BYTES * WORD)
    table = load64(x + LOCAL_DEFINED * WORD) + first
    while mask:
        thread = load64(x + WARP * WORD) * 32 + lowest_bit(mask)
        fill(table + thread * own, 0, nbytes)
        mask &= mask - 1
    return 0


def gate(x: int, block: int, mask: int, members: int, orders: int) -> int:
    """Lanes come to a warp-synchronous instruction; return those that go through, or 0.

    They go through when all lanes of the warp that live have come, each of them named.
    ``orders``: it puts the lanes' accesses in order, if no lane of the warp has exited.

    Returns:
        -1 if that is not how the lanes name each other.
    """
    alive = load64(x + ALIVE * WORD)
    if alive & (members ^ -1):
        return -1
    parked = load64(x + PARKED * WORD) + block * 8
    mask |= load64(parked)
    store64(x + WAITING * WORD, load64(x + WAITING * WORD) & (mask ^ -1))
    if mask != alive:
        store64(parked, mask)
        store64(x + WAITING * WORD, load64(x + WAITING * WORD) | mask)
        return 0
    store64(parked, 0)
    renew(x, mask)
    if orders and mask == load64(x + EXISTING * WORD):
        epoch = load64(x + WARP_EPOCHS * WORD) + load64(x + WARP * WORD) * 8
        if load64(epoch) == WARP_EPOCH_MASK:
            return -1
        store64(epoch, load64(epoch) + 1)
    return mask
