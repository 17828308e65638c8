"""IEEE 754 arithmetic that NumPy does not have: correctly rounded fma, directed rounding.

All functions take arrays (or NumPy scalars) that broadcast, never raise, and give
the GPU's canonical NaN. They run inside ``np.errstate(all="ignore")``.
"""

import functools
import math
from collections.abc import Callable
from typing import cast

import numpy as np

from ...core.geometry import EVERY_LANE, NO_LANE, Lanes
from . import fused_multiply_add, rational

NAN32 = np.uint32(0x7FFFFFFF).view(np.float32)
NAN64 = np.uint64(0xFFF8000000000000).view(np.float64)
_ZERO = cast(Lanes, np.float64(0))
_HALF_WAY = np.int64(-(2**63))  # bit 28 alone, after a shift by 35
_LOW = np.int64(35)
_FEW = 8192


def has_nan(x: Lanes) -> bool:
    """Whether any element is a NaN."""
    if x.ndim == 0:
        return bool(x != x)
    # The maximum is one if any element is: one cheap pass (0.05 ns a lane) in the usual case.
    top = np.maximum.reduce(x, axis=None)
    return bool(top != top)


def canonical(x: Lanes) -> Lanes:
    """Return every NaN replaced by the one the GPU writes (0x7fffffff in single precision)."""
    nan = NAN32 if x.dtype == np.float32 else NAN64
    if not has_nan(x):
        return x
    return np.where(np.isnan(x), nan, x)


def quiet(x: Lanes) -> Lanes:
    """Return every NaN with its quiet bit set, otherwise as it is."""
    word = np.uint32 if x.dtype == np.float32 else np.uint64
    bit = cast(Lanes, word(1 << (22 if x.dtype == np.float32 else 51)))
    nan = np.isnan(x)
    if not np.any(nan):
        return x
    return np.where(nan, (x.view(word) | bit).view(x.dtype), x)


def propagate(result: Lanes, *operands: Lanes, quieted: bool = True) -> Lanes:
    """Return a float64 result whose NaNs are the first NaN among some operands, made quiet.

    Operands come in the order in which the hardware looks at them (measured on an H200);
    where none of them is NaN the result is the GPU's default NaN. ``quieted=False`` leaves
    a signalling NaN as it is, as atomics in global memory do.
    """
    nan = np.isnan(result)
    if not np.any(nan):
        return result
    chosen = cast(Lanes, NAN64)
    for x in reversed(operands):
        chosen = np.where(np.isnan(x), quiet(x) if quieted else x, chosen)
    return np.where(nan, chosen, result)


def fma_f32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """``a * b + c`` in single precision, rounded once, to nearest even.

    Of a few lanes the fused product is the faster one: 15 ns a lane where the other takes 29 at
    256 lanes, 2.2 and 2.7 at 4k, 1.5 and 1.4 at 16k (AMD EPYC with AVX-512, NumPy 2.4.6).
    """
    shape = _shape(a, b, c)
    if 1 < math.prod(shape) <= _FEW and rounds_once():
        return canonical(fused_multiply_add.fma(a, b, c, shape))
    return _fma_f32(a, b, c)


def rounds_once() -> bool:
    """Whether ``fused_multiply_add.fma`` rounds single precision as ``fma_f32`` does, here."""
    return fused_multiply_add.rounds_once(_fma_f32, np.float32)


def fused_products() -> str:
    """Describe the implementation of fused multiply-add in use."""
    exact = {"f32": rounds_once(),
             "f64": fused_multiply_add.rounds_once(_fma_f64, np.float64)}  # fmt: skip
    ways = [f"{kind} {'by complex product' if ok else 'in steps'}" for kind, ok in exact.items()]
    return ", ".join(ways)


def _shape(a: Lanes, b: Lanes, c: Lanes) -> tuple[int, ...]:
    return a.shape if a.shape == b.shape == c.shape else broadcast(a.shape, b.shape, c.shape)


