"""Atomic operations: what they leave in memory (``memory/atomics.py``)."""

from ..intrinsics import below, load64, sum_f32, sum_f64
from ..layout import OPERATION, SIGNED, WORD

ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC, ADD_F32, ADD_F64 = range(12)
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


def flushed(value: int) -> int:
    """Return a float32, or zero of its sign if it is subnormal."""
    return value if value & 0x7F800000 else value & 0x80000000


def add_f32(old: int, given: int, is_global: int) -> int:
    """Return a sum of float32 numbers; in global memory subnormals are zeros."""
    if is_global:
        total = flushed(sum_f32(flushed(old), flushed(given)))
    else:
        total = sum_f32(old, given)
    return 0x7FFFFFFF if total & 0x7FFFFFFF > 0x7F800000 else total


def is_nan64(value: int) -> int:
    """Return whether a float64 is NaN."""
    return value & 0x7FFFFFFFFFFFFFFF > 0x7FF << 52


def add_f64(old: int, given: int, is_global: int) -> int:
    """Return a sum of float64 numbers; the operand's NaN goes before memory's."""
    total = sum_f64(old, given)
    if is_nan64(total) == 0:
        return total
    total = 0xFFF << 52
    if is_nan64(old):
        total = old
    if is_nan64(given):
        total = given
    if is_global and total != 0xFFF << 52:
        return total
    return total | 1 << 51


def atomic_operation(site: int, old: int, given: int, other: int, size: int, is_global: int) -> int:
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
    if name == ADD_F32:
        return add_f32(old, given, is_global)
    if name == ADD_F64:
        return add_f64(old, given, is_global)
    return other if old == given else old
