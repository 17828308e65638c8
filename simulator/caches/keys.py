"""Sort keys of global memory: a sector and the accessing block in one int64.

An address is narrowed so that the block fits: each of 16,384 arrays has 128 GiB (of more arrays,
some share a key). Sectors of one line have adjacent keys.
"""

import numpy as np

from ..core.geometry import Flat
from ..isa.memory.address_windows import ARRAY_BITS, MIDDLE
from ..observe.counters.banks import SECTOR

SECTOR_BITS = SECTOR.bit_length() - 1
"""Of an address, within its sector."""
_ARRAY = ARRAY_BITS - SECTOR_BITS
_OFFSET, _NUMBER = 32, 14
_WHO = _OFFSET + _NUMBER
"""Bits of a sector; the number of its user stands above them, in the rest of 63 bits."""


def packed(who: Flat, sectors: Flat) -> Flat:
    """Return keys of sectors (upper address bits) and of blocks, warps or groups of these."""
    number = sectors >> _ARRAY & (1 << _NUMBER) - 1
    keys: Flat = who << _WHO | number << _OFFSET | sectors & (1 << _OFFSET) - 1
    return keys


def unpacked(keys: Flat) -> tuple[Flat, Flat]:
    """Split keys into accessing blocks and sectors."""
    number = keys >> _OFFSET & (1 << _NUMBER) - 1
    offset = keys & (1 << _OFFSET) - 1 | np.int64(MIDDLE >> SECTOR_BITS)
    return keys >> _WHO, number << _ARRAY | offset