@functools.lru_cache(maxsize=512)  # NumPy needs 2 microseconds
def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that several broadcast to."""
    return np.broadcast_shapes(*shapes)


def _fma_f32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Compute ``a * b + c`` by a product that is exact in float64, and a rounded float64 sum.

    Rounding the sum again to float32 errs only where it is exactly half way between
    two float32 numbers, or where the result is subnormal (its half-way bit is elsewhere,
    and the cast signals underflow if it was not exact).

    Measured on 32k lanes, one core: multiply 0.54, add 0.35, cast 0.12, half-way test
    0.10 + 0.10, NaN test 0.07 ns a lane.
    """
    if a.shape != b.shape and 4 * max(a.size, b.size) <= math.prod(broadcast(a.shape, b.shape)):
        # What is spread over lanes is widened once, not in each: of 65k lanes 72 us in place of 77.
        a, b = a.astype(np.float64), b.astype(np.float64)
    p = np.multiply(a, b, dtype=np.float64)
    s = np.add(p, c, out=p) if p.ndim and p.shape == broadcast(p.shape, c.shape) else p + c
    try:
        with np.errstate(under="raise"):
            r = s.astype(np.float32)
    except FloatingPointError:
        return _round_sum(a, b, c)
    bits = s.view(np.int64)
    if not bits.ndim:
        if np.left_shift(bits, _LOW) == _HALF_WAY:
            return _round_sum(a, b, c)
        return canonical(r)
    low = np.left_shift(bits, _LOW, out=bits)
    if np.minimum.reduce(low, axis=None) == _HALF_WAY:
        # Some 3 % of calls on random data come here, for a lane or two: mend just those.
        lanes = np.unravel_index(np.flatnonzero(low == _HALF_WAY), r.shape)
        r[lanes] = _round_sum(*(np.broadcast_to(x, r.shape)[lanes] for x in (a, b, c)))
    return canonical(r)


