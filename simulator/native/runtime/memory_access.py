"""A load, store or atomic of one warp: judged, counted, and done; or native code gives up.

Lanes' addresses, without the site's offset, and their elements lie in the scratch area: element
``k`` of lane ``l`` at ``values + k * 256 + l * size``. What they find goes to an
area of its own, since a lane may put operands of the next access into the first one before others
have taken what they found. Each function returns 0, or 1 to give up.
"""

from ..intrinsics import (
    load64,
    lowest_bit,
    stack,
    store8,
    store64,
)
from ..layout import (
    BASE,
    BATCH,
    BEGIN,
    BLOCK,
    BYTES,
    COUNTED,
    COUNTS,
    END,
    FIGURES,
    FIRST,
    GLOBAL_GRAIN,
    HOST,
    LANE_WORD,
    LOCAL,
    LOCAL_BYTES,
    LOCAL_DEFINED,
    MAY_RACE,
    MISALIGNED,
    MISSING,
    OFFSET,
    ORDER,
    OUT_OF_BOUNDS,
    OUT_OF_ORDER,
    PATTERN,
    PATTERN_FIGURES,
    PATTERN_MASK,
    PATTERN_SPACE,
    PATTERN_START,
    RACES,
    SHADOW,
    SHARED,
    SHARED_DEFINED,
    SHARED_GRAIN,
    SHARED_ORDER,
    SHARED_SHADOW,
    TOUCH,
    TOUCHED,
    UNDEFINED,
    UNINITIALISED,
    WARP,
    WORD,
)
from .atomic_order import judge_order
from .atomics import atomic_operation, swaps
from .memory_tables import (
    ATOMIC_OPERATION,
    GLOBAL,
    LOAD,
    LOCAL_SPACE,
    SHARED_SPACE,
    STORE,
    all_defined,
    any_missing,
    clear,
    define,
    element,
    enters,
    give_up,
    lane_array,
    put_element,
    races,
)
from .race_filter import now
from .requests import (
    atomic_global_cost,
    atomic_shared_cost,
    global_cost,
    local_cost,
    outside,
    shared_cost,
)
from .whole_warp import GENERAL, look_global_whole, look_local_whole, look_shared_whole

WHOLE = 0xFFFFFFFF


def judge_missing(x: int, site: int, missing: int, what: int, nbytes: int) -> int:
    """Judge an access to an array of which bytes may be missing; ``missing``: their table."""
    if what == STORE:
        return clear(missing, nbytes)
    if any_missing(missing, nbytes):
        return give_up(x, site, UNDEFINED)
    return 0


def repeats(site: int, mask: int, at: int, first: int) -> int:
    """Return whether lanes lie to each other as in the site's last pattern."""
    differ = 0
    if mask == WHOLE:
        for lane in range(32):
            relative = load64(at + lane * 8) - first
            differ |= relative ^ load64(site + (PATTERN + lane) * WORD)
        return differ == 0
    while mask:
        lane = lowest_bit(mask)
        relative = load64(at + lane * 8) - first
        differ |= relative ^ load64(site + (PATTERN + lane) * WORD)
        mask &= mask - 1
    return differ == 0


