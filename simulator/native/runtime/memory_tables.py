"""Arrays and tables of definedness that accesses look at, and elements in memory."""

from ..intrinsics import (
    load8,
    load16,
    load32,
    load64,
    store8,
    store16,
    store32,
    store64,
)
from ..layout import (
    ARGUMENTS,
    ARRAY_WORDS,
    ARRAYS,
    BASE,
    BYTES,
    LATE_ARRAY,
    NO_ARRAY,
    OUT_OF_BOUNDS,
    READ_BEFORE,
    READ_ONLY,
    READ_ONLY_ARRAY,
    READ_ONLY_LOADS,
    SITES,
    TRACKED,
    UNTRACKED,
    VARIABLES,
    WHERE,
    WHY,
    WORD,
    WRITABLE,
    WRITTEN,
)
from .race_filter import ATOMIC, WIDE, may_race_read, may_race_write
from .requests import outside

LOAD, STORE, ATOMIC_OPERATION = 0, 1, 2
GLOBAL, SHARED_SPACE, LOCAL_SPACE = 0, 1, 2
ALL_DEFINED = 0x0101010101010101
_ARRAY_BITS = 36
_PARAMETERS = 9999
_VARIABLES = 10_000


def give_up(x: int, site: int, why: int) -> int:
    """Note why native code gives up, and return 1."""
    store64(x + WHY * WORD, why)
    store64(x + WHERE * WORD, site - load64(x + SITES * WORD))
    return 1


def array_of(x: int, address: int) -> int:
    """Return the record of the array in whose range an address lies; 0 if there is none."""
    number = (address >> _ARRAY_BITS) - 1
    arguments = load64(x + ARGUMENTS * WORD)
    place = -1
    if number >= 0 and number < arguments:
        place = number
    if number == _PARAMETERS:
        place = arguments
    if number >= _VARIABLES and number - _VARIABLES < load64(x + VARIABLES * WORD):
        place = arguments + 1 + number - _VARIABLES
    if place < 0:
        return 0
    return load64(x + ARRAYS * WORD) + place * ARRAY_WORDS * WORD


def element(at: int, size: int) -> int:
    """Return an element of 1, 2, 4 or 8 bytes."""
    if size == 1:
        return load8(at)
    if size == 2:
        return load16(at)
    if size == 4:
        return load32(at)
    return load64(at)


def put_element(at: int, value: int, size: int) -> int:
    """Write an element of 1, 2, 4 or 8 bytes."""
    if size == 1:
        store8(at, value)
    elif size == 2:
        store16(at, value)
    elif size == 4:
        store32(at, value)
    else:
        store64(at, value)
    return 0


def all_defined(at: int, nbytes: int) -> int:
    """Return whether so many bytes of a table of definedness are all 1."""
    if nbytes == 1:
        return load8(at) == 1
    if nbytes == 2:
        return load16(at) == ALL_DEFINED & 0xFFFF
    if nbytes == 4:
        return load32(at) == ALL_DEFINED & 0xFFFFFFFF
    if nbytes == 16 and load64(at + 8) != ALL_DEFINED:
        return 0
    return load64(at) == ALL_DEFINED


def define(at: int, nbytes: int) -> int:
    """Mark bytes as written in a table of definedness."""
    if nbytes == 16:
        store64(at, ALL_DEFINED)
        store64(at + 8, ALL_DEFINED)
    else:
        put_element(at, ALL_DEFINED, nbytes)
    return 0


def any_missing(at: int, nbytes: int) -> int:
    """Return whether any of so many bytes of a table of missing bytes is 1."""
    if nbytes == 16:
        return load64(at) | load64(at + 8) != 0
    return element(at, nbytes) != 0


def clear(at: int, nbytes: int) -> int:
    """Mark bytes as written in a table of missing bytes."""
    if nbytes == 16:
        store64(at, 0)
        store64(at + 8, 0)
    else:
        put_element(at, 0, nbytes)
    return 0


def lane_array(x: int, site: int, address: int, what: int, nbytes: int) -> int:
    """Return the record of the array that a lane accesses; 0: native code has given up."""
    array = array_of(x, address)
    if array == 0:
        give_up(x, site, NO_ARRAY)
        return 0
    base = load64(array + BASE * WORD)
    if outside(address, nbytes, base, base + load64(array + BYTES * WORD)):
        give_up(x, site, OUT_OF_BOUNDS)
        return 0
    if what != LOAD:
        if load64(array + WRITABLE * WORD) == 0:
            give_up(x, site, READ_ONLY_ARRAY)
            return 0
        store64(array + WRITTEN * WORD, 1)
    elif load64(site + READ_ONLY * WORD):
        store64(array + READ_ONLY_LOADS * WORD, 1)
    return array


def written_late(x: int, site: int, array: int) -> int:
    """Give up at the first write of an array, of which some reads have not been entered."""
    place = array - load64(x + ARRAYS * WORD)
    store64(x + LATE_ARRAY * WORD, place)
    return give_up(x, site, READ_BEFORE)


def enters(x: int, site: int, array: int, what: int) -> int:
    """Return whether the race filter enters an access to an array; -1: native code has given up.

    It enters reads only of arrays that are written: from the start, or after their first write.
    """
    if load64(array + TRACKED * WORD):
        return 1
    if what == LOAD:
        store64(array + UNTRACKED * WORD, 1)
        return 0
    if load64(array + UNTRACKED * WORD):
        written_late(x, site, array)
        return -1
    store64(array + TRACKED * WORD, 1)
    return 1


def races(
    begin: int, now_at: int, slots: int, first: int, nbytes: int, grain: int, thread: int,
    what: int, shared: int,
) -> int:  # fmt: skip
    """Enter an access of some bytes of a memory; return whether it may race."""
    at = slots + (first >> grain) * 16
    end = slots + ((first + nbytes - 1) >> grain) * 16
    while at <= end:
        if what == LOAD:
            if may_race_read(begin, now_at, at, thread, shared):
                return 1
        else:
            how = 0
            if what == ATOMIC_OPERATION:
                how = ATOMIC | (WIDE if nbytes == 8 else 0)
            if may_race_write(begin, now_at, at, thread, shared, how):
                return 1
        at += 16
    return 0
