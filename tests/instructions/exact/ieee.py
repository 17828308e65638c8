"""Binary floating point on exact rationals: decoding, encoding, rounding.

Nothing here comes from the simulator; numbers are ``Fraction``, and what is no number is
one of the strings ``inf``, ``-inf``, ``nan``; ``-0`` is a string too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

FORMATS = {"f16": (11, 15), "f32": (24, 127), "f64": (53, 1023)}
"""Significand bits and the largest exponent."""

Number = Fraction | str

ZERO = Fraction(0)


def layout(kind: str) -> tuple[int, int, int, int]:
    """Fraction bits, exponent bits, bias, and the sign bit's position."""
    digits, bias = FORMATS[kind]
    exponent_bits = bias.bit_length() + 1
    return digits - 1, exponent_bits, bias, digits - 1 + exponent_bits


@lru_cache(maxsize=1 << 16)
def decode(x: int, kind: str) -> Number:
    """The number that some bits stand for."""
    fraction_bits, exponent_bits, bias, top = layout(kind)
    negative = x >> top & 1
    exponent = x >> fraction_bits & ((1 << exponent_bits) - 1)
    fraction = x & ((1 << fraction_bits) - 1)
    if exponent == (1 << exponent_bits) - 1:
        return "nan" if fraction else "-inf" if negative else "inf"
    if exponent == 0 and fraction == 0:
        return "-0" if negative else ZERO
    if exponent:
        fraction |= 1 << fraction_bits
    power = max(exponent, 1) - bias - fraction_bits
    value = Fraction(fraction << power) if power >= 0 else Fraction(fraction, 1 << -power)
    return -value if negative else value


def is_nan(x: int, kind: str) -> bool:
    return decode(x, kind) == "nan"


def sign_of(n: Number) -> int:
    """1 for negative ones, -0 included."""
    return int(n.startswith("-")) if isinstance(n, str) else int(n < 0)


def value_of(n: Number) -> Fraction:
    """A finite number's value."""
    return ZERO if n == "-0" else n  # type: ignore[return-value]


def finite(n: Number) -> bool:
    return n not in ("inf", "-inf", "nan")


def is_zero(n: Number) -> bool:
    return n == "-0" or n == 0


def zero(kind: str, negative: int) -> int:
    return negative << layout(kind)[3]


def infinity(kind: str, negative: int) -> int:
    fraction_bits, exponent_bits, _, top = layout(kind)
    return negative << top | ((1 << exponent_bits) - 1) << fraction_bits


def largest(kind: str, negative: int) -> int:
    return infinity(kind, negative) - 1


def _rounds_up(rest: Fraction, odd: int, mode: str, negative: bool) -> bool:
    """Whether the magnitude goes up, what is cut off being ``rest`` of a unit."""
    if mode == "rn":
        return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and odd == 1)
    return rest > 0 and mode == ("rm" if negative else "rp")


def floor_log2(m: Fraction) -> int:
    guess = m.numerator.bit_length() - m.denominator.bit_length()
    power = Fraction(1 << guess) if guess >= 0 else Fraction(1, 1 << -guess)
    return guess if power <= m else guess - 1


def encode(value: Fraction, kind: str, mode: str = "rn") -> int:
    """A number other than zero, rounded into a format."""
    fraction_bits, _, bias, top = layout(kind)
    negative, m = value < 0, abs(value)
    unit = max(floor_log2(m), 1 - bias) - fraction_bits
    scaled = m * (1 << -unit) if unit < 0 else m / (1 << unit)
    whole = math.floor(scaled)
    whole += _rounds_up(scaled - whole, whole & 1, mode, negative)
    # Bits count up through the exponents, subnormals included.
    exponent = unit + fraction_bits + bias
    result = whole + ((exponent - 1) << fraction_bits) if whole >> fraction_bits else whole
    if result >= infinity(kind, 0):
        up = mode == "rn" or mode == ("rm" if negative else "rp")
        result = infinity(kind, 0) if up else largest(kind, 0)
    return int(negative) << top | result


def integral(value: Fraction, mode: str) -> int:
    """Rounded to an integer."""
    whole = math.floor(abs(value))
    whole += _rounds_up(abs(value) - whole, whole & 1, mode, value < 0)
    return -whole if value < 0 else whole


def root(value: Fraction, kind: str, mode: str) -> int:
    """The square root of a positive number, rounded into a format."""
    digits = FORMATS[kind][0]
    # An integer root of many more digits; odd if inexact, so that it rounds like the root.
    shift = 2 * max(0, digits + 8 - floor_log2(value) // 2)
    n = value * (1 << shift)
    whole = math.isqrt(math.floor(n))
    exact = whole * whole == n
    return encode(Fraction(2 * whole + (not exact), 2 << shift // 2), kind, mode)


def flush(x: int, kind: str = "f32") -> int:
    """Subnormal bits to zero of the same sign."""
    fraction_bits, exponent_bits, _, top = layout(kind)
    return x if x >> fraction_bits & ((1 << exponent_bits) - 1) else x >> top << top


SMALL = Fraction(1, 1 << 160)


def tiny(value: Fraction, mode: str) -> bool:
    """Below 2**-126 when rounded to 24 bits with no end to the exponents."""
    if abs(value) >= Fraction(1, 1 << 126):
        return False
    # Moved up by 2**64, where the format is not subnormal.
    rounded = encode(value * (1 << 64), "f32", mode) if abs(value) > SMALL else 0
    return rounded & 0x7FFFFFFF < 65 << 23