def two_sum(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """Return the rounded sum and its exact error (Knuth)."""
    s = x + y
    v = s - x
    return s, (x - (s - v)) + (y - v)


def _round_sum(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Compute ``a * b + c`` through round-to-odd, which a second rounding cannot spoil."""
    p = np.multiply(a, b, dtype=np.float64)
    return canonical(to_odd(p, c.astype(np.float64)).astype(np.float32))


def to_odd(x: Lanes, y: Lanes) -> Lanes:
    """Return the float64 sum rounded to odd: where inexact, of the two neighbours the odd one."""
    return _odd(*two_sum(x, y))


def _odd(value: Lanes, residual: Lanes) -> Lanes:
    """Return an inexact float64 made odd, so that a second rounding sees the rest's side."""
    bits = np.asarray(value).view(np.int64)
    inexact = (residual != 0) & np.isfinite(residual) & np.isfinite(value) & (value != 0)
    even = (bits & 1) == 0
    # Step towards the exact value: up in magnitude if the residual has the value's sign.
    step = np.where((residual > 0) == (value > 0), np.int64(1), np.int64(-1))
    return np.where(inexact & even, bits + step, bits).view(np.float64)[()]


def directed_f32(operation: str, mode: str, *args: Lanes) -> Lanes:
    """add, sub, mul, fma, div, rcp or sqrt in single precision, rounded ``rz``, ``rm`` or ``rp``.

    ``rz`` is towards zero, ``rm`` down, ``rp`` up.
    """
    wide = [a.astype(np.float64) for a in args]
    if operation in ("add", "sub", "mul", "fma"):
        x = wide[0] * wide[1] if operation in ("mul", "fma") else wide[0]
        y: Lanes = {"add": wide[-1], "sub": -wide[-1], "fma": wide[-1], "mul": _ZERO}[operation]
        exact: Lanes = x if operation == "mul" else to_odd(x, y)
    elif operation == "sqrt":
        exact = np.sqrt(wide[0])
        exact = _odd(exact, _exact_residual(wide[0], exact, exact))
    else:
        numerator, divisor = (cast(Lanes, np.float64(1)), wide[0]) if operation == "rcp" else wide
        exact = numerator / divisor
        residual = np.sign(_exact_residual(numerator, exact, divisor)) * np.sign(divisor)
        exact = _odd(exact, residual)
    result = narrow(exact, mode)
    if operation in ("add", "sub", "fma"):  # an exact zero sum is -0 when rounding down
        zero = (exact == 0) & (np.signbit(x) != np.signbit(y))
        result = np.where(zero, np.float32(-0.0 if mode == "rm" else 0.0), result)
    return canonical(np.asarray(result, np.float32)[()])


def _exact_residual(x: Lanes, q: Lanes, y: Lanes) -> Lanes:
    """Return the sign of ``x - q*y``, exact: by Dekker's product."""
    high = q * y
    low = _product_error(q, y, high)
    return (x - high) - low


def narrow(x: Lanes, mode: str) -> Lanes:
    """float64 to float32 with ``rn``, ``rz``, ``rm`` or ``rp``; overflow as IEEE says."""
    r = x.astype(np.float32)
    if mode == "rn":
        return r
    back = r.astype(np.float64)
    below, above = np.nextafter(r, np.float32(-np.inf)), np.nextafter(r, np.float32(np.inf))
    too_high = (back > x) & {"rz": x > 0, "rm": EVERY_LANE, "rp": NO_LANE}[mode]
    too_low = (back < x) & {"rz": x < 0, "rp": EVERY_LANE, "rm": NO_LANE}[mode]
    return np.where(too_high, below, np.where(too_low, above, r))[()]


# -- double precision -----------------------------------------------------------

_SPLIT = np.float64(2**27 + 1)


def _product_error(a: Lanes, b: Lanes, product: Lanes) -> Lanes:
    """``a * b - product``, exact while nothing over- or underflows (Dekker, Veltkamp)."""
    t = a * _SPLIT
    ah = t - (t - a)
    al = a - ah
    t = b * _SPLIT
    bh = t - (t - b)
    bl = b - bh
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl


def fma_f64(a: Lanes, b: Lanes, c: Lanes, mode: str = "rn") -> Lanes:
    """``a * b + c`` in double precision, rounded once.

    The fused product takes 2 ns a lane where the way without it takes 17 to 50 (as above).
    """
    shape = _shape(a, b, c)
    if (
        mode == "rn"
        and math.prod(shape) > 1
        and fused_multiply_add.rounds_once(_fma_f64, np.float64)
    ):
        return canonical(fused_multiply_add.fma(a, b, c, shape))
    return _fma_f64(a, b, c, mode)


def _fma_f64(a: Lanes, b: Lanes, c: Lanes, mode: str = "rn") -> Lanes:
    """Compute ``a * b + c`` with one rounding, in operations that NumPy guarantees.

    Error-free product, then the sum of three through round-to-odd (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums"). Lanes whose exponents
    could over- or underflow on the way go through exact rational arithmetic.
    """
    product = a * b
    low = _product_error(a, b, product)
    t, t_error = two_sum(c, low)
    high, high_error = two_sum(product, t)
    if mode == "rn":
        result = high + to_odd(t_error, high_error)
    else:
        result = high
    limits = (np.float64(2.0**-480), np.float64(2.0**480))
    safe = EVERY_LANE if mode == "rn" else NO_LANE
    for x in (a, b):
        m = np.abs(x)
        safe = safe & (m > limits[0]) & (m < limits[1])
    m = np.abs(c)
    safe = safe & (((m > np.float64(2.0**-900)) & (m < np.float64(2.0**960))) | (m == 0))
    # A result near the bottom of the range is rounded elsewhere.
    safe = safe & (np.abs(result) > np.float64(2.0**-960))
    if np.all(safe):
        return result
    special = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    # A finite product may have overflowed here on the way to an infinite c.
    finite = np.isfinite(a) & np.isfinite(b)
    out = np.where(special, np.where(finite, c, product + c), result)
    rest = np.broadcast_to(~safe & ~special, out.shape)
    if np.any(rest):
        out = np.array(out)
        operands = [np.broadcast_to(x, out.shape)[rest] for x in (a, b, c)]
        out[rest] = [
            rational.fma(x, y, z, mode)
            for x, y, z in zip(*(o.tolist() for o in operands), strict=True)
        ]
    return canonical(out if out.ndim else out[()])


def directed_f64(operation: str, mode: str, *args: Lanes) -> Lanes:
    """add, sub, mul, div, rcp or sqrt in double precision with ``rz``, ``rm`` or ``rp``.

    Rare in practice, so it goes lane by lane through exact rational arithmetic.
    """
    operations: dict[str, Callable[..., Lanes]] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
        "rcp": lambda x: 1.0 / x, "sqrt": np.sqrt,
    }  # fmt: skip
    nearest = np.array(np.broadcast_arrays(operations[operation](*args))[0])
    flat = [np.broadcast_to(x, nearest.shape).reshape(-1).tolist() for x in args]
    out = nearest.reshape(-1)
    for i, values in enumerate(zip(*flat, strict=True)):
        if all(np.isfinite(values)):
            out[i] = rational.directed(operation, mode, values, float(out[i]))
    return canonical(nearest if nearest.ndim else nearest[()])


def flush(x: Lanes) -> Lanes:
    """Subnormals to zero of the same sign (``.ftz``)."""
    smallest = np.float32(2.0**-126) if x.dtype == np.float32 else np.float64(2.0**-1022)
    return np.where(np.abs(x) < smallest, np.copysign(x.dtype.type(0), x), x)
