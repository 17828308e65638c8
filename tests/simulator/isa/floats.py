"""Binary floating point on Python integers, exact, rounded once at the end.

A finite number of a format is an integer multiple of the format's smallest subnormal;
sums and products of such integers are exact.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

ORDERED: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Format:
    """A binary interchange format (or bfloat16).

    Attributes:
        bits: Its width; ``digits``: of the significand, the hidden one counted.
        nan: The NaN that arithmetic gives.
        ftz: Whether results that are tiny become zero: below the least normal number when
            rounded to so many digits with no end to the exponents.
    """

    bits: int
    digits: int
    nan: int
    ftz: bool = False

    @cached_property
    def bias(self) -> int:
        return (1 << (self.bits - self.digits - 1)) - 1

    @cached_property
    def lowest(self) -> int:
        """Exponent of the smallest subnormal."""
        return 2 - self.bias - self.digits

    @cached_property
    def inf(self) -> int:
        return ((1 << (self.bits - self.digits)) - 1) << (self.digits - 1)

    @cached_property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @cached_property
    def one(self) -> int:
        return self.bias << (self.digits - 1)

    def negative(self, x: int) -> bool:
        return bool(x & self.sign_bit)

    @cached_property
    def unsigned(self) -> int:
        """All bits but the sign's."""
        return self.sign_bit - 1

    def magnitude(self, x: int) -> int:
        return x & self.unsigned

    def is_nan(self, x: int) -> bool:
        return x & self.unsigned > self.inf

    def is_inf(self, x: int) -> bool:
        return x & self.unsigned == self.inf

    def is_subnormal(self, x: int) -> bool:
        return 0 < self.magnitude(x) < 1 << (self.digits - 1)

    @cached_property
    def _values(self) -> dict[int, int]:
        """Numbers that were asked for: many cases take the same operands."""
        return {}

    def value(self, x: int) -> int:
        """A finite number in units of the smallest subnormal."""
        value = self._values.get(x)
        if value is None:
            value = self._values[x] = self._value(x)
        return value

    def _value(self, x: int) -> int:
        fraction = x & ((1 << (self.digits - 1)) - 1)
        exponent = self.magnitude(x) >> (self.digits - 1)
        if exponent:
            fraction = (fraction | 1 << (self.digits - 1)) << (exponent - 1)
        return -fraction if self.negative(x) else fraction

    def encode(self, numerator: int, power: int, mode: str = "rn", denominator: int = 1) -> int:
        """``numerator / denominator * 2**power``, not zero, rounded."""
        sign = self.sign_bit if numerator < 0 else 0
        n, d = abs(numerator), denominator
        exponent = n.bit_length() - d.bit_length() + power
        if n << max(power - exponent, 0) < d << max(exponent - power, 0):
            exponent -= 1
        unit = exponent - self.digits + 1
        unit = unit if self.ftz else max(unit, self.lowest)
        if power >= unit:
            n <<= power - unit
        else:
            d <<= unit - power
        whole, rest = divmod(n, d)
        away = {"rn": 2 * rest + (whole & 1) > d, "rz": False, "rm": bool(sign), "rp": not sign}
        whole += bool(rest) and away[mode]
        if whole >> self.digits:
            whole, unit = whole >> 1, unit + 1
        if unit < self.lowest:
            return sign
        if unit > self.bias - self.digits + 1:
            return sign | (self.inf if mode == "rn" or away[mode] else self.inf - 1)
        if whole >> (self.digits - 1):
            whole += (unit - self.lowest) << (self.digits - 1)
        return sign | whole

    def flush(self, x: int) -> int:
        """A subnormal as zero of its sign."""
        return x & self.sign_bit if self.is_subnormal(x) else x

    def multiply_add(self, a: int, b: int, c: int, mode: str = "rn") -> int:
        """``a * b + c``, rounded once."""
        if any(map(self.is_nan, (a, b, c))):
            return self.nan
        sign = (a ^ b) & self.sign_bit
        if self.is_inf(a) or self.is_inf(b):
            zero = not (self.magnitude(a) and self.magnitude(b))
            clash = self.is_inf(c) and sign != c & self.sign_bit
            return self.nan if zero or clash else sign | self.inf
        if self.is_inf(c):
            return c
        exact = self.value(a) * self.value(b) + (self.value(c) << -self.lowest)
        if exact:
            return self.encode(exact, 2 * self.lowest, mode)
        if sign == c & self.sign_bit and not self.magnitude(c):
            return sign
        return self.sign_bit if mode == "rm" else 0

    def add(self, a: int, b: int, mode: str = "rn") -> int:
        return self.multiply_add(a, self.one, b, mode)

    def multiply(self, a: int, b: int, mode: str = "rn") -> int:
        zero = (a ^ b) & self.sign_bit  # adding it changes nothing, not even a zero's sign
        return self.multiply_add(a, b, zero, mode)

    def divide(self, a: int, b: int, mode: str = "rn") -> int:
        sign = (a ^ b) & self.sign_bit
        nan = self.is_nan(a) or self.is_nan(b)
        if nan or (
            self.is_inf(a) if self.is_inf(b) else not (self.magnitude(a) | self.magnitude(b))
        ):
            return self.nan
        if self.is_inf(a) or not self.magnitude(b):
            return sign | self.inf
        if self.is_inf(b) or not self.magnitude(a):
            return sign
        x, y = self.value(a), self.value(b)
        return self.encode(x if y > 0 else -x, 0, mode, abs(y))

    def root(self, x: int, mode: str = "rn") -> int:
        """The square root."""
        if self.is_nan(x) or (self.negative(x) and self.magnitude(x)):
            return self.nan
        if self.is_inf(x) or not self.magnitude(x):
            return x
        # An integer root of more digits; an odd one if inexact, so that it rounds like the root.
        shift = 2 * self.digits + 8 + self.lowest % 2
        square = self.value(x) << shift
        whole = math.isqrt(square)
        odd = 2 * whole + (whole * whole != square)
        return self.encode(odd, (self.lowest - shift) // 2 - 1, mode)

    def order(self, x: int) -> int:
        """An integer that grows with the number."""
        return -self.magnitude(x) if self.negative(x) else self.magnitude(x)

    def extreme(self, lesser: bool, a: int, b: int, propagate: bool = False) -> int:
        """``min`` or ``max``: -0 is less than +0, and NaN gives way unless it propagates."""
        if self.is_nan(a) or self.is_nan(b):
            if propagate or (self.is_nan(a) and self.is_nan(b)):
                return self.nan
            return b if self.is_nan(a) else a
        key = lambda x: (self.order(x), not self.negative(x))  # noqa: E731
        return min(a, b, key=key) if lesser else max(a, b, key=key)

    def saturate(self, x: int) -> int:
        """Into [0, 1]; NaN is +0."""
        if self.is_nan(x) or self.negative(x):
            return 0
        return min(x, self.one)

    def compare(self, name: str, a: int, b: int) -> bool:
        """A comparison by the name that ``setp`` gives it."""
        unordered = self.is_nan(a) or self.is_nan(b)
        if name in ("num", "nan"):
            return unordered == (name == "nan")
        if unordered:
            return len(name) == 3
        return ORDERED[name[:2]](self.order(a), self.order(b))

    def convert(self, x: int, to: Format, mode: str = "rn") -> int:
        """A number of this format in another; NaN becomes that one's."""
        if self.is_nan(x):
            return to.nan
        sign = to.sign_bit if self.negative(x) else 0
        if self.is_inf(x):
            return sign | to.inf
        return to.encode(self.value(x), self.lowest, mode) if self.magnitude(x) else sign

    def number(self, x: int) -> Fraction:
        """A finite number."""
        return Fraction(self.value(x), 1 << -self.lowest)

    def ulp(self, number: Fraction) -> Fraction:
        """The distance of the numbers about one."""
        bits = math.floor(abs(number) * (1 << -self.lowest)).bit_length()
        return Fraction(1 << max(bits - self.digits, 0), 1 << -self.lowest)


FORMATS = {
    "f16": Format(16, 11, 0x7FFF),
    "bf16": Format(16, 8, 0x7FFF),
    "f32": Format(32, 24, 0x7FFFFFFF),
    "f64": Format(64, 53, 0xFFF8000000000000),
}


@dataclass(frozen=True)
class Near:
    """A result that is right if it is near enough to a number.

    Attributes:
        zeros: How many of its low bits are zero.
    """

    format: Format
    number: Fraction
    error: Fraction
    zeros: int = 0

    def holds(self, x: int) -> bool:
        """Whether a result is right."""
        f, most = self.format, self.format.number(self.format.inf - 1)
        if f.is_nan(x):
            return False
        if f.is_inf(x):
            return abs(self.number) + self.error > most and f.negative(x) == (self.number < 0)
        close = abs(self.number) <= most and abs(f.number(x) - self.number) <= self.error
        return close and x % (1 << self.zeros) == 0