def count_request(
    x: int, site: int, mask: int, at: int, what: int, space: int, nbytes: int
) -> int:  # fmt: skip
    """Add a request's figures to its site's; those of the last pattern are remembered."""
    first = load64(at + lowest_bit(mask) * 8)
    # A word of local memory lies 128 bytes behind the last one, whatever the warp is.
    start = first & (31 if space == GLOBAL else 3)
    same: int = load64(site + PATTERN_MASK * WORD) == mask
    same &= load64(site + PATTERN_SPACE * WORD) == space
    same &= load64(site + PATTERN_START * WORD) == start
    if same:
        same = repeats(site, mask, at, first)
    figures = site + PATTERN_FIGURES * WORD
    if same == 0:
        store64(site + PATTERN_MASK * WORD, mask)
        store64(site + PATTERN_SPACE * WORD, space)
        store64(site + PATTERN_START * WORD, start)
        lanes = mask
        while lanes:
            lane = lowest_bit(lanes)
            store64(site + (PATTERN + lane) * WORD, load64(at + lane * 8) - first)
            lanes &= lanes - 1
        if space == LOCAL_SPACE:
            local_cost(at, mask, nbytes, load64(x + WARP * WORD) * 32, figures)
        elif space == SHARED_SPACE and what == ATOMIC_OPERATION:
            atomic_shared_cost(at, mask, nbytes, swaps(site), figures)
        elif space == SHARED_SPACE:
            shared_cost(at, mask, nbytes, what == LOAD, figures)
        elif what == ATOMIC_OPERATION:
            atomic_global_cost(at, mask, nbytes, figures)
        else:
            global_cost(at, mask, nbytes, figures)
    total = site + (FIGURES + space * 8) * WORD
    for i in range(8):
        store64(total + i * 8, load64(total + i * 8) + load64(figures + i * 8))
    return 0


def look_global(
    x: int, site: int, mask: int, at: int, place: int, what: int, nbytes: int
) -> int:  # fmt: skip
    """Judge an access to global memory; ``place`` gets where each lane's bytes are."""
    begin = load64(x + BEGIN * WORD)
    warp = load64(x + WARP * WORD)
    now_at = now(x, warp)
    look = load64(x + RACES * WORD) and load64(site + COUNTED * WORD)
    grain = load64(x + GLOBAL_GRAIN * WORD)
    touch = (TOUCHED + load64(site + TOUCH * WORD)) * WORD
    array = 0
    first = 0
    end = 0
    move = 0
    slots = 0
    while mask:
        lane = lowest_bit(mask)
        address = load64(at + lane * 8)
        if array == 0 or outside(address, nbytes, first, end):
            array = lane_array(x, site, address, what, nbytes)
            if array == 0:
                return 1
            first = load64(array + BASE * WORD)
            end = first + load64(array + BYTES * WORD)
            move = load64(array + HOST * WORD) - first
            slots = load64(array + SHADOW * WORD)
            if look and slots:
                entered = enters(x, site, array, what)
                if entered < 0:
                    return 1
                slots = slots * entered
        missing = load64(array + MISSING * WORD)
        if missing and judge_missing(x, site, missing + address - first, what, nbytes):
            return 1
        store64(place + lane * 8, address + move)
        inside = address - first
        thread = warp * 32 + lane
        marks = load64(array + touch)
        if marks:
            for touched in range(inside >> grain, (inside + nbytes - 1 >> grain) + 1):
                store8(marks + touched, 1)
        checked = look and slots
        if checked and races(begin, now_at, slots, inside, nbytes, grain, thread, what, 0):
            return give_up(x, site, MAY_RACE)
        if what == ATOMIC_OPERATION:
            records = load64(array + ORDER * WORD)
            if judge_order(x, site, records, inside, nbytes, load64(x + BATCH * WORD)):
                return give_up(x, site, OUT_OF_ORDER)
        mask &= mask - 1
    return 0


