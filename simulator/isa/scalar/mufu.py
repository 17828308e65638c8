"""The special-function unit of a Hopper GPU, bit for bit (``MUFU`` in its machine code).

The upper bits of an argument choose a piece, the 17 below are d; the result is cut off, not
rounded, from c0 + c1 * d + c2 * square(d) in units of 2**-40. The squarer is an array of partial
products without the columns under 2**19. The coefficients in ``mufu.txt`` follow from whole
binades as an H200 gave them; ``python -m tests.studies.approximate`` compares all arguments with
it.
"""

import functools
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.geometry import Lanes
from ..numerics import arithmetic as ieee
from ..table import Function
from . import half

Integers = NDArray[np.int64]

SIGN, NAN = 1 << 31, 0x7FFFFFFF
TINY, HUGE = np.float32(2.0**-126), np.float32(2.0**126)
TURN = float(np.float32(0.15915494))
TANH_BITS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3])
"""How many bits of the significand choose the piece, for exponents -8 to 2."""
TANH_FIRST = np.cumsum(1 << TANH_BITS) - (1 << TANH_BITS)
CHUNK = 1 << 13
"""So many lanes' intermediate values fit a core's cache."""


class MufuFormat(NamedTuple):
    """A float32, or the upper word of a float64."""

    digits: int
    bias: int

    @property
    def normal(self) -> int:
        """The bits of the smallest normal number."""
        return 1 << self.digits

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return (2 * self.bias + 1) << self.digits


SINGLE, UPPER = MufuFormat(23, 127), MufuFormat(20, 1023)


@functools.cache
def squares() -> Integers:
    """Return, for every 17-bit d, the partial products of d*d in columns from 19 up, over 2**19."""
    d = np.arange(1 << 17, dtype=np.int64)
    total = np.zeros_like(d)
    for i in range(17):
        # Bit i by itself stands in column 2 i, with bit j below it in column i + j + 1.
        above = d & ((1 << i) - (1 << min(max(18 - i, 0), i)))
        own = 1 << 2 * i if 2 * i >= 19 else 0
        total += ((d >> i) & 1) * (own + (above << i + 1))
    return total >> 19


def _table() -> list[str]:
    return resources.files(__package__).joinpath("mufu.txt").read_text().splitlines()


def functions() -> list[str]:
    """Return the names of the functions that have pieces of their own."""
    return sorted({line.split()[0] for line in _table()})


@functools.cache
def pieces(name: str) -> tuple[Integers, ...]:
    """c0, c1 and c2 of a function's pieces."""
    own = [line.split()[1:] for line in _table() if line.startswith(name + " ")]
    return tuple(np.array(column, np.int64) for column in zip(*own, strict=True))


def _quadratic(name: str, piece: Lanes, d: Lanes) -> Lanes:
    c0, c1, c2 = pieces(name)
    total = c2.take(piece)
    total *= squares().take(d)
    linear = c1.take(piece)
    linear *= d
    total += linear
    total += c0.take(piece)
    return total


def _bits(x: Lanes) -> Lanes:
    return x.view(np.uint32).astype(np.int64)


def _single(bits: Lanes) -> Lanes:
    return bits.astype(np.uint32).view(np.float32)


def _cut(x: Lanes) -> Lanes:
    """float64 without what a significand of 24 bits does not hold."""
    return (x.view(np.int64) & -(1 << 29)).view(np.float64)


def _from_fixed(magnitude: Lanes, unit: int) -> Lanes:
    return (_cut(magnitude.astype(np.float64)) * 2.0**-unit).astype(np.float32)


def _rcp(w: Lanes, f: MufuFormat = SINGLE) -> Lanes:
    piece = w >> (f.digits - 7)
    piece &= 127
    size = _quadratic("rcp", piece, (w << (24 - f.digits)) & 0x1FFFE)
    size >>= 39 - f.digits
    exponent = w & f.infinity
    size -= exponent
    size += (2 * f.bias - 2) << f.digits
    if size.min() < f.normal or exponent.min() == 0:  # subnormal, or of one
        size = np.where(size < f.normal, 0, np.where(exponent == 0, f.infinity, size))
    size |= w & SIGN
    return size


