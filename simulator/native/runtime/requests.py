"""Costs of memory requests of one warp: ``observe/counters/costs.py`` and ``banks.py``, natively.

``at`` is the address of 32 byte addresses, a word each, of which ``mask`` names those that count.
``figures`` is the address of eight words in the order of ``Traffic``, which are overwritten.
"""

from ..intrinsics import below, count_bits, load64, lowest_bit, stack, store64

HASH = 0x9E3779B97F4A7C15
"""Fibonacci hashing: 2**64 over the golden ratio."""


def compact(at: int, mask: int, out: int) -> int:
    """Write the addresses of active lanes side by side; return how many there are."""
    count = 0
    while mask:
        store64(out + count * 8, load64(at + lowest_bit(mask) * 8))
        count += 1
        mask &= mask - 1
    return count


def distinct(values: int, count: int, shift: int) -> int:
    """Return how many different values there are, the low bits left out."""
    found = 0
    rising = 1
    last = load64(values) >> shift
    for i in range(1, count):
        value = load64(values + i * 8) >> shift
        rising &= value >= last
        found += value != last
        last = value
    if rising:
        return found + 1
    return hashed(values, count, shift)


def hashed(values: int, count: int, shift: int) -> int:
    """Return the same of values in any order, by a table of 64 places."""
    table = stack(64)
    used = 0
    found = 0
    for i in range(count):
        value = load64(values + i * 8) >> shift
        place = (value * HASH >> 58) & 63
        while (used >> place) & 1 and load64(table + place * 8) != value:
            place = (place + 1) & 63
        if (used >> place) & 1 == 0:
            used |= 1 << place
            store64(table + place * 8, value)
            found += 1
    return found


def write_figures(
    figures: int, accesses: int, width: int, different: int, sectors: int, passes: int,
    conflicts: int, ideal: int,
) -> int:  # fmt: skip
    """Write the figures of one request."""
    store64(figures, 1)
    store64(figures + 8, accesses)
    store64(figures + 16, accesses * width)
    store64(figures + 24, different * width)
    store64(figures + 32, sectors)
    store64(figures + 40, passes)
    store64(figures + 48, conflicts)
    store64(figures + 56, ideal)
    return 0


def global_cost(at: int, mask: int, width: int, figures: int) -> int:
    """Cost of a load or store of global memory."""
    values = stack(32)
    count = compact(at, mask, values)
    sectors = distinct(values, count, 5)
    different = count
    if sectors != count:
        different = distinct(values, count, 0)
    return write_figures(
        figures, count, width, different, sectors, 0, 0, (different * width + 31) >> 5
    )


def local_cost(at: int, mask: int, width: int, first: int, figures: int) -> int:
    """Cost of a load or store of local memory, whose words are interleaved by thread.

    ``first``: the number in its block of the warp's first thread.
    """
    places = stack(32)
    lanes = mask
    while lanes:
        lane = lowest_bit(lanes)
        address = load64(at + lane * 8)
        inside = address & 3
        store64(places + lane * 8, (address - inside) * 32 + (first + lane) * 4 + inside)
        lanes &= lanes - 1
    global_cost(places, mask, width, figures)
    if width > 4:
        words = width >> 2
        store64(figures, words)
        store64(figures + 32, load64(figures + 32) * words)
    return 0


def neighbours_agree(at: int, mask: int, step: int) -> int:
    """Return whether each lane wants what its neighbour wants, or one of the two is off."""
    for lane in range(32):
        other = lane ^ step
        both = (mask >> lane) & (mask >> other) & 1
        if both and load64(at + lane * 8) != load64(at + other * 8):
            return 0
    return 1


def shared_cost(at: int, mask: int, width: int, is_load: int, figures: int) -> int:
    """Cost of a load or store of shared memory."""
    values = stack(32)
    count = compact(at, mask, values)
    different = distinct(values, count, 0)
    size = 32
    if width == 8:
        size = 16
    if width == 16:
        size = 8
    wide = width > 4 and is_load
    if wide and (neighbours_agree(at, mask, 1) or neighbours_agree(at, mask, 2)):
        size = size * 2
    words = stack(128)
    each = stack(32)
    passes = 0
    groups = 0
    for group in range(0, 32, size):
        lanes = (mask >> group) & ((1 << size) - 1)
        if lanes == 0:
            continue
        for bank in range(32):
            store64(each + bank * 8, 0)
        known = 0
        fullest = 0
        while lanes:
            address = load64(at + (group + lowest_bit(lanes)) * 8)
            for part in range(0, width if width <= 4 else width >> 2, 4 if width <= 4 else 1):
                word = (address >> 2) + (0 if width <= 4 else part)
                again = 0
                for i in range(known):
                    again |= load64(words + i * 8) == word
                if again == 0:
                    store64(words + known * 8, word)
                    known += 1
                    bank = each + (word & 31) * 8
                    more = load64(bank) + 1
                    store64(bank, more)
                    if more > fullest:
                        fullest = more
            lanes &= lanes - 1
        passes += fullest
        groups += 1
    return write_figures(figures, count, width, different, 0, passes, passes - groups, 0)


def atomic_global_cost(at: int, mask: int, width: int, figures: int) -> int:
    """Cost of an atomic operation on global memory: lanes at one address come one by one."""
    values = stack(32)
    times = stack(32)
    count = compact(at, mask, values)
    different = distinct(values, count, 0)
    for i in range(count):
        same = 0
        for j in range(count):
            same += load64(values + i * 8) == load64(values + j * 8)
        store64(times + i * 8, same)
    sectors = 0
    for i in range(count):
        sector = load64(values + i * 8) >> 5
        first = 1
        fullest = 0
        for j in range(count):
            if load64(values + j * 8) >> 5 == sector:
                if j < i:
                    first = 0
                if load64(times + j * 8) > fullest:
                    fullest = load64(times + j * 8)
        if first:
            sectors += fullest
    return write_figures(
        figures, count, width, different, sectors, 0, 0, (different * width + 31) >> 5
    )


def atomic_shared_cost(at: int, mask: int, width: int, swaps: int, figures: int) -> int:
    """Cost of an atomic operation on shared memory; ``swaps``: of a compare-and-swap."""
    values = stack(32)
    each = stack(32)
    count = compact(at, mask, values)
    different = distinct(values, count, 0)
    for bank in range(32):
        store64(each + bank * 8, 0)
    fullest = 0
    for i in range(count):
        for part in range(1 if width <= 4 else width >> 2):
            bank = each + (((load64(values + i * 8) >> 2) + part) & 31) * 8
            more = load64(bank) + 1
            store64(bank, more)
            if more > fullest:
                fullest = more
    passes = fullest << swaps
    return write_figures(
        figures, count, width, different, 0, passes, fullest - 1, (different * width + 31) >> 5
    )


def lanes_of(mask: int) -> int:
    """Return how many lanes a mask names."""
    return count_bits(mask)


def outside(address: int, nbytes: int, first: int, end: int) -> int:
    """Return whether bytes are not all between two addresses."""
    room = end - first - nbytes
    return room < 0 or below(room, address - first)
