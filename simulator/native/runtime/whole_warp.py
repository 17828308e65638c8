"""Accesses of all 32 lanes of a warp at once, where each of them is as usual.

The functions do what the general ones of ``memory_access.py`` do, each step in a loop of its own;
or they say that it has to be done lane by lane.
"""

from ..intrinsics import below, load64, stack, store8, store64
from ..layout import (
    BASE,
    BEGIN,
    BYTES,
    COUNTED,
    END,
    FIRST,
    GLOBAL_GRAIN,
    HOST,
    LOCAL,
    LOCAL_BYTES,
    LOCAL_DEFINED,
    MAY_RACE,
    MISSING,
    RACES,
    SHADOW,
    SHARED,
    SHARED_DEFINED,
    SHARED_GRAIN,
    SHARED_SHADOW,
    TOUCH,
    TOUCHED,
    UNDEFINED,
    UNINITIALISED,
    WARP,
    WORD,
)
from .memory_tables import (
    LOAD,
    STORE,
    all_defined,
    any_missing,
    clear,
    define,
    enters,
    give_up,
    lane_array,
    races,
)
from .race_filter import now

GENERAL = 2
"""What to do lane by lane; nothing is done that would be wrong to do twice."""


def enter_lanes(
    x: int, slots: int, at: int, first: int, grain: int, nbytes: int, what: int, is_shared: int
) -> int:
    """Enter an access of all lanes in the race filter; return whether it may race."""
    warp = load64(x + WARP * WORD)
    begin = load64(x + BEGIN * WORD)
    now_at = now(x, warp)
    for lane in range(32):
        inside = load64(at + lane * 8) - first
        thread = warp * 32 + lane
        if races(begin, now_at, slots, inside, nbytes, grain, thread, what, is_shared):
            return 1
    return 0


def any_outside(addresses: int, first: int, room: int) -> int:
    """Return whether any lane's address is less than ``first``, or more than ``room`` behind it."""
    far = 0
    for lane in range(32):
        far |= below(room, load64(addresses + lane * 8) - first)
    return far


def look_global_whole(x: int, site: int, at: int, place: int, what: int, nbytes: int) -> int:
    """Judge a load or store of one global array by all lanes; see ``look_global``."""
    array = lane_array(x, site, load64(at), what, nbytes)
    if array == 0:
        return 1
    first = load64(array + BASE * WORD)
    if any_outside(at, first, load64(array + BYTES * WORD) - nbytes):
        return GENERAL
    grain = load64(x + GLOBAL_GRAIN * WORD)
    marks = load64(array + (TOUCHED + load64(site + TOUCH * WORD)) * WORD)
    slots = load64(array + SHADOW * WORD)
    if load64(x + RACES * WORD) == 0 or load64(site + COUNTED * WORD) == 0:
        slots = 0
    if slots:
        entered = enters(x, site, array, what)
        if entered < 0:
            return 1
        slots = slots * entered
    if marks and nbytes != 1 << grain:
        return GENERAL
    missing = load64(array + MISSING * WORD)
    if missing and what == LOAD:
        absent = 0
        for lane in range(32):
            absent |= any_missing(missing + load64(at + lane * 8) - first, nbytes)
        if absent:
            return give_up(x, site, UNDEFINED)
    elif missing:
        for lane in range(32):
            clear(missing + load64(at + lane * 8) - first, nbytes)
    if marks:
        for lane in range(32):
            store8(marks + ((load64(at + lane * 8) - first) >> grain), 1)
    if slots and enter_lanes(x, slots, at, first, grain, nbytes, what, 0):
        return give_up(x, site, MAY_RACE)
    move = load64(array + HOST * WORD) - first
    for lane in range(32):
        store64(place + lane * 8, load64(at + lane * 8) + move)
    return 0


def judge_defined(x: int, table: int, at: int, what: int, nbytes: int) -> int:
    """Mark what all lanes store as written; return whether what they load is not."""
    whole = 1
    if what == STORE:
        for lane in range(32):
            define(table + load64(at + lane * 8), nbytes)
    elif load64(x + UNINITIALISED * WORD):
        for lane in range(32):
            whole &= all_defined(table + load64(at + lane * 8), nbytes)
    return whole == 0


def look_local_whole(x: int, site: int, at: int, place: int, what: int, nbytes: int) -> int:
    """Judge a load or store of local memory by all lanes; see ``look_inside``."""
    size = load64(x + LOCAL_BYTES * WORD)
    if size < nbytes or any_outside(at, 0, size - nbytes):
        return GENERAL
    own = stack(32)
    first = load64(x + WARP * WORD) * 32 * size
    for lane in range(32):
        store64(own + lane * 8, load64(at + lane * 8) + first + lane * size)
    if judge_defined(x, load64(x + LOCAL_DEFINED * WORD), own, what, nbytes):
        return give_up(x, site, UNDEFINED)
    memory = load64(x + LOCAL * WORD)
    for lane in range(32):
        store64(place + lane * 8, load64(own + lane * 8) + memory)
    return 0


def look_shared_whole(x: int, site: int, at: int, place: int, what: int, nbytes: int) -> int:
    """Judge a load or store of shared memory by all lanes; see ``look_inside``."""
    first = load64(site + FIRST * WORD)
    room = load64(site + END * WORD) - first - nbytes
    if room < 0 or any_outside(at, first, room):
        return GENERAL
    table = load64(x + SHARED_DEFINED * WORD)
    if judge_defined(x, table, at, what, nbytes):
        return give_up(x, site, UNDEFINED)
    if load64(x + RACES * WORD) and load64(site + COUNTED * WORD):
        grain = load64(x + SHARED_GRAIN * WORD)
        slots = load64(x + SHARED_SHADOW * WORD)
        if enter_lanes(x, slots, at, 0, grain, nbytes, what, 1):
            return give_up(x, site, MAY_RACE)
    memory = load64(x + SHARED * WORD)
    for lane in range(32):
        store64(place + lane * 8, load64(at + lane * 8) + memory)
    return 0