def _rsqrt(w: Lanes, f: MufuFormat = SINGLE) -> Lanes:
    total = _quadratic("rsqrt", (w >> (f.digits - 6)) & 127, (w << (23 - f.digits)) & 0x1FFFF)
    result = ((3 * f.bias - 3) // 2 << f.digits) + (total >> (39 - f.digits))
    result -= (w + f.normal) >> (f.digits + 1) << f.digits
    # Of a power of four it is exact, which no quadratic has.
    result += (w & (2 * f.normal - 1)) == f.normal
    return _unless_positive(result, w, (w & SIGN) | f.infinity, 0, f)


def _sqrt(w: Lanes) -> Lanes:
    total = _quadratic("sqrt", (w >> 17) & 127, w & 0x1FFFF)
    result = (62 << 23) + ((w + SINGLE.normal) >> 24 << 23) + (total >> 17)
    return _unless_positive(result, w, w & SIGN, SINGLE.infinity)


def _lg2(w: Lanes) -> Lanes:
    total = _quadratic("lg2", (w >> 17) & 63, w & 0x1FFFF)
    total = (total + (((w >> 23) - 127) << 40)) >> 4
    sign = total >> 63
    result = _bits(_from_fixed(total ^ sign, 36)) | (sign & SIGN)
    result = np.where(w == 127 << 23, 0, result)
    return _unless_positive(result, w, SIGN | SINGLE.infinity, SINGLE.infinity)


def _unless_positive(
    result: Lanes, w: Lanes, zero: Lanes | int, infinity: int, f: MufuFormat = SINGLE
) -> Lanes:
    """Return a result, or what zeros, negative numbers and +infinity give instead."""
    if not np.any((w - f.normal).view(np.uint64) >= f.infinity - f.normal):
        return result
    result = np.where(w == f.infinity, infinity, np.where(w >= SIGN, NAN, result))
    return np.where((w & f.infinity) == 0, zero, result)


def _ex2(x: Lanes) -> Lanes:
    fixed = (np.clip(x, -256, 256).astype(np.float64) * 2.0**23).astype(np.int64)
    fraction = fixed & (SINGLE.normal - 1)
    result = fixed - fraction + (126 << 23)
    fraction -= (fixed < 0) & (fraction != 0)  # the complement to one, not to two
    result += _quadratic("ex2", fraction >> 17, fraction & 0x1FFFF) >> 17
    if np.any((result - SINGLE.normal).view(np.uint64) >= SINGLE.infinity - SINGLE.normal):
        result = np.where(result < SINGLE.normal, 0, np.minimum(result, SINGLE.infinity))
    return _single(result)


def _sin(x: Lanes, quarters: int = 0) -> Lanes:
    """With a quarter of a turn more: cos."""
    turns = _cut(np.abs(x).astype(np.float64) * TURN)
    fixed = ((turns - np.floor(turns)) * 2.0**25).astype(np.int64) + (quarters << 23)
    place = (fixed ^ -((fixed >> 23) & 1)) & (SINGLE.normal - 1)
    result = _from_fixed(_quadratic("sin", place >> 17, place & 0x1FFFF), 40)
    negative = ((fixed >> 24) & 1).astype(np.bool_)
    if not quarters:
        negative ^= np.signbit(x)
    return np.where(np.isinf(x), ieee.NAN32, np.where(negative, -result, result))


def _tanh(x: Lanes) -> Lanes:
    w = _bits(x)
    row = (((w >> 23) & 255) - 119).clip(0, 10)
    place = (w & (SINGLE.normal - 1)) >> (6 - TANH_BITS.take(row))
    total = _quadratic("tanh", TANH_FIRST.take(row) + (place >> 17), place & 0x1FFFF)
    result = np.copysign(_from_fixed(total, 40), x)
    result = np.where(np.abs(x) < np.float32(2.0**-8), x, result)
    return np.where(np.abs(x) >= 8, np.copysign(np.float32(1), x), result)


_UNIT: dict[str, Function] = {
    "ex2": _ex2, "sin": _sin, "cos": lambda x: _sin(x, 1), "tanh": _tanh,
    "lg2": lambda x: _single(_lg2(_bits(x))), "rcp": lambda x: _single(_rcp(_bits(x))),
    "rsqrt": lambda x: _single(_rsqrt(_bits(x))), "sqrt": lambda x: _single(_sqrt(_bits(x))),
}  # fmt: skip


def flushing(name: str, x: Lanes) -> Lanes:
    """Return the unit's result for a 1-D float32 array; subnormals are zeros except for tanh."""
    result = _UNIT[name](x)
    if ieee.has_nan(x):
        result = np.where(np.isnan(x), ieee.NAN32, result)
    return result


def _wide_rcp(x: Lanes) -> Lanes:
    scale = np.where(np.abs(x) < TINY, np.float32(2.0**24), np.float32(0.25))
    return flushing("rcp", x * scale) * scale


_tiny: Function = lambda x: np.abs(x) < TINY  # noqa: E731
_up: Function = lambda x: x * np.float32(2.0**24)  # noqa: E731
_WIDE: dict[str, tuple[Function, Function]] = {
    "ex2": (lambda x: x < -126, lambda x: flushing("ex2", x * np.float32(0.5)) ** 2),
    "lg2": (_tiny, lambda x: flushing("lg2", _up(x)) - np.float32(24)),
    "rcp": (lambda x: (np.abs(x) > HUGE) | (np.abs(x) < TINY), _wide_rcp),
    "rsqrt": (_tiny, lambda x: flushing("rsqrt", _up(x)) * np.float32(2.0**12)),
    "sqrt": (_tiny, lambda x: flushing("sqrt", _up(x)) * np.float32(2.0**-12)),
}
"""Where subnormals matter, and how the driver has the unit compute there without ``.ftz``."""


def single(name: str, ftz: bool) -> Function:
    """Return a function of float32, with or without ``.ftz``."""
    there, wide = _WIDE.get(name, (None, None)) if not ftz else (None, None)

    def some(x: Lanes) -> Lanes:
        result = flushing(name, x)
        if there is not None and wide is not None and np.any(where := there(x)):
            result[where] = ieee.canonical(wide(x[where]))
        return result

    return _by_chunks(some)


def _by_chunks(fn: Function) -> Function:
    """Return a function of 1-D arrays, for arrays of all shapes."""

    def apply(x: Lanes) -> Lanes:
        flat = np.asarray(x).reshape(-1)
        parts = [fn(flat[i : i + CHUNK]) for i in range(0, max(flat.size, 1), CHUNK)]
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(np.shape(x))[()]

    return apply


@functools.cache
def words(name: str, type: str) -> NDArray[np.uint16]:
    """Return the results for all f16 or bf16 numbers, truncated; f16 overflows to infinity."""
    x = half.to_double(np.arange(1 << 16, dtype=np.uint16), type).astype(np.float32)
    result = single(name, ftz=True)(x).astype(np.float64)
    if type == "f16":
        result = np.where(result >= 2.0**16, np.inf, result)
    return half.from_double(result, type, "rz")


def upper(name: str) -> Function:
    """``rcp`` or ``rsqrt`` of float64 with ``.ftz``: upper words to upper words, zeros below."""
    unit = {"rcp": _rcp, "rsqrt": _rsqrt}[name]

    def some(x: Lanes) -> Lanes:
        w = (x.view(np.uint64) >> np.uint64(32)).astype(np.int64)
        result = np.where((w & NAN) > UPPER.infinity, NAN, unit(w, UPPER))
        return (result.astype(np.uint64) << np.uint64(32)).view(np.float64)

    return _by_chunks(some)


def rsqrt_f64(x: Lanes) -> Lanes:
    """``rsqrt.approx.f64``: the unit's upper word and a step of the driver's, of third order."""
    scale = np.where(np.abs(x) < 2.0**-1022, 2.0**54, 1.0)
    scaled = x * scale
    start = upper("rsqrt")(scaled)
    error = ieee.fma_f64(scaled, -(start * start), np.ones_like(x))
    factor = ieee.fma_f64(error, np.full_like(x, 0.375), np.full_like(x, 0.5))
    result = ieee.fma_f64(factor, start * error, start) * np.sqrt(scale)
    special = ~(scaled > 0) | np.isinf(x)
    negative = np.uint64(0xFFF8 << 48).view(np.float64)
    start = np.where(np.isnan(x), ieee.quiet(x), np.where(x < 0, negative, start))
    return np.where(special, start, result)[()]
