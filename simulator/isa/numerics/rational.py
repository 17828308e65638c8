"""Exact arithmetic on one number at a time, rounded once: for the rare lanes that need it."""

import sys
from fractions import Fraction

import numpy as np


def fma(a: float, b: float, c: float, mode: str) -> float:
    """``a * b + c`` of finite numbers."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        product_negative = (np.signbit(a) != np.signbit(b)) and True
        if (a == 0 or b == 0) and c == 0 and product_negative == np.signbit(c):
            return -0.0 if product_negative else 0.0
        return -0.0 if mode == "rm" else 0.0
    return _rounded(exact, mode)


def _rounded(x: Fraction, mode: str) -> float:
    """Return a rational number, not zero, as a float64."""
    negative, m = x < 0, abs(x)
    exponent = m.numerator.bit_length() - m.denominator.bit_length()
    if Fraction(2) ** exponent > m:
        exponent -= 1
    unit = max(exponent - 52, -1074)  # of the last bit; of the smallest subnormal
    scaled = m / Fraction(2) ** unit
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    twice = 2 * rest
    up = {
        "rn": twice > scaled.denominator or (twice == scaled.denominator and whole & 1 == 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]
    whole += up
    if whole.bit_length() + unit > 1024:
        infinite = mode == "rn" or (mode == "rm" and negative) or (mode == "rp" and not negative)
        value = float("inf") if infinite else sys.float_info.max
    else:
        value = float(Fraction(whole) * Fraction(2) ** unit)
    return -value if negative else value


def directed(operation: str, mode: str, values: tuple[float, ...], nearest: float) -> float:
    """Return the opcode's result on finite numbers; ``nearest``: rounded to nearest."""
    x = [Fraction(v) for v in values]
    if operation in ("div", "rcp"):
        numerator, divisor = (Fraction(1), x[0]) if operation == "rcp" else (x[0], x[1])
        if divisor == 0 or numerator == 0:
            return nearest
        return _rounded(numerator / divisor, mode)
    if operation == "sqrt":
        if nearest != nearest or nearest == 0:
            return nearest
        square = Fraction(nearest) ** 2
        if square > x[0] and mode in ("rz", "rm"):
            return float(np.nextafter(nearest, 0.0))
        if square < x[0] and mode == "rp":
            return float(np.nextafter(nearest, np.inf))
        return nearest
    exact = {"add": x[0] + x[1], "sub": x[0] - x[1], "mul": x[0] * x[1]}[operation]
    if exact != 0:
        return _rounded(exact, mode)
    if operation == "mul":
        return nearest
    second = -values[1] if operation == "sub" else values[1]
    if np.signbit(values[0]) == np.signbit(second):
        return nearest
    return -0.0 if mode == "rm" else 0.0
