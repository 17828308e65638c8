"""Sort keys of global memory: a sector and the accessing block in one int64.

An address is narrowed so that the block fits: 32,768 arrays have keys of their own (of more,
some share one). Sectors of one line have adjacent keys.
"""

from ..core.geometry import Flat
from ..isa.memory.address_windows import ARRAY_BITS
from ..observe.counters.banks import SECTOR

SECTOR_BITS = SECTOR.bit_length() - 1
"""Of an address, within its sector."""
_WHO = ARRAY_BITS - SECTOR_BITS + 15
"""Bits of a sector; the number of its user stands above them, in the rest of 63 bits."""


def packed(who: Flat, sectors: Flat) -> Flat:
    """Return keys of sectors (upper address bits) and of blocks, warps or groups of these."""
    keys: Flat = who << _WHO | sectors & (1 << _WHO) - 1
    return keys


def unpacked(keys: Flat) -> tuple[Flat, Flat]:
    """Split keys into accessing blocks and sectors."""
    return keys >> _WHO, keys & (1 << _WHO) - 1