def look_inside(
    x: int, site: int, mask: int, at: int, place: int, what: int, space: int, nbytes: int
) -> int:  # fmt: skip
    """Judge an access to shared or local memory; likewise."""
    begin = load64(x + BEGIN * WORD)
    warp = load64(x + WARP * WORD)
    now_at = now(x, warp)
    look = load64(x + RACES * WORD) and load64(site + COUNTED * WORD)
    grain = load64(x + SHARED_GRAIN * WORD)
    slots = load64(x + SHARED_SHADOW * WORD)
    judges = load64(x + UNINITIALISED * WORD)
    first = 0
    end = load64(x + LOCAL_BYTES * WORD)
    memory = load64(x + LOCAL * WORD)
    table = load64(x + LOCAL_DEFINED * WORD)
    if space == SHARED_SPACE:
        first = load64(site + FIRST * WORD)
        end = load64(site + END * WORD)
        memory = load64(x + SHARED * WORD)
        table = load64(x + SHARED_DEFINED * WORD)
    while mask:
        lane = lowest_bit(mask)
        address = load64(at + lane * 8)
        if outside(address, nbytes, first, end):
            return give_up(x, site, OUT_OF_BOUNDS)
        thread = warp * 32 + lane
        inside = address
        if space == LOCAL_SPACE:
            inside += thread * end
        store64(place + lane * 8, memory + inside)
        if what == STORE:
            define(table + inside, nbytes)
        elif judges and all_defined(table + inside, nbytes) == 0:
            return give_up(x, site, UNDEFINED)
        checked = space == SHARED_SPACE and look
        if checked and races(begin, now_at, slots, address, nbytes, grain, thread, what, 1):
            return give_up(x, site, MAY_RACE)
        if what == ATOMIC_OPERATION:
            records = load64(x + SHARED_ORDER * WORD)
            if judge_order(x, site, records, address, nbytes, load64(x + BLOCK * WORD) + 1):
                return give_up(x, site, OUT_OF_ORDER)
        mask &= mask - 1
    return 0


def access(
    x: int, site: int, mask: int, addresses: int, values: int, results: int, what: int,
    space: int, nbytes: int, count: int,
) -> int:  # fmt: skip
    """Access memory of one space; the last four are known when this is compiled.

    All lanes are judged before any accesses memory.
    """
    if mask == 0:
        return 0
    at = stack(32)
    place = stack(32)
    offset = load64(site + OFFSET * WORD)
    bits = 0
    if mask == WHOLE:
        for lane in range(32):
            address = load64(addresses + lane * 8) + offset
            store64(at + lane * 8, address)
            bits |= address
    else:
        lanes = mask
        while lanes:
            lane = lowest_bit(lanes)
            address = load64(addresses + lane * 8) + offset
            store64(at + lane * 8, address)
            bits |= address
            lanes &= lanes - 1
    if bits & (nbytes - 1):
        return give_up(x, site, MISALIGNED)
    judged = GENERAL
    if mask == WHOLE and what != ATOMIC_OPERATION:
        if space == GLOBAL:
            judged = look_global_whole(x, site, at, place, what, nbytes)
        if space == SHARED_SPACE:
            judged = look_shared_whole(x, site, at, place, what, nbytes)
        if space == LOCAL_SPACE:
            judged = look_local_whole(x, site, at, place, what, nbytes)
    if judged == GENERAL:
        if space == GLOBAL:
            judged = look_global(x, site, mask, at, place, what, nbytes)
        else:
            judged = look_inside(x, site, mask, at, place, what, space, nbytes)
    if judged:
        return 1
    wanted = load64(x + COUNTS * WORD) or what == ATOMIC_OPERATION  # these are work
    if wanted and load64(site + COUNTED * WORD):
        count_request(x, site, mask, at, what, space, nbytes)
    size = nbytes
    if count == 2:
        size = nbytes >> 1
    if count == 4:
        size = nbytes >> 2
    if mask == WHOLE:
        for lane in range(32):
            move_lane(site, place, values, results, lane, what, size, count, space)
    else:
        lanes = mask
        while lanes:
            move_lane(site, place, values, results, lowest_bit(lanes), what, size, count, space)
            lanes &= lanes - 1
    return 0


def move_lane(
    site: int, place: int, values: int, results: int, lane: int, what: int, size: int,
    count: int, space: int,
) -> int:  # fmt: skip
    """Do what one lane does to memory."""
    memory = load64(place + lane * 8)
    value = values + lane * size
    found = results + lane * size
    if what == LOAD:
        for i in range(count):
            put_element(found + i * LANE_WORD, element(memory + i * size, size), size)
    elif what == STORE:
        for i in range(count):
            put_element(memory + i * size, element(value + i * LANE_WORD, size), size)
    else:
        before = element(memory, size)
        put_element(found, before, size)
        given = element(value, size)
        other = element(value + LANE_WORD, size)
        after = atomic_operation(site, before, given, other, size, space == GLOBAL)
        put_element(memory, after, size)
    return 0
