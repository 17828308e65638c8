"""Atomic operations on integers: what they leave in memory (``memory/atomics.py``)."""

from ..intrinsics import below, load64
from ..layout import OPERATION, SIGNED, WORD

ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC = range(10)
NAMES = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def swaps(site: int) -> int:
    """Return whether a site compares and swaps."""
    return load64(site + OPERATION * WORD) == CAS


def less(one: int, other: int, signed: int, size: int) -> int:
    """Return whether one value is less than another; of 4 bytes, both are zero-extended."""
    if signed == 0:
        return below(one, other)
    if size == 4:
        return one << 32 < other << 32
    return one < other


def atomic_operation(site: int, old: int, given: int, other: int, size: int) -> int:
    """Return what an operation makes of what it finds; ``other``: what a swap puts there."""
    name = load64(site + OPERATION * WORD)
    signed = load64(site + SIGNED * WORD)
    if name == ADD:
        return old + given
    if name == MIN:
        return old if less(old, given, signed, size) else given
    if name == MAX:
        return given if less(old, given, signed, size) else old
    if name == AND:
        return old & given
    if name == OR:
        return old | given
    if name == XOR:
        return old ^ given
    if name == EXCH:
        return given
    if name == INC:
        return old + 1 if below(old, given) else 0
    if name == DEC:
        return given if old == 0 or below(given, old) else old - 1
    return other if old == given else old
