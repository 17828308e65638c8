"""Binary floating point on Python integers, exact, rounded once at the end.

A finite number of a format is an integer multiple of the format's smallest subnormal;
sums and products of such integers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """A binary interchange format (or bfloat16).

    Attributes:
        bits: Its width; ``digits``: of the significand, the hidden one counted.
        nan: The NaN that arithmetic gives.
    """

    bits: int
    digits: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.digits - 1)) - 1

    @property
    def lowest(self) -> int:
        """Exponent of the smallest subnormal."""
        return 2 - self.bias - self.digits

    @property
    def inf(self) -> int:
        return ((1 << (self.bits - self.digits)) - 1) << (self.digits - 1)

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def one(self) -> int:
        return self.bias << (self.digits - 1)

    def negative(self, x: int) -> bool:
        return bool(x & self.sign_bit)

    def magnitude(self, x: int) -> int:
        return x & (self.sign_bit - 1)

    def is_nan(self, x: int) -> bool:
        return self.magnitude(x) > self.inf

    def is_inf(self, x: int) -> bool:
        return self.magnitude(x) == self.inf

    def is_subnormal(self, x: int) -> bool:
        return 0 < self.magnitude(x) < 1 << (self.digits - 1)

    def value(self, x: int) -> int:
        """A finite number in units of the smallest subnormal."""
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
        unit = max(exponent - self.digits + 1, self.lowest)
        if power >= unit:
            n <<= power - unit
        else:
            d <<= unit - power
        whole, rest = divmod(n, d)
        away = {"rn": 2 * rest + (whole & 1) > d, "rz": False, "rm": bool(sign), "rp": not sign}
        whole += bool(rest) and away[mode]
        if whole >> self.digits:
            whole, unit = whole >> 1, unit + 1
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

    def less(self, a: int, b: int) -> bool:
        """Whether ``a < b``; neither is NaN; zeros are equal."""
        return self.order(a) < self.order(b)

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
        x, y = self.order(a), self.order(b)
        return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[
            name[:2]
        ]

    def convert(self, x: int, to: Format, mode: str = "rn") -> int:
        """A number of this format in another; NaN becomes that one's."""
        if self.is_nan(x):
            return to.nan
        sign = to.sign_bit if self.negative(x) else 0
        if self.is_inf(x):
            return sign | to.inf
        return to.encode(self.value(x), self.lowest, mode) if self.magnitude(x) else sign


FORMATS = {
    "f16": Format(16, 11, 0x7FFF),
    "bf16": Format(16, 8, 0x7FFF),
    "f32": Format(32, 24, 0x7FFFFFFF),
    "f64": Format(64, 53, 0xFFF8000000000000),
}
