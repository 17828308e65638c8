"""Instructions that look across the lanes of a warp: shuffles and votes."""

from ..intrinsics import load8, load32, lowest_bit, store8, store32, store64
from ..layout import ABSENT_LANE, LANE_WORD, RESULTS_AT, VALUES_AT, WHERE, WHY, WORD

UP, DOWN, BUTTERFLY, INDEX = range(4)
ALL, ANY, UNIFORM, BALLOT = range(4)


def shuffle(x: int, mode: int, mask: int, scratch: int) -> int:
    """Give each lane the value of another one, and whether that one is in range."""
    values = scratch + VALUES_AT * LANE_WORD
    results = scratch + RESULTS_AT * LANE_WORD
    lanes = mask
    while lanes:
        lane = lowest_bit(lanes)
        by = load32(values + LANE_WORD + lane * 4) & 31
        control = load32(values + 2 * LANE_WORD + lane * 4)
        segment = (control >> 8) & 31
        clamp = control & 31
        last = (lane & segment) | (clamp & (segment ^ 31))
        source = (lane & segment) | (by & (segment ^ 31))
        if mode == UP:
            source = lane - by
        if mode == DOWN:
            source = lane + by
        if mode == BUTTERFLY:
            source = lane ^ by
        inside = source >= last if mode == UP else source <= last
        if inside == 0:
            source = lane
        source &= 31
        if (mask >> source) & 1 == 0:
            store64(x + WHY * WORD, ABSENT_LANE)
            store64(x + WHERE * WORD, -1)
            return 1
        store32(results + lane * 4, load32(values + source * 4))
        store8(results + LANE_WORD + lane, inside)
        lanes &= lanes - 1
    return 0


def vote(x: int, mode: int, mask: int, scratch: int) -> int:
    """Give each lane what the predicates of all lanes come to."""
    values = scratch + VALUES_AT * LANE_WORD
    results = scratch + RESULTS_AT * LANE_WORD
    true = 0
    lanes = mask
    while lanes:
        lane = lowest_bit(lanes)
        true |= (load8(values + lane) & 1) << lane
        lanes &= lanes - 1
    lanes = mask
    while lanes:
        lane = lowest_bit(lanes)
        if mode == BALLOT:
            store32(results + lane * 4, true)
        elif mode == ANY:
            store8(results + lane, true != 0)
        elif mode == ALL:
            store8(results + lane, true == mask)
        else:
            store8(results + lane, true == 0 or true == mask)
        lanes &= lanes - 1
    return 0
