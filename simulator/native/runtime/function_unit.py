"""The special-function unit, natively: ``isa/scalar/mufu.py`` on the bits of a float32.

Its formulas and names are explained there. ``t`` is the address of the tables
(``native/unit_tables.py``): c0, c1 and c2 of each piece as words, then the squares, two bytes each.
Subnormal arguments are zeros, as with ``.ftz``; a NaN gives the canonical one.
"""

from ..intrinsics import highest_bit, load16, load64

RCP, RSQRT, SQRT, LG2, EX2, SIN, TANH, PIECES = 0, 128, 256, 384, 448, 512, 576, 627
"""The first piece of each function, and how many there are."""
SQUARES_AT = PIECES * 24
SIGN, INFINITY, NAN, NORMAL, FRACTION = 1 << 31, 255 << 23, 0x7FFFFFFF, 1 << 23, (1 << 23) - 1
LOW = (1 << 17) - 1
TURN_FRACTION, TURN_EXPONENT = 0xA2F983, 26
"""One over two pi as a float32: a significand of 24 bits, over 2**26."""
ONE = 127 << 23


def quadratic(t: int, first: int, piece: int, d: int) -> int:
    """Return c0 + c1 * d + c2 * square(d) of a function's piece."""
    at = t + (first + piece) * 24
    square = load16(t + SQUARES_AT + d * 2)
    return load64(at) + load64(at + 8) * d + load64(at + 16) * square


def from_fixed(magnitude: int, unit: int) -> int:
    """Return a number of units of 2**-unit, at least 0, cut off to a float32."""
    if magnitude == 0:
        return 0
    top = highest_bit(magnitude)
    if top > 23:
        magnitude = magnitude >> (top - 23)
    else:
        magnitude = magnitude << (23 - top)
    return ((top - unit + 127) << 23) + (magnitude & FRACTION)


def unless_positive(result: int, w: int, zero: int, infinity: int) -> int:
    """Return a result, or what zeros, negative numbers, +infinity and NaNs give instead."""
    if (w & NAN) > INFINITY:
        return NAN
    if (w & INFINITY) == 0:
        return zero
    if w == INFINITY:
        return infinity
    if w >= SIGN:
        return NAN
    return result


def unit_rcp(t: int, w: int) -> int:
    """Reciprocal."""
    if (w & NAN) > INFINITY:
        return NAN
    size = quadratic(t, RCP, (w >> 16) & 127, (w << 1) & 0x1FFFE) >> 16
    exponent = w & INFINITY
    size += (252 << 23) - exponent
    if size < NORMAL:
        size = 0
    elif exponent == 0:
        size = INFINITY
    return size | (w & SIGN)


def unit_rcp64(t: int, w: int) -> int:
    """Reciprocal of a float64, of its upper word alone; the lower one of the result is 0."""
    w = (w >> 32) & 0xFFFFFFFF
    exponent = w & (2047 << 20)
    if (w & NAN) > 2047 << 20:
        return NAN << 32
    size = quadratic(t, RCP, (w >> 13) & 127, (w << 4) & 0x1FFFE) >> 19
    size += (2044 << 20) - exponent
    if size < 1 << 20:
        size = 0
    elif exponent == 0:
        size = 2047 << 20
    return (size | (w & SIGN)) << 32


def unit_rsqrt(t: int, w: int) -> int:
    """Reciprocal square root."""
    result = (189 << 23) + (quadratic(t, RSQRT, (w >> 17) & 127, w & LOW) >> 16)
    result -= (w + NORMAL) >> 24 << 23
    result += (w & (2 * NORMAL - 1)) == NORMAL
    return unless_positive(result, w, (w & SIGN) | INFINITY, 0)


def unit_sqrt(t: int, w: int) -> int:
    """Square root."""
    total = quadratic(t, SQRT, (w >> 17) & 127, w & LOW)
    result = (62 << 23) + ((w + NORMAL) >> 24 << 23) + (total >> 17)
    return unless_positive(result, w, w & SIGN, INFINITY)


def unit_lg2(t: int, w: int) -> int:
    """Logarithm to base 2."""
    total = quadratic(t, LG2, (w >> 17) & 63, w & LOW)
    total = (total + (((w >> 23) - 127) << 40)) >> 4
    sign = total >> 63
    result = from_fixed(total ^ sign, 36) | (sign & SIGN)
    if w == ONE:
        result = 0
    return unless_positive(result, w, SIGN | INFINITY, INFINITY)


def unit_ex2(t: int, w: int) -> int:
    """Power of 2."""
    if (w & NAN) > INFINITY:
        return NAN
    exponent = ((w >> 23) & 255) - 127
    size = (w & FRACTION) | NORMAL
    if exponent >= 8:  # 256 and more
        size = NORMAL << 8
    elif exponent >= 0:
        size = size << exponent
    elif exponent > -32:
        size = size >> -exponent
    else:
        size = 0
    fixed = -size if w & SIGN else size
    fraction = fixed & FRACTION
    result = fixed - fraction + (126 << 23)
    fraction -= fixed < 0 and fraction != 0
    result += quadratic(t, EX2, fraction >> 17, fraction & LOW) >> 17
    if result < NORMAL:
        return 0
    return INFINITY if result > INFINITY else result


def unit_turn(t: int, w: int, quarters: int, changes: int) -> int:
    """Sine of an angle and quarters of a turn more; ``changes``: its sign changes the result's."""
    if (w & NAN) >= INFINITY:
        return NAN
    exponent = (w >> 23) & 255
    size = w & FRACTION
    if exponent:
        size = size | NORMAL
    else:
        exponent = 1
    product = size * TURN_FRACTION
    fixed = 0
    if product:
        top = highest_bit(product)
        if top > 23:
            product = product >> (top - 23) << (top - 23)
        up = exponent - 150 - TURN_EXPONENT + 25
        if up >= 0:
            if up < 25:
                fixed = product << up
        elif up > -64:
            fixed = product >> -up
    fixed = (fixed & 0x1FFFFFF) + (quarters << 23)
    place = fixed & FRACTION
    if fixed & NORMAL:
        place = place ^ FRACTION
    result = from_fixed(quadratic(t, SIN, place >> 17, place & LOW), 40)
    negative = (fixed >> 24) & 1
    if changes:
        negative = negative ^ (w >> 31)
    return result ^ (negative << 31)


def unit_sin(t: int, w: int) -> int:
    """Sine."""
    return unit_turn(t, w, 0, 1)


def unit_cos(t: int, w: int) -> int:
    """Cosine."""
    return unit_turn(t, w, 1, 0)


def unit_tanh(t: int, w: int) -> int:
    """Hyperbolic tangent; subnormals are kept."""
    magnitude = w & NAN
    sign = w & SIGN
    if magnitude > INFINITY:
        return NAN
    if magnitude < 119 << 23:  # 2**-8
        return w
    if magnitude >= 130 << 23:  # 8
        return sign | ONE
    row = (magnitude >> 23) - 119
    bits = tanh_bits(row)
    place = (w & FRACTION) >> (6 - bits)
    first = 0
    for before in range(row):
        first += 1 << tanh_bits(before)
    return from_fixed(quadratic(t, TANH, first + (place >> 17), place & LOW), 40) | sign


def tanh_bits(row: int) -> int:
    """Return how many bits of the significand choose the piece, for exponents from -8 on."""
    return (0x34322211000 >> row * 4) & 15
