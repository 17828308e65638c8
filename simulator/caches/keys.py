"""Sectors of global memory together with who touches them, as one number to sort by.

An address has room for arrays of a terabyte each and stands in the middle of its own; a sector's
number alone would leave no bits for the block. It is narrowed to arrays of 128 GiB, 16,384 of them
(of more, some count as the same); sectors of a line stay neighbours.
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
"""Bits of a sector: who touches it stands above them, in what is left of 63."""


def packed(who: Flat, sectors: Flat) -> Flat:
    """Keys of sectors, by their addresses' upper bits, and of blocks, warps or groups of either."""
    number = sectors >> _ARRAY & (1 << _NUMBER) - 1
    keys: Flat = who << _WHO | number << _OFFSET | sectors & (1 << _OFFSET) - 1
    return keys


def unpacked(keys: Flat) -> tuple[Flat, Flat]:
    """Who, and the sectors."""
    number = keys >> _OFFSET & (1 << _NUMBER) - 1
    offset = keys & (1 << _OFFSET) - 1 | np.int64(MIDDLE >> SECTOR_BITS)
    return keys >> _WHO, number << _ARRAY | offset
