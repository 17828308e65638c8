"""Generic addresses: which address space the lanes of a warp access."""

from ..intrinsics import load64, lowest_bit, store64
from ..layout import OFFSET, SEVERAL_SPACES, SITES, WHERE, WHY, WORD

WINDOW_BITS = 60
SHARED_WINDOW = (1 << 60) + (1 << 35)
LOCAL_WINDOW = (1 << 61) + (1 << 35)


def space_of(address: int) -> int:
    """Return the space that a generic address lies in: global, shared or local; else -1."""
    window = address >> WINDOW_BITS
    if window < 0:
        return -1
    return 2 if window > 2 else window


def plain_addresses(x: int, site: int, mask: int, addresses: int) -> int:
    """Make generic addresses those of the space that they lie in, which is returned.

    Returns:
        3 if the lanes access several spaces: native code gives up.
    """
    if mask == 0:
        return 0
    offset = load64(site + OFFSET * WORD)
    space = space_of(load64(addresses + lowest_bit(mask) * 8) + offset)
    start = 0
    if space == 1:
        start = SHARED_WINDOW
    if space == 2:
        start = LOCAL_WINDOW
    while mask:
        at = addresses + lowest_bit(mask) * 8
        if space < 0 or space_of(load64(at) + offset) != space:
            store64(x + WHY * WORD, SEVERAL_SPACES)
            store64(x + WHERE * WORD, site - load64(x + SITES * WORD))
            return 3
        store64(at, load64(at) - start)
        mask &= mask - 1
    return space
